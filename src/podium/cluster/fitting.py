"""``fit`` over a shard set: whole queries on every worker."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from podium.cluster.connection import Cluster
from podium.cluster.filesystems import as_url, display_url, file_system
from podium.cluster.sources import ShardSetLocation, ShardSource, open_source
from podium.errors import ArgumentError

# Rankers bring scikit-learn, whose import takes longer than all else: workers that evaluate or
# run the tasks of a sweep start without it.
if TYPE_CHECKING:
    from podium.rankers import Ranker
    from podium.rankers.fit_progress import Progress

_Fitted = TypeVar("_Fitted", bound="Ranker")


def fit_shards(
    ranker: _Fitted,
    data: ShardSetLocation,
    *,
    eval_set: ShardSetLocation | None = None,
    progress: Progress | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
    cluster: Cluster | None = None,
) -> _Fitted:
    """Fit a ranker to a shard set: ``ranker.fit(data)``, with a cluster to do it on.

    A linear ranker is the same as on one machine, to rounding: actors keep the shards and compute
    values and gradients, the solver runs here. Trees are grown by LightGBM's and XGBoost's own
    distributed learners, neural scorers on gradients averaged over workers, both under Ray Train.
    A lost worker costs the work since the last checkpoint at most.

    Args:
        ranker: The ranker to fit; it is changed and returned.
        data: A shard set: its folder, its URL, or opened.
        eval_set: A shard set of validation queries: the best model on them is kept.
        progress: Called after each step, as in ``Ranker.fit``.
        checkpoints: A folder or URL that all machines can access, from which a killed fit resumes.
            Trees and networks need it on several machines; on one machine, a temporary folder is
            used by default.
        checkpoint_seconds: The time between checkpoints.
        cluster: The cluster to fit on; by default this process.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from podium.data import Dataset, write_shards
        >>> from podium.rankers import LinearRanker
        >>> X = np.random.default_rng(0).random((200, 3))
        >>> data = Dataset.from_arrays(X, np.round(3 * X[:, 0]), group=[20] * 10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_shards(data, f"{folder}/train")
        ...     ranker = fit_shards(LinearRanker("ListNet()"), f"{folder}/train")
        >>> bool(np.argmax(np.abs(ranker.coef_)) == 0)
        True
    """
    from podium.rankers import LinearRanker
    from podium.rankers.base import DistributedRanker
    from podium.rankers.training_data import aligned_validation

    train = open_source(data)
    validation = None if eval_set is None else open_source(eval_set)
    if cluster is None:
        if checkpoints is not None:
            raise ArgumentError(
                "checkpoints are written on a cluster only", hint="Give a cluster, or leave it out."
            )
        for source in (train, validation):
            if source is not None and "://" in source.url:
                raise ArgumentError(
                    f"{display_url(source.url)} is not on this machine",
                    hint="Give a cluster, or a folder.",
                )
        manifest = None if validation is None else validation.manifest
        return ranker.fit(train.manifest, eval_set=manifest, progress=progress)
    ranker.check_parameters()
    names = train.manifest.feature_names
    if validation is not None:
        aligned_validation(validation.manifest, names, train.manifest.definitions_hash)
    for source, role in ((train, "training"), (validation, "validation")):
        if source is not None:
            _require_preferences(source, role)
    url = None if checkpoints is None else as_url(checkpoints)
    if url is not None:
        file_system(url)  # report an invalid URL before the work
    reported: list[tuple[int, float]] = []

    def follow(step: int, loss: float, value: float | None) -> None:
        if value is not None:
            reported.append((step, value))
        if progress is not None:
            progress(step, loss, value)

    if isinstance(ranker, LinearRanker):
        from podium.cluster.fit_linear import fit_linear

        fit_linear(ranker, train, validation, follow, url, checkpoint_seconds, cluster)
        values = [value for _, value in reported]
    elif isinstance(ranker, DistributedRanker):
        from podium.cluster.ray_train import fit_under_ray_train

        fit_under_ray_train(ranker, train, validation, follow, url, checkpoint_seconds, cluster)
        values = list(dict(reported).values())  # after a lost machine, steps come again
    else:
        raise ArgumentError(
            f"{type(ranker).__name__} cannot be fitted on a cluster",
            hint="Fit it on one machine; LinearRanker, TreeRanker and NeuralRanker can.",
        )
    # A fit that goes on from a checkpoint of another process does not know how it began.
    if values and (isinstance(ranker, LinearRanker) or reported[0][0] == 1):
        ranker.evals_result_ = {"valid_0": {str(ranker.measure): values}}
    return ranker


def _require_preferences(source: ShardSource, role: str) -> None:
    """Raise a DataError if no query has a preference; the first block usually has one."""
    from podium.rankers.training_data import has_preference, no_preferences_error

    shards = range(len(source.shards))
    if not any(has_preference(block) for shard in shards for block in source.blocks(shard)):
        raise no_preferences_error(role, source.manifest.queries)
