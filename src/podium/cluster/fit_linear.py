"""Linear rankers: gradients summed over actors; the solvers are those of one process."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import numpy as np

from podium.cluster.checkpoints import facts_of, refuse_another
from podium.cluster.connection import Cluster
from podium.cluster.filesystems import exists, read_whole, write_whole
from podium.cluster.shard_actors import Holders
from podium.cluster.sources import ShardSource
from podium.kernels import Doubles
from podium.losses import Loss
from podium.rankers import LinearRanker
from podium.rankers.base import FitInterrupted, Progress
from podium.rankers.empirical_risk import LinearRisk, block_scores
from podium.rankers.preconditioner import Spread
from podium.rankers.storage import Archive, archive_bytes, read_archive
from podium.rankers.validation_monitor import Watch

_CHECKPOINT = "linear.checkpoint"
_MATRICES_BYTES = 1 << 30
"""Shards' matrices of all pairs of features are held in the driver up to so many bytes."""


class HeldRisk(LinearRisk):
    """The risk of shards that actors hold."""

    def __init__(self, loss: Loss, holders: Holders, queries: int, features: int) -> None:
        super().__init__(loss, queries)
        self._holders = holders
        self._features = features

    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """The loss of all queries, and its gradient by the weights."""
        return self._holders.total("risk", self.loss, weights, add=_add_pairs)

    def spread(self) -> Spread:
        """How the features vary within queries."""
        matrix = 8 * self._features**2
        at_once = max(1, _MATRICES_BYTES // matrix)
        return self._holders.total("spread", self.loss, add=Spread.__add__, at_once=at_once)


class _HeldWatch(Watch[Doubles]):
    """Follows a fit whose validation queries actors hold; keeps the weights for a restart."""

    def __init__(
        self,
        ranker: LinearRanker,
        validation: Holders | None,
        progress: Progress | None,
        checkpoint: _Checkpoint | None,
    ) -> None:
        super().__init__(block_scores, ranker.measure, None, progress)
        self._holders = validation
        self._checkpoint = checkpoint

    def __call__(self, step: int, model: Doubles, loss: float) -> None:
        super().__call__(step, model, loss)
        if self._checkpoint is not None:
            self._checkpoint.offer(step, model, self)

    def _measures(self) -> bool:
        return self._holders is not None

    def _sums(self, model: Doubles) -> Doubles:
        assert self._holders is not None
        return self._holders.total("measured", self._measure, model, add=np.add)


class _Checkpoint:
    """The latest weights and the best ones, in a file that a fit begun again starts from.

    Args:
        url: The folder.
        seconds: After which weights are old.
        facts: What the fit is.
    """

    def __init__(self, url: str, seconds: float, facts: dict[str, Any]) -> None:
        self._url = url
        self._seconds = seconds
        self._facts = facts
        self._last = time.monotonic()

    def start(self, features: int, watch: Watch[Doubles]) -> Doubles:
        """The weights kept, or zeros; the watch learns what was best."""
        if not exists(self._url, _CHECKPOINT):
            return np.zeros(features)
        archive = read_archive(BytesIO(read_whole(self._url, _CHECKPOINT)))
        if archive.facts.get("of") != self._facts:
            refuse_another(self._url)
        watch.resume({**archive.facts["watch"], "model": archive.arrays["best"]})
        return np.asarray(archive.arrays["weights"], np.float64)

    def offer(self, step: int, weights: Doubles, watch: Watch[Doubles]) -> None:
        """Keep weights, if those kept are old."""
        if time.monotonic() - self._last >= self._seconds:
            self.keep(step, weights, watch)

    def keep(self, step: int, weights: Doubles, watch: Watch[Doubles]) -> None:
        """Keep weights, and the best ones met so far."""
        best = weights if watch.model is None else watch.model
        arrays = {"weights": weights, "best": best}
        facts = {"of": self._facts, "watch": watch.facts(step)}
        content = archive_bytes(Archive("checkpoint", facts, arrays))
        write_whole(content, self._url, _CHECKPOINT)
        self._last = time.monotonic()


def fit_linear(
    ranker: LinearRanker,
    train: ShardSource,
    validation: ShardSource | None,
    progress: Progress | None,
    checkpoints: str | None,
    checkpoint_seconds: float,
    cluster: Cluster,
) -> None:
    """Fit a linear ranker whose features are known already."""
    keeper = None
    if checkpoints is not None:
        facts = facts_of(ranker, train, validation, but=["max_iter"])
        keeper = _Checkpoint(checkpoints, checkpoint_seconds, facts)
    start = np.zeros(ranker.n_features_in_)
    holders = Holders(train, cluster)
    held_out = None
    try:
        if validation is not None:
            held_out = Holders(validation, cluster, idle=True)
        watch = _HeldWatch(ranker, held_out, progress, keeper)
        if keeper is not None:
            start = keeper.start(len(start), watch)
        risk = HeldRisk(ranker._loss(), holders, train.manifest.queries, len(start))
        try:
            ranker._minimise(risk, watch, start)
        except FitInterrupted:
            if keeper is not None:
                keeper.keep(watch.best_step, ranker.coef_, watch)
            raise
    finally:
        holders.close()
        if held_out is not None:
            held_out.close()
    if keeper is not None:
        keeper.keep(watch.best_step, ranker.coef_, watch)


def _add_pairs(one: Any, other: Any) -> tuple[float, Doubles]:
    return one[0] + other[0], one[1] + other[1]
