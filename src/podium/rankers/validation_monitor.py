"""Progress of a fit, its best model so far on the validation queries, and early stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.measures.registry import Measure, definition_of
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.fit_arguments import FitStopped
from podium.rankers.fit_progress import FitProgress, Progress
from podium.rankers.training_data import TrainingData, query_blocks

_Model = TypeVar("_Model")


class ValidationMonitor(Generic[_Model]):
    """Called after each step of a fit with the current model; keeps the best one.

    Without validation queries the latest model is the best. ``model`` is also what a fit that was
    interrupted by Ctrl-C returns, so no finished step is lost.

    Args:
        predict: Scores a block of validation queries with a model.
        measure: The measure of the validation queries.
        validation: The validation queries, or None.
        progress: Called after each step.
        communicator: The processes whose validation queries count together.

    Attributes:
        model: The best model so far.
        best_step: Its step.
        best_value: Its measure, negated if smaller is better.
        stopped: Whether a callback has ended the fit.
    """

    def __init__(
        self,
        predict: Callable[[_Model, Dataset], Doubles],
        measure: str | Measure,
        validation: TrainingData | None,
        progress: Progress | None,
        communicator: Communicator = SINGLE_PROCESS,
    ) -> None:
        self._predict = predict
        self._measure = measure
        self._larger_is_better = parse_measure(measure).larger_is_better
        self._validation = validation
        self._progress = progress
        self._sets = progress.validation if isinstance(progress, FitProgress) else None
        self._communicator = communicator
        self.model: _Model | None = None
        self.best_value = -np.inf
        self.best_step = 0
        self.stopped = False

    def __call__(self, step: int, model: _Model, loss: float) -> None:
        """Evaluate the model after a step, and report progress."""
        value = None
        by_name: dict[str, float] = {}
        if not self._has_validation():
            self.model, self.best_step = model, step
        else:
            values = self._validation_values(model)
            value = values[-1]
            if self._sets is not None:
                by_name = dict(zip(self._sets.sizes, values, strict=True))
                value = by_name[self._sets.deciding]
            signed_value = value if self._larger_is_better else -value
            if signed_value > self.best_value:
                self.model, self.best_step, self.best_value = model, step, signed_value
        if self._progress is not None:
            try:
                if isinstance(self._progress, FitProgress):
                    self._progress(step, loss, value, by_name)
                else:
                    self._progress(step, loss, value)
            except FitStopped:
                self.stopped = True

    def stops_early(self, step: int, rounds: int | None) -> bool:
        """Whether a fit stops: by a callback, or ``rounds`` steps without a better value."""
        if self.stopped:
            return True
        return rounds is not None and step > 0 and step - self.best_step >= rounds

    def state(self, step: int) -> dict[str, Any]:
        """Return what ``resume`` needs, as plain JSON; the caller saves the best model itself."""
        best = float(self.best_value)
        return {
            "step": step,
            "best_step": self.best_step,
            "best_value": best if np.isfinite(best) else None,
        }

    def resume(self, state: Mapping[str, Any]) -> int:
        """Continue from the state of an interrupted fit; return its last step."""
        self.best_step = int(state["best_step"])
        if state["best_value"] is not None:
            self.best_value = float(state["best_value"])
        if "model" in state:
            self.model = state["model"]
        return int(state["step"])

    def _has_validation(self) -> bool:
        return self._validation is not None

    def _validation_values(self, model: _Model) -> list[float]:
        """Return the measure of each set of validation queries."""
        sums = self._communicator.all_reduce(self._value_sums(model))
        return [float(total / count) if count else np.nan for total, count in sums.reshape(-1, 2)]

    def _value_sums(self, model: _Model) -> Doubles:
        """Sum the measure over the queries of each set that have a value, and count them."""
        first_queries = () if self._sets is None else self._sets.first_queries
        sums = np.zeros(2 * (len(first_queries) + 1))
        # Several sets are in memory, and so in one block.
        for block in query_blocks(self._validation) if self._validation is not None else ():
            sums += value_sums(self._measure, block, self._predict(model, block), first_queries)
        return sums


def value_sums(
    measure: str | Measure, block: Dataset, scores: Doubles, first_queries: Sequence[int] = ()
) -> Doubles:
    """Sum a measure over the queries of a block that have a value, and count them.

    Args:
        measure: The measure.
        block: The queries.
        scores: One score per row.
        first_queries: Where further sets of queries begin; each has its sum and count.
    """
    parsed = parse_measure(measure)
    if definition_of(parsed).aggregate != "mean":
        raise ArgumentError(
            f"{parsed!r} is not a mean over queries, so iterations cannot be compared by it",
            hint="Give the ranker another measure, such as AP.",
        )
    values = evaluate(measure, block, scores)[measure]
    sums = [
        (np.nansum(part), np.count_nonzero(~np.isnan(part)))
        for part in np.split(values, first_queries)
    ]
    return np.array(sums, np.float64).reshape(-1)


def mean_value(
    measure: str | Measure, data: Dataset, scores: Doubles, sample_weight: Doubles | None = None
) -> float:
    """Return the mean of a measure over the queries that have a value.

    The measure is passed on unparsed: another tool's name for it implies that tool's conventions.
    """
    return float(evaluate(measure, data, scores, sample_weight=sample_weight).means[measure])
