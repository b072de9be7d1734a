"""κ-NDCG@10 of the result against judgments spent, when judges err."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.judging import (
    ALGORITHMS,
    Duels,
    Grade,
    Habits,
    Outcome,
    Session,
    SimulatedAssessor,
    Verdict,
    fit_worths,
    k_ndcg,
    play,
)
from podium.judging.careful import by_expected_gain, expected_gains
from podium.judging.knowledge import Knowledge

ITEMS, K = 50, 10
BUDGETS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150, 200, 250)

Ranking = Sequence[int] | NDArray[np.int64]
Way = Callable[[list[float], Habits, int], Iterator[Ranking]]
"""Given worths, habits and a seed: the ranking after 1, 2, 3, … judgments."""


def selection(name: str) -> Way:
    """A selection algorithm, with its result so far, and its result once it has ended."""

    def rankings(worths: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
        judge = SimulatedAssessor[int](worths, habits, seed=seed)
        known = Knowledge(ITEMS)
        found: list[Ranking] = []

        def answer(left: int, right: int) -> Outcome:
            outcome = known.outcome(left, right)
            if outcome is None:
                outcome = judge(left, right)
                known.tell(left, right, outcome)
                if len(found) + 1 in BUDGETS:
                    found.append(np.argsort(-known.heights(), kind="stable"))
                else:
                    found.append(())
            return outcome

        top, _ = play(ALGORITHMS[name](range(ITEMS), K), answer)
        yield from found
        while True:
            yield top

    return rankings


def careful(worths: list[float], habits: Habits, seed: int, grades: int = 0) -> Iterator[Ranking]:
    """A careful session, each verdict by another person, after some rounds of grading."""
    names = [str(item) for item in range(ITEMS)]
    judge = SimulatedAssessor(dict(zip(names, worths, strict=True)), habits, seed=seed)
    session = Session(names, K, algorithm="careful", budget=10**6, seed=seed)
    spent = 0
    for person in range(grades):
        for item in np.random.default_rng([seed, person]).permutation(names).tolist():
            session.add(Grade(item, judge.grade(item), str(person)))
            spent += 1
            yield _named(session) if spent in BUDGETS else ()
    while True:
        pair = session.open_pairs()[0]
        session.add(Verdict(*pair, judge(*pair), str(spent)))
        spent += 1
        yield _named(session) if spent in BUDGETS else ()


def graded_then_careful(worths: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
    """Everything is graded once, then pairs are judged with care."""
    return careful(worths, habits, seed, grades=1)


def _named(session: Session) -> Ranking:
    return [int(item) for item in session.result().top]


def active_bradley_terry(worths: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
    """The pair that tells most about all worths, by the model that Podium has: D-optimal design."""
    judge = SimulatedAssessor[int](worths, habits, seed=seed)
    random = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int]] = []
    fit = fit_worths(ITEMS, Duels.of(rows))
    while True:
        covariance = np.linalg.inv(fit.precision)
        variance = np.diag(covariance)
        chance = 1 / (1 + np.exp(-np.subtract.outer(fit.means, fit.means)))
        information = chance * (1 - chance) * (np.add.outer(variance, variance) - 2 * covariance)
        information *= 1 + 1e-6 * random.random(information.shape)  # equals are drawn from
        left, right = np.unravel_index(int(information.argmax()), information.shape)
        rows.append((int(left), int(right), int(judge(int(left), int(right))), 0))
        fit = fit_worths(ITEMS, Duels.of(rows), start=fit.means)
        yield by_expected_gain(expected_gains(fit, K)) if len(rows) in BUDGETS else ()


def grading(worths: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
    """Five levels, one item after the other, again and again; items by their mean grade."""
    judge = SimulatedAssessor[int](worths, habits, seed=seed)
    random = np.random.default_rng(seed)
    sums, counts = np.zeros(ITEMS), np.zeros(ITEMS)
    while True:
        for item in random.permutation(ITEMS).tolist():
            sums[item] += judge.grade(item)
            counts[item] += 1
            means = np.where(counts > 0, sums / np.maximum(counts, 1), 2.0)
            yield np.argsort(-means - 1e-6 * random.random(ITEMS))


PODIUM: dict[str, Way] = {
    **{name: selection(name) for name in ALGORITHMS},
    "careful": careful,
    "careful after grades": graded_then_careful,
}
OTHERS: dict[str, Way] = {"active Bradley-Terry": active_bradley_terry, "five grades": grading}


@dataclass(frozen=True)
class Curve:
    """Mean κ-NDCG@10 at each budget, and its standard error."""

    means: NDArray[np.float64]
    errors: NDArray[np.float64]


def curve(way: Way, habits: Habits, runs: int) -> Curve:
    """Play a way with many truths, the same ones for every way."""
    table = np.empty((runs, len(BUDGETS)))
    for run in range(runs):
        worths = np.random.default_rng(run).standard_normal(ITEMS).tolist()
        rankings = way(worths, habits, run)
        spent = 0
        for place, budget in enumerate(BUDGETS):
            while spent < budget:
                ranking = next(rankings)
                spent += 1
            table[run, place] = k_ndcg(ranking, worths, K)
    return Curve(table.mean(axis=0), table.std(axis=0) / np.sqrt(runs))
