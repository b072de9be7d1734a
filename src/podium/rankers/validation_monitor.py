"""Following a fit: progress, and the best model so far on validation queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from podium.data import Dataset
from podium.kernels import Doubles
from podium.measures import Measure, evaluate, parse_measure
from podium.rankers.base import Progress, Training, blocks_of
from podium.rankers.communicator import ALONE, Together

_Model = TypeVar("_Model")


class Watch(Generic[_Model]):
    """Called after each step of a fit with the model so far; keeps the best one.

    Without validation queries the latest model is the best. Ctrl-C therefore loses nothing:
    ``model`` is what an interrupted fit keeps.
    """

    def __init__(
        self,
        predict: Callable[[_Model, Dataset], Doubles],
        measure: str | Measure,
        validation: Training | None,
        progress: Progress | None,
        together: Together = ALONE,
    ) -> None:
        self._predict = predict
        self._measure = measure
        self._larger_is_better = parse_measure(measure).larger_is_better
        self._validation = validation
        self._progress = progress
        self._together = together
        self.model: _Model | None = None
        self.best_value = -np.inf
        self.best_step = 0

    def __call__(self, step: int, model: _Model, loss: float) -> None:
        """Look at the model after a step."""
        value = None
        if not self._measures():
            self.model, self.best_step = model, step
        else:
            value = self._value(model)
            better = value if self._larger_is_better else -value
            if better > self.best_value:
                self.model, self.best_step, self.best_value = model, step, better
        if self._progress is not None:
            self._progress(step, loss, value)

    def facts(self, step: int) -> dict[str, Any]:
        """What ``resume`` needs of it, for JSON; the best model so far is the caller's to keep."""
        best = float(self.best_value)
        return {
            "step": step,
            "best_step": self.best_step,
            "best_value": best if np.isfinite(best) else None,
        }

    def resume(self, facts: Mapping[str, Any]) -> int:
        """Go on from the facts of an attempt that was cut short; gives its last step."""
        self.best_step = int(facts["best_step"])
        if facts["best_value"] is not None:
            self.best_value = float(facts["best_value"])
        if "model" in facts:
            self.model = facts["model"]
        return int(facts["step"])

    def _measures(self) -> bool:
        """Whether there are validation queries."""
        return self._validation is not None

    def _value(self, model: _Model) -> float:
        total, count = self._together.total(self._sums(model))
        return float(total / count) if count else np.nan

    def _sums(self, model: _Model) -> Doubles:
        """The sum of the measure over queries that have a value, and how many have one."""
        sums = np.zeros(2)
        for block in blocks_of(self._validation) if self._validation is not None else ():
            sums += value_sums(self._measure, block, self._predict(model, block))
        return sums


def value_sums(measure: str | Measure, block: Dataset, scores: Doubles) -> Doubles:
    """The sum of a measure over a block's queries that have a value, and how many have one."""
    values = evaluate(measure, block, scores)[measure]
    return np.array([np.nansum(values), np.count_nonzero(~np.isnan(values))], np.float64)
