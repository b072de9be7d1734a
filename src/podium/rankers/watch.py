"""Following a fit: progress, and the best model so far on validation queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from podium.data import Dataset
from podium.kernels import Doubles
from podium.measures import Measure, evaluate, parse_measure
from podium.rankers.base import Progress, Training, blocks_of

_Model = TypeVar("_Model")


class Watch(Generic[_Model]):
    """Called after each step of a fit with the model so far; keeps the best one.

    Without validation queries the latest model is the best. Ctrl-C therefore loses nothing: the
    fit ends with ``model``.
    """

    def __init__(
        self,
        predict: Callable[[_Model, Dataset], Doubles],
        measure: str | Measure,
        validation: Training | None,
        progress: Progress | None,
    ) -> None:
        self._predict = predict
        self._measure = parse_measure(measure)
        self._validation = validation
        self._progress = progress
        self.model: _Model | None = None
        self.best_value = -np.inf
        self.best_step = 0

    def __call__(self, step: int, model: _Model, loss: float) -> None:
        """Look at the model after a step."""
        value = None
        if self._validation is None:
            self.model, self.best_step = model, step
        else:
            value = self._value(model)
            better = value if self._measure.larger_is_better else -value
            if better > self.best_value:
                self.model, self.best_step, self.best_value = model, step, better
        if self._progress is not None:
            self._progress(step, loss, value)

    def _value(self, model: _Model) -> float:
        if self._validation is None:
            return np.nan
        values = [
            evaluate(self._measure, block, self._predict(model, block))[self._measure]
            for block in blocks_of(self._validation)
        ]
        return float(np.nanmean(np.concatenate(values)))
