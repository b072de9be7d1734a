"""Choosing a ranker's parameters on validation queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sklearn.base import clone

from podium.data.seeds import generator
from podium.errors import ArgumentError
from podium.measures import Measure, parse_measure
from podium.rankers.base import Ranker, Training, in_memory, mean_value, members_of
from podium.rankers.parameter_checks import check_integer


@dataclass(frozen=True)
class Trial:
    """One choice of parameters and what it reached on the validation queries."""

    parameters: Mapping[str, Any]
    value: float


@dataclass(frozen=True)
class Tuning:
    """What a search found: every trial, best first, and the best ranker."""

    trials: tuple[Trial, ...]
    ranker: Ranker


def tune(
    ranker: Ranker,
    choices: Mapping[str, Sequence[Any]],
    train: Training,
    validation: Training,
    *,
    measure: str | Measure = "nDCG@10",
    trials: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int, Trial], None] | None = None,
) -> Tuning:
    """Fit a ranker for each choice of parameters and keep the best on the validation queries.

    Args:
        ranker: What to tune; it is cloned, not changed.
        choices: The values to try for each parameter. What a tree ranker does not know is set in
            its ``parameters``, which go to the engine.
        train: What each ranker is fitted on.
        validation: What chooses between them.
        measure: By which measure.
        trials: Try so many combinations drawn at random; by default all of them.
        seed: Draws them.
        progress: Called after each trial with its number, their total and the trial.

    Example:
        >>> import numpy as np
        >>> from podium.data import Dataset
        >>> from podium.rankers import LinearRanker
        >>> random = np.random.default_rng(0)
        >>> X, noise = random.random((400, 3)), random.normal(size=400)
        >>> labels = np.clip(np.round(3 * X[:, 0] + noise), 0, 3)
        >>> data = Dataset.from_arrays(X, labels=labels, group=[20] * 20)
        >>> train, held_out = data.split(0.5, 0.5)
        >>> found = tune(LinearRanker(), {"penalty": [1e-4, 1e-2, 1.0]}, train, held_out)
        >>> len(found.trials), found.trials[0].value >= found.trials[-1].value
        (3, True)
    """
    sign = 1.0 if parse_measure(measure).larger_is_better else -1.0
    held_out = in_memory(validation)
    # Loaded once for all trials; a ranker that streams its data never holds them whole.
    data = train if ranker.streams else in_memory(train)
    combinations = combinations_of(choices, trials, seed)
    done: list[Trial] = []
    best: Ranker | None = None
    for number, parameters in enumerate(combinations, start=1):
        candidate = with_parameters(clone(ranker), parameters)
        candidate.fit(data, validation=held_out)
        value = mean_value(measure, held_out, candidate.predict(held_out))
        if best is None or sign * value > max(sign * trial.value for trial in done):
            best = candidate
        done.append(Trial(parameters, value))
        if progress is not None:
            progress(number, len(combinations), done[-1])
    assert best is not None  # there is at least one combination
    return Tuning(tuple(sorted(done, key=lambda trial: -sign * trial.value)), best)


def combinations_of(
    choices: Mapping[str, Sequence[Any]], trials: int | None, seed: int
) -> list[dict[str, Any]]:
    """The combinations of parameters to try: all, or so many drawn at random."""
    if trials is not None:
        check_integer("trials", trials)
    for name, values in choices.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ArgumentError(f"{name} has no list of values", hint=f"Give [{values!r}].")
    combinations = [
        dict(zip(choices, values, strict=True)) for values in product(*choices.values())
    ]
    if not combinations:
        raise ArgumentError("There is nothing to try. Give at least one value for each parameter.")
    if trials is not None and trials < len(combinations):
        drawn = generator(seed).permutation(len(combinations))[:trials]
        combinations = [combinations[place] for place in sorted(drawn)]
    return combinations


def with_parameters(ranker: Ranker, parameters: Mapping[str, Any]) -> Ranker:
    """Set parameters of a ranker; what it does not know goes to its engine, if it has one."""
    known = ranker.get_params(deep=False)
    foreign = {name: value for name, value in parameters.items() if name not in known}
    if foreign and "parameters" not in known:
        raise ArgumentError(
            f"{', '.join(foreign)}: no such parameter. There are: {', '.join(known)}."
        )
    own = {name: value for name, value in parameters.items() if name in known}
    if foreign:
        own["parameters"] = {**(known["parameters"] or {}), **foreign}
    ranker.set_params(**own)
    for member in members_of(ranker):  # those of a cascade are measured and drawn as it is
        shared = {name: parameters[name] for name in ("measure", "seed") if name in parameters}
        names = member.get_params(deep=False)
        with_parameters(member, {name: shared[name] for name in shared if name in names})
    return ranker
