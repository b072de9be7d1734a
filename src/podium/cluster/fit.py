"""``fit`` over a shard set: whole queries on every worker."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from podium.cluster.connection import Cluster
from podium.cluster.filesystems import as_url, file_system, shown
from podium.cluster.sources import Place, ShardSource, open_source
from podium.data.columns import are_numbers
from podium.errors import ArgumentError

# Rankers bring scikit-learn, whose import takes longer than all else: workers that evaluate or
# run the tasks of a sweep start without it.
if TYPE_CHECKING:
    from podium.rankers import Ranker
    from podium.rankers.base import Progress

_Fitted = TypeVar("_Fitted", bound="Ranker")


def fit(
    ranker: _Fitted,
    data: Place,
    *,
    validation: Place | None = None,
    progress: Progress | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
    cluster: Cluster | None = None,
) -> _Fitted:
    """Fit a ranker to a shard set: ``ranker.fit(data)``, with a cluster to do it on.

    A linear ranker is the same as on one machine, to rounding: actors hold the shards and give
    values and gradients, the solver runs here. Trees are grown by LightGBM's and XGBoost's own
    distributed learners, neural scorers on gradients averaged over workers, both under Ray Train.
    A lost worker costs the work since the last checkpoint at most.

    Args:
        ranker: What to fit; it is changed, and returned.
        data: A shard set: its folder, its URL, or opened.
        validation: Another one, whose queries choose the best of the models met on the way.
        progress: Called after each step, as in ``Ranker.fit``.
        checkpoints: A folder or URL that all machines reach, from which a fit that was killed goes
            on. Trees and networks need it where there are several machines; on one a temporary
            folder serves lost workers.
        checkpoint_seconds: How long after a checkpoint the next one is due.
        cluster: Where to work; by default this process, which reads the set itself.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from podium.data import Dataset, write_shards
        >>> from podium.rankers import LinearRanker
        >>> X = np.random.default_rng(0).random((200, 3))
        >>> data = Dataset.from_arrays(X, np.round(3 * X[:, 0]), group=[20] * 10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_shards(data, f"{folder}/train")
        ...     ranker = fit(LinearRanker("ListNet()"), f"{folder}/train")
        >>> bool(np.argmax(np.abs(ranker.coef_)) == 0)
        True
    """
    from podium.rankers import LinearRanker, NeuralRanker, TreeRanker
    from podium.rankers.base import aligned_validation

    train = open_source(data)
    held_out = None if validation is None else open_source(validation)
    if cluster is None:
        for each in (train, held_out):
            if each is not None and "://" in each.url:
                raise ArgumentError(
                    f"{shown(each.url)} is not on this machine", hint="Give a cluster, or a folder."
                )
        chosen = None if held_out is None else held_out.manifest
        return ranker.fit(train.manifest, validation=chosen, progress=progress)
    ranker.check_parameters()
    names = train.manifest.feature_names
    aligned_validation(None if held_out is None else held_out.manifest, names)
    for each, what in ((train, "training"), (held_out, "validation")):
        if each is not None:
            _refuse_indifferent(each, what)
    where = None if checkpoints is None else as_url(checkpoints)
    if where is not None:
        file_system(where)  # a wrong place is said before the work
    with ranker._fitting(names, named=not are_numbers(names)):
        if isinstance(ranker, LinearRanker):
            from podium.cluster.fit_linear import fit_linear

            fit_linear(ranker, train, held_out, progress, where, checkpoint_seconds, cluster)
        elif isinstance(ranker, TreeRanker | NeuralRanker):
            from podium.cluster.ray_train import fit_under_ray_train

            fit_under_ray_train(
                ranker, train, held_out, progress, where, checkpoint_seconds, cluster
            )
        else:
            raise ArgumentError(
                f"{type(ranker).__name__} is not fitted on a cluster",
                hint="Linear rankers, trees and neural scorers are; fit others on one machine.",
            )
    return ranker


def _refuse_indifferent(source: ShardSource, what: str) -> None:
    """Refuse a set without a preference: looked for here, and found in the first block mostly."""
    from podium.rankers.base import has_preference, no_preference

    places = range(len(source.shards))
    if not any(has_preference(block) for place in places for block in source.blocks(place)):
        raise no_preference(what, source.manifest.queries)
