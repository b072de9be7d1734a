"""Linear rankers: gradients summed over actors; the solvers are those of one process."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import numpy as np

from podium.cluster.checkpoints import fit_identity, raise_other_fit
from podium.cluster.connection import Cluster
from podium.cluster.filesystems import exists, read_bytes, write_bytes
from podium.cluster.shard_actors import ShardActors
from podium.cluster.sources import ShardSource
from podium.kernels import Doubles
from podium.losses import Loss
from podium.rankers import LinearRanker
from podium.rankers.base import FitInterrupted
from podium.rankers.empirical_risk import LinearRisk, block_scores
from podium.rankers.fit_progress import Progress
from podium.rankers.preconditioner import WithinQueryScatter
from podium.rankers.storage import Archive, archive_bytes, read_archive
from podium.rankers.validation_monitor import ValidationMonitor

_CHECKPOINT = "linear.checkpoint"
_MATRICES_BYTES = 1 << 30
"""The memory of the driver for scatter matrices of shards."""


class ShardedRisk(LinearRisk):
    """The risk over the shards of actors."""

    def __init__(self, loss: Loss, actors: ShardActors, queries: int, features: int) -> None:
        super().__init__(loss, queries)
        self._actors = actors
        self._features = features

    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """Return the total loss of all queries and its gradient."""
        return self._actors.total("risk", self.loss, weights, add=_add_pairs)

    def scatter(self) -> WithinQueryScatter:
        """Return how the features vary within queries."""
        matrix = 8 * self._features**2
        at_once = max(1, _MATRICES_BYTES // matrix)
        return self._actors.total(
            "scatter", self.loss, add=WithinQueryScatter.__add__, at_once=at_once
        )


class _ShardedMonitor(ValidationMonitor[Doubles]):
    """Monitors a fit whose validation queries are with actors, and saves checkpoints."""

    def __init__(
        self,
        ranker: LinearRanker,
        validation: ShardActors | None,
        progress: Progress | None,
        checkpoint: _Checkpoint | None,
    ) -> None:
        super().__init__(block_scores, ranker.measure, None, progress)
        self._actors = validation
        self._checkpoint = checkpoint

    def __call__(self, step: int, model: Doubles, loss: float) -> None:
        super().__call__(step, model, loss)
        if self._checkpoint is not None:
            self._checkpoint.offer(step, model, self)

    def _has_validation(self) -> bool:
        return self._actors is not None

    def _value_sums(self, model: Doubles) -> Doubles:
        assert self._actors is not None
        return self._actors.total("measured", self._measure, model, add=np.add)


class _Checkpoint:
    """The latest and the best weights, in a file from which an interrupted fit resumes.

    Args:
        url: The folder.
        seconds: The time between checkpoints.
        identity: The ranker and data of the fit.
    """

    def __init__(self, url: str, seconds: float, identity: dict[str, Any]) -> None:
        self._url = url
        self._seconds = seconds
        self._identity = identity
        self._last = time.monotonic()

    def start(self, features: int, monitor: ValidationMonitor[Doubles]) -> Doubles:
        """Return the saved weights, or zeros, and restore the best ones in the monitor."""
        if not exists(self._url, _CHECKPOINT):
            return np.zeros(features)
        archive = read_archive(BytesIO(read_bytes(self._url, _CHECKPOINT)))
        if archive.metadata.get("of") != self._identity:
            raise_other_fit(self._url)
        monitor.resume({**archive.metadata["monitor"], "model": archive.arrays["best"]})
        return np.asarray(archive.arrays["weights"], np.float64)

    def offer(self, step: int, weights: Doubles, monitor: ValidationMonitor[Doubles]) -> None:
        """Save the weights if a checkpoint is due."""
        if time.monotonic() - self._last >= self._seconds:
            self.save(step, weights, monitor)

    def save(self, step: int, weights: Doubles, monitor: ValidationMonitor[Doubles]) -> None:
        """Save the weights, and the best ones so far."""
        best = weights if monitor.model is None else monitor.model
        arrays = {"weights": weights, "best": best}
        metadata = {"of": self._identity, "monitor": monitor.state(step)}
        content = archive_bytes(Archive("checkpoint", metadata, arrays))
        write_bytes(content, self._url, _CHECKPOINT)
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
    """Fit a linear ranker on the shards of actors."""
    checkpoint = None
    if checkpoints is not None:
        identity = fit_identity(ranker, train, validation, but=["max_iter"])
        checkpoint = _Checkpoint(checkpoints, checkpoint_seconds, identity)
    names = train.manifest.feature_names
    start = np.zeros(len(names))
    actors = ShardActors(train, cluster)
    validation_actors = None
    try:
        if validation is not None:
            validation_actors = ShardActors(validation, cluster, idle=True)
        monitor = _ShardedMonitor(ranker, validation_actors, progress, checkpoint)
        if checkpoint is not None:
            start = checkpoint.start(len(start), monitor)
        risk = ShardedRisk(ranker.loss_function(), actors, train.manifest.queries, len(start))
        try:
            ranker.fit_risk(
                risk, names, monitor=monitor, start=start,
                definitions_hash=train.manifest.definitions_hash,
            )  # fmt: skip
        except FitInterrupted:
            if checkpoint is not None:
                checkpoint.save(monitor.best_step, ranker.coef_, monitor)
            raise
    finally:
        actors.close()
        if validation_actors is not None:
            validation_actors.close()
    if checkpoint is not None:
        checkpoint.save(monitor.best_step, ranker.coef_, monitor)


def _add_pairs(one: Any, other: Any) -> tuple[float, Doubles]:
    return one[0] + other[0], one[1] + other[1]
