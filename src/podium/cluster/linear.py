"""Linear rankers: gradients summed over actors; the solvers are those of one process."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import numpy as np

from podium.cluster.connection import Cluster
from podium.cluster.holders import Holders
from podium.cluster.places import exists, file_system, reaching, shown, write_whole
from podium.cluster.sources import ShardSource
from podium.errors import DataError
from podium.kernels import Doubles
from podium.losses import Loss
from podium.rankers import LinearRanker
from podium.rankers.base import Progress
from podium.rankers.risk import LinearRisk, block_scores
from podium.rankers.storage import Archive, archive_bytes, read_archive
from podium.rankers.watch import Watch
from podium.rankers.whiten import Spread

_CHECKPOINT = "linear.checkpoint"


class HeldRisk(LinearRisk):
    """The risk of shards that actors hold."""

    def __init__(self, loss: Loss, holders: Holders, queries: int) -> None:
        super().__init__(loss, queries)
        self._holders = holders

    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """The loss of all queries, and its gradient by the weights."""
        return self._holders.total("risk", self.loss, weights, add=_add_pairs)

    def spread(self) -> Spread:
        """How the features vary within queries."""
        return self._holders.total("spread", self.loss, add=Spread.__add__)


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
        if self._checkpoint is not None:
            self._checkpoint.offer(model)
        super().__call__(step, model, loss)

    def _measures(self) -> bool:
        return self._holders is not None

    def _sums(self, model: Doubles) -> Doubles:
        assert self._holders is not None
        return self._holders.total("measured", self._measure, model, add=np.add)


class _Checkpoint:
    """The latest weights, in a file that a fit begun again starts from."""

    def __init__(self, url: str, seconds: float, ranker: LinearRanker, source: ShardSource) -> None:
        self._url = url
        self._seconds = seconds
        self._facts = {
            "loss": repr(ranker._loss()),
            "penalty": ranker.penalty,
            "feature_names": list(source.manifest.feature_names),
            "shards": [shard.sha256 for shard in source.shards],
        }
        self._last = time.monotonic()

    def start(self, features: int) -> Doubles:
        """The weights kept, or zeros."""
        if not exists(self._url, _CHECKPOINT):
            return np.zeros(features)
        files, folder = file_system(self._url)
        with (
            reaching(self._url, _CHECKPOINT),
            files.open_input_file(f"{folder}/{_CHECKPOINT}") as file,
        ):
            archive = read_archive(BytesIO(file.read()))
        if archive.facts != self._facts:
            raise DataError(
                "holds the checkpoint of another fit",
                path=shown(self._url),
                hint="Choose a new folder.",
            )
        return np.asarray(archive.arrays["weights"], np.float64)

    def offer(self, weights: Doubles) -> None:
        """Keep weights, if those kept are old."""
        if time.monotonic() - self._last >= self._seconds:
            self.keep(weights)

    def keep(self, weights: Doubles) -> None:
        """Keep weights."""
        content = archive_bytes(Archive("checkpoint", self._facts, {"weights": weights}))
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
    keeper = (
        None if checkpoints is None else _Checkpoint(checkpoints, checkpoint_seconds, ranker, train)
    )
    start = np.zeros(ranker.n_features_in_)
    if keeper is not None:
        start = keeper.start(len(start))
    holders = Holders(train, cluster)
    held_out = None
    try:
        if validation is not None:
            held_out = Holders(validation, cluster, idle=True)
        watch = _HeldWatch(ranker, held_out, progress, keeper)
        risk = HeldRisk(ranker._loss(), holders, train.manifest.queries)
        ranker._minimise(risk, watch, start)
    finally:
        holders.close()
        if held_out is not None:
            held_out.close()
    if keeper is not None:
        keeper.keep(ranker.coef_)


def _add_pairs(one: Any, other: Any) -> tuple[float, Doubles]:
    return one[0] + other[0], one[1] + other[1]
