"""Ways to the ordered top k when judges err: κ-NDCG@10 of the result against judgments spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from podium.judging import HABITS, Grade, Outcome, Session, SimulatedAssessor, Verdict
from podium.judging.active_sampling import by_expected_gain, expected_gains
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.selection import run_selection
from podium.judging.assessors.simulated import Habits
from podium.judging.bradley_terry import Duels, fit_bradley_terry
from podium.judging.kndcg import k_ndcg

ITEMS, K = 50, 10
NOISES = {
    "10 % of verdicts flipped": Habits(flips=0.1),
    "25 % of verdicts flipped": Habits(flips=0.25),
    "noise and ties of real people": HABITS["real"],
}
SMALL = 50
BUDGETS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150, 200, 250)

Ranking = Sequence[int] | NDArray[np.int64]
Way = Callable[[list[float], Habits, int], Iterator[Ranking]]
"""Given true relevance, habits and a seed: the ranking after 1, 2, 3, … judgments."""


def selection(name: str) -> Way:
    """A selection algorithm: the most probable ranking so far, then its final result."""

    def rankings(relevance: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
        judge = SimulatedAssessor[int](relevance, habits, random_state=seed)
        ranking_log: list[Ranking] = []
        rows: list[tuple[int, int, int, int]] = []

        def answer(left: int, right: int) -> Outcome:
            outcome = judge(left, right)
            rows.append((left, right, int(outcome), 0))
            ranking_log.append(_likeliest(rows) if len(rows) in BUDGETS else ())
            return outcome

        top = run_selection(ALGORITHMS[name], ITEMS, K, answer).top
        yield from ranking_log
        while True:
            yield top

    return rankings


def _likeliest(rows: list[tuple[int, int, int, int]]) -> Ranking:
    return by_expected_gain(expected_gains(fit_bradley_terry(ITEMS, Duels.of(rows)), K))


def careful(graded: int) -> Way:
    """A careful session, each verdict by another person, after some items have been graded."""

    def rankings(relevance: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
        names = [str(item) for item in range(ITEMS)]
        judge = SimulatedAssessor(
            dict(zip(names, relevance, strict=True)), habits, random_state=seed
        )
        session = Session(names, K, algorithm="careful", budget=10**6, random_state=seed)
        for spent in count():
            if spent:
                yield _named(session) if spent in BUDGETS else ()
            if spent < graded:
                item = names[_grading_order(seed, 0)[spent]]
                session.add(Grade(item, judge.grade(item), "grader"))
            else:
                pair = session.open_pairs()[0]
                session.add(Verdict(*pair, judge(*pair), str(spent)))

    return rankings


def _named(session: Session) -> Ranking:
    return [int(item) for item in session.result().top]


def active_bradley_terry(relevance: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
    """Ask the most informative pair under Podium's Bradley-Terry model: D-optimal design."""
    judge = SimulatedAssessor[int](relevance, habits, random_state=seed)
    random = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int]] = []
    fit = fit_bradley_terry(ITEMS, Duels.of(rows))
    while True:
        covariance = np.linalg.inv(fit.precision)
        variance = np.diag(covariance)
        chance = 1 / (1 + np.exp(-np.subtract.outer(fit.means, fit.means)))
        information = chance * (1 - chance) * (np.add.outer(variance, variance) - 2 * covariance)
        information *= 1 + 1e-6 * random.random(information.shape)  # equals are drawn from
        left, right = np.unravel_index(int(information.argmax()), information.shape)
        rows.append((int(left), int(right), int(judge(int(left), int(right))), 0))
        fit = fit_bradley_terry(ITEMS, Duels.of(rows), start=fit.means)
        yield by_expected_gain(expected_gains(fit, K)) if len(rows) in BUDGETS else ()


def grading(relevance: list[float], habits: Habits, seed: int) -> Iterator[Ranking]:
    """Grade items on five levels, one after the other, in repeated rounds; rank by mean grade."""
    judge = SimulatedAssessor[int](relevance, habits, random_state=seed)
    random = np.random.default_rng(seed)
    sums, counts = np.zeros(ITEMS), np.zeros(ITEMS)
    for person in count():
        for item in _grading_order(seed, person):
            sums[item] += judge.grade(item)
            counts[item] += 1
            means = np.where(counts > 0, sums / np.maximum(counts, 1), 2.0)
            yield np.argsort(-means - 1e-6 * random.random(ITEMS))


def _grading_order(seed: int, person: int) -> list[int]:
    """The same order for every method that grades, so that only the use of grades differs."""
    order: list[int] = np.random.default_rng([seed, person]).permutation(ITEMS).tolist()
    return order


PODIUM: dict[str, Way] = {
    **{name: selection(name) for name in ALGORITHMS},
    "careful": careful(0),
    "careful after 35 grades": careful(35),
}
OTHERS: dict[str, Way] = {"active Bradley-Terry": active_bradley_terry, "five grades": grading}


def play_ways(
    ways: Mapping[str, Way], habits: Habits, simulations: int, budgets: Sequence[int]
) -> dict[str, NDArray[np.float64]]:
    """Simulate methods of judging: κ-NDCG@10, one row per simulation and one column per budget.

    All methods judge the same simulated queries. Only every third simulation goes beyond `SMALL`
    judgments (NaN otherwise): small budgets take little time, and there the methods are so close
    that more simulations are needed to tell them apart.
    """
    quality = {name: np.full((simulations, len(budgets)), np.nan) for name in ways}
    for simulation in range(simulations):
        relevance = np.random.default_rng(simulation).standard_normal(ITEMS).tolist()
        for name, way in ways.items():
            rankings = way(relevance, habits, simulation)
            spent = 0
            for column, budget in enumerate(budgets):
                if budget > SMALL and simulation % 3:
                    break
                while spent < budget:
                    ranking = next(rankings)
                    spent += 1
                quality[name][simulation, column] = k_ndcg(ranking, relevance, K)
    return quality


def mean_and_error(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean over simulations and its standard error, by budget."""
    counts = (~np.isnan(values)).sum(axis=0)
    return np.nanmean(values, axis=0), np.nanstd(values, axis=0) / np.sqrt(counts)
