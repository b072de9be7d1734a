"""Choose a ranker's parameters on validation queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from sklearn.base import BaseEstimator, clone

from podium.data.seeds import generator
from podium.errors import ArgumentError
from podium.measures.names import parse_measure
from podium.measures.presets import conventions_for
from podium.measures.registry import Measure
from podium.rankers.base import Ranker, nested_rankers
from podium.rankers.parameter_checks import check_integer
from podium.rankers.tpe import FitPruned, ParzenSearch
from podium.rankers.training_data import TrainingData, in_memory
from podium.rankers.validation_monitor import mean_value
from podium.registry import unknown_name

Sampler: TypeAlias = Literal["random", "tpe"]
"""How combinations of parameters are chosen."""

_Estimator = TypeVar("_Estimator", bound=BaseEstimator)
"""A ranker, of features or of texts."""


@dataclass(frozen=True)
class Trial:
    """One combination of parameters and its measure on the validation queries.

    Attributes:
        params: The parameters.
        value: The measure; of a pruned fit, its best until then.
        pruned: Whether the fit was stopped early, because most others were better.
    """

    params: Mapping[str, Any]
    value: float
    pruned: bool = False


@dataclass(frozen=True)
class TuningResult:
    """The result of a search: every trial, best first, and the best ranker, fitted.

    Pruned trials come last.
    """

    trials: tuple[Trial, ...]
    best_ranker: Ranker


def tune(
    ranker: Ranker,
    param_grid: Mapping[str, Sequence[Any]],
    train: TrainingData,
    validation: TrainingData,
    *,
    measure: str | Measure = "nDCG@10",
    n_trials: int | None = None,
    random_state: int = 0,
    sampler: Sampler = "random",
    progress: Callable[[int, int, Trial], None] | None = None,
) -> TuningResult:
    """Fit a ranker for each combination of parameters and keep the best on validation queries.

    Args:
        ranker: The ranker to tune; it is cloned, not changed.
        param_grid: The values to try for each parameter. Parameters that a tree ranker does not
            have are set in its ``engine_params``.
        train: The training queries.
        validation: The validation queries.
        measure: The measure that chooses the best ranker.
        n_trials: The number of combinations to try; by default all.
        random_state: The seed of the search.
        sampler: How combinations are chosen: ``"random"``, or ``"tpe"``, Optuna's tree-structured
            Parzen estimator (extra ``tuning``), which learns from the trials before, and stops fits
            whose validation measure stays behind the median, if the ranker's own ``measure`` is
            the one that chooses.
        progress: Called after each trial with its number, the number of trials, and the trial.

    Example:
        >>> import numpy as np
        >>> from podium.data import Dataset
        >>> from podium.rankers import LinearRanker
        >>> rng = np.random.default_rng(0)
        >>> X, noise = rng.random((400, 3)), rng.normal(size=400)
        >>> labels = np.clip(np.round(3 * X[:, 0] + noise), 0, 3)
        >>> data = Dataset.from_arrays(X, labels=labels, group=[20] * 20)
        >>> train, validation = data.split(0.5, 0.5)
        >>> result = tune(LinearRanker(), {"alpha": [1e-4, 1e-2, 1.0]}, train, validation)
        >>> len(result.trials), result.trials[0].value >= result.trials[-1].value
        (3, True)
    """
    sign = 1.0 if parse_measure(measure).larger_is_better else -1.0
    eval_set = in_memory(validation)
    # Loaded once for all trials, unless the ranker streams its data.
    data = train if ranker.streams else in_memory(train)
    search = _search(param_grid, n_trials, random_state, sampler, larger_is_better=sign > 0)
    trials: list[Trial] = []
    best: tuple[float, Ranker] | None = None
    for number, parameters in enumerate(search, start=1):
        candidate = with_parameters(clone(ranker), parameters)
        try:
            # Rankers of others may take no progress, and need none where nothing is pruned.
            following: dict[str, Any] = {}
            if search.follow is not None and _reports(candidate, measure):
                following["progress"] = search.follow
            candidate.fit(data, eval_set=eval_set, **following)
        except FitPruned:
            trials.append(Trial(parameters, search.pruned(), pruned=True))
        else:
            value = mean_value(measure, eval_set, candidate.predict(eval_set))
            search.tell(value)
            if best is None or sign * value > best[0]:
                best = sign * value, candidate
            trials.append(Trial(parameters, value))
        if progress is not None:
            progress(number, search.total, trials[-1])
    assert best is not None  # there is at least one combination, and the first is not pruned
    order = sorted(trials, key=lambda trial: (trial.pruned, -sign * trial.value))
    return TuningResult(tuple(order), best[1])


def _reports(ranker: Ranker, measure: str | Measure) -> bool:
    """Return whether a fit reports a measure: by another one it cannot be compared."""
    own = [
        each.get_params(deep=False).get("measure", measure)
        for each in (ranker, *nested_rankers(ranker))
    ]
    return all(
        repr(parse_measure(each)) == repr(parse_measure(measure))
        and conventions_for(each, None) == conventions_for(measure, None)
        for each in own
    )


class _ListSearch:
    """Combinations that are known from the start, whatever comes of them."""

    follow = None

    def __init__(self, combinations: Sequence[dict[str, Any]]) -> None:
        self._combinations, self.total = combinations, len(combinations)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._combinations)

    def tell(self, value: float) -> None:
        """Take note of nothing."""

    def pruned(self) -> float:
        raise NotImplementedError  # nothing is followed


def _search(
    param_grid: Mapping[str, Sequence[Any]],
    n_trials: int | None,
    random_state: int,
    sampler: Sampler,
    *,
    larger_is_better: bool,
) -> ParzenSearch | _ListSearch:
    if sampler == "random":
        return _ListSearch(parameter_combinations(param_grid, n_trials, random_state))
    if sampler != "tpe":
        raise unknown_name("sampler", sampler, get_args(Sampler))
    return ParzenSearch(
        _checked_grid(param_grid), n_trials, random_state, larger_is_better=larger_is_better
    )


def parameter_combinations(
    param_grid: Mapping[str, Sequence[Any]], n_trials: int | None, random_state: int
) -> list[dict[str, Any]]:
    """Return the combinations of parameters to try: all, or ``n_trials`` drawn at random."""
    if n_trials is not None:
        check_integer("n_trials", n_trials)
    grid = _checked_grid(param_grid)
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if n_trials is not None and n_trials < len(combinations):
        drawn = generator(random_state).permutation(len(combinations))[:n_trials]
        combinations = [combinations[index] for index in sorted(drawn)]
    return combinations


def _checked_grid(param_grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the values of each parameter as lists; raise an ArgumentError if there are none."""
    for name, values in param_grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ArgumentError(f"{name} is not a list of values", hint=f"Give [{values!r}].")
    grid = {name: list(values) for name, values in param_grid.items()}
    if not all(grid.values()):
        raise ArgumentError("there is nothing to try", hint="Give each parameter a value or more.")
    return grid


def with_parameters(ranker: _Estimator, parameters: Mapping[str, Any]) -> _Estimator:
    """Set parameters of a ranker; those it does not have are set in its ``engine_params``, if any.

    A cascade passes ``measure`` and ``random_state`` on to its rankers.
    """
    known = ranker.get_params(deep=False)
    unknown = {name: value for name, value in parameters.items() if name not in known}
    if unknown and "engine_params" not in known:
        raise ArgumentError(
            f"{type(ranker).__name__} has no parameter {', '.join(unknown)}",
            hint=f"Its parameters are: {', '.join(known)}.",
        )
    settings = {name: value for name, value in parameters.items() if name in known}
    if unknown:
        chosen = settings.get("engine_params", known["engine_params"])
        settings["engine_params"] = {**(chosen or {}), **unknown}
    ranker.set_params(**settings)
    for nested in nested_rankers(ranker):
        names = nested.get_params(deep=False)
        shared = [name for name in ("measure", "random_state") if name in parameters]
        with_parameters(nested, {name: parameters[name] for name in shared if name in names})
    return ranker
