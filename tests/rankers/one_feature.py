"""Rankers whose scores are a feature, so that what others make of them is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from podium.data import Dataset
from podium.rankers import Ranker
from podium.rankers.fit_progress import Progress
from podium.rankers.storage import Archive
from podium.rankers.training_data import TrainingData


class OneFeature(Ranker):
    """Scores are a feature: a voter whose vote is known."""

    streams = True

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def _fit(
        self, data: TrainingData, validation: TrainingData | None, progress: Progress | None
    ) -> None:
        pass

    def _predict(self, features: np.ndarray) -> np.ndarray:
        return features[:, self.column].astype(np.float64)

    def _archive(self) -> Archive:
        return Archive("", {})

    def _restore(self, archive: Archive) -> None:
        pass


class Recording(OneFeature):
    """Keeps what each fit was given, in all its clones together."""

    fits: ClassVar[list[tuple[TrainingData, TrainingData | None]]] = []

    def _fit(self, data: TrainingData, validation: TrainingData | None, *_: object) -> None:
        Recording.fits.append((data, validation))


class Loading(Recording):
    """The same, but it needs the whole data in memory."""

    streams = False


def by_hand() -> Dataset:
    """Two queries, of four and of two documents, with a tie in the first feature."""
    features = [[1, 1], [3, 2], [3, 3], [2, 4], [5, 1], [7, 2]]
    return Dataset.from_arrays(features, labels=[0, 1, 2, 3, 1, 0], group=[4, 2])
