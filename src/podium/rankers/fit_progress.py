"""What follows each step of a fit: values are recorded, callbacks and the progress are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Any, TypeAlias

from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers.fit_arguments import (
    CallbackEnv,
    EvalResult,
    FitStopped,
    stops_early,
    stops_fit,
)
from podium.rankers.training_data import ValidationSets

Progress: TypeAlias = "Callable[[int, float, float | None], None]"
"""Called after each step of a fit with the step, the loss, and the validation measure or None."""


class FitProgress:
    """Records the measure of validation sets in ``evals_result_``, and calls callbacks.

    It is a ``Progress`` that also takes the measure of each set.

    Args:
        ranker: The ranker that is fitted.
        validation: The validation sets; None without any.
        callbacks: Called after each step as LightGBM calls them.
        progress: Called after each step with the measure of the deciding set.
    """

    def __init__(
        self,
        ranker: Any,
        validation: ValidationSets | None,
        callbacks: Sequence[Callable[[Any], None]],
        progress: Progress | None,
    ) -> None:
        self.validation = validation
        self._ranker = ranker
        self._callbacks = callbacks
        self._progress = progress
        measure: str | Measure = ranker.measure
        self._measure = str(measure)
        self._larger_is_better = parse_measure(measure).larger_is_better
        self._parameters = ranker.get_params(deep=False)
        limits = [self._parameters.get(name) for name in ("n_estimators", "epochs", "max_iter")]
        self._last = next((limit for limit in limits if limit is not None), 0)
        self._iterations = count()

    def __call__(
        self,
        step: int,
        loss: float,
        value: float | None,
        values: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Report a step: its loss, the measure of the deciding set, and of each set by its name."""
        for name, each in values.items():
            history = self._ranker.evals_result_.setdefault(name, {})
            history.setdefault(self._measure, []).append(each)
        results = [
            EvalResult(name, self._measure, each, self._larger_is_better)
            for name, each in values.items()
        ]
        held_out = results
        if self.validation is not None:
            held_out = [r for r in results if r.dataset_name in self.validation.held_out]
        iteration = next(self._iterations)
        stops = []
        for callback in self._callbacks:
            seen = held_out if stops_early(callback) else results
            environment = CallbackEnv(
                self._ranker, self._parameters, iteration, 0, self._last, seen
            )
            stops.append(stops_fit(callback, environment))
        if self._progress is not None:
            self._progress(step, loss, value)
        if any(stops):
            raise FitStopped
