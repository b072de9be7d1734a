"""A search by Optuna's tree-structured Parzen estimator, over the same values as a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from podium.data.seeds import generator
from podium.errors import ArgumentError, MissingPackageError
from podium.rankers.parameter_checks import check_integer

_REPEATS = 10
"""Suggestions in a row that were tried before; after them an untried combination is drawn."""

_UNPRUNED = 5
"""Trials that are fitted to their ends before others are pruned."""


class FitPruned(Exception):  # noqa: N818 it is not an error
    """A fit was stopped: after as many steps, most others had been better."""


class ParzenSearch:
    """Combinations of parameters, each chosen by the results of those before it.

    Values that are numbers in rising or falling order are searched as a range; others are
    categories. No combination is tried twice. A fit is pruned (``follow`` raises ``FitPruned``) if
    its best value so far is worse than the median of the others after as many steps.

    Args:
        param_grid: The values of each parameter.
        n_trials: How many to try; at most all.
        random_state: The seed.
        larger_is_better: Whether a larger value of the measure is better.
    """

    def __init__(
        self,
        param_grid: Mapping[str, Sequence[Any]],
        n_trials: int | None,
        random_state: int,
        *,
        larger_is_better: bool,
    ) -> None:
        try:
            import optuna
        except ImportError as error:
            raise MissingPackageError("optuna", extra="tuning") from error
        if n_trials is None:
            raise ArgumentError(
                "the sampler tpe needs a number of trials",
                hint="Give n_trials, some dozens, or sampler='random' to try all.",
            )
        check_integer("n_trials", n_trials)
        self._sizes = {name: len(values) for name, values in param_grid.items()}
        self.total = min(n_trials, math.prod(self._sizes.values()))
        self._ordered = {name: _in_order(values) for name, values in param_grid.items()}
        self._param_grid = param_grid
        self._sign = 1.0 if larger_is_better else -1.0
        self._rng = generator(random_state)
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # each new study logs a line
        try:
            self._study = optuna.create_study(
                direction="maximize",
                # NumPy's older generators take no larger seeds.
                sampler=optuna.samplers.TPESampler(seed=random_state % 2**32),
                pruner=optuna.pruners.MedianPruner(n_startup_trials=_UNPRUNED),
            )
        finally:
            optuna.logging.set_verbosity(level)
        self._values: dict[tuple[int, ...], float] = {}
        self._complete = 0
        self._step = 0
        self._best = -float("inf")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while len(self._values) < self.total:
            self._trial, indices = self._next()
            self._indices, self._step, self._best = indices, 0, -float("inf")
            yield {
                name: self._param_grid[name][index]
                for name, index in zip(self._sizes, indices, strict=True)
            }

    def _next(self) -> tuple[Any, tuple[int, ...]]:
        """Ask for a combination that was not tried yet."""
        for _ in range(_REPEATS):
            trial = self._study.ask()
            indices = self._suggested(trial)
            if indices not in self._values:
                return trial, indices
            self._study.tell(trial, self._values[indices])
        while True:
            indices = tuple(int(self._rng.integers(size)) for size in self._sizes.values())
            if indices not in self._values:
                break
        self._study.enqueue_trial(dict(zip(self._sizes, indices, strict=True)))
        trial = self._study.ask()
        return trial, self._suggested(trial)

    def _suggested(self, trial: Any) -> tuple[int, ...]:
        return tuple(
            trial.suggest_int(name, 0, size - 1)
            if self._ordered[name]
            else trial.suggest_categorical(name, list(range(size)))
            for name, size in self._sizes.items()
        )

    def follow(self, _step: int, _loss: float, value: float | None) -> None:
        """Note the validation measure after a step of a fit; raise ``FitPruned`` to stop it."""
        if value is None:
            return
        self._best = max(self._best, self._sign * value)
        # The steps of a cascade's rankers begin anew.
        self._step += 1
        self._trial.report(self._sign * value, self._step)
        # Repeated suggestions are complete trials of the study, too: only fits count here.
        if self._complete >= _UNPRUNED and self._trial.should_prune():
            raise FitPruned

    def pruned(self) -> float:
        """Note that the fit was stopped, and return its best value so far."""
        from optuna.trial import TrialState

        self._study.tell(self._trial, state=TrialState.PRUNED)
        self._values[self._indices] = self._best
        return self._sign * self._best

    def tell(self, value: float) -> None:
        """Note the value of a complete fit."""
        self._study.tell(self._trial, self._sign * value)
        self._values[self._indices] = self._sign * value
        self._complete += 1


def _in_order(values: Sequence[Any]) -> bool:
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
        return False
    return list(values) in (sorted(values), sorted(values, reverse=True))
