"""Strategies of a session: a selection algorithm, or the most informative pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from podium.judging.active_sampling import expected_gains, most_informative_pairs
from podium.judging.algorithms.knockout import tournament
from podium.judging.algorithms.selection import Algorithm, Pair, Selection
from podium.judging.bradley_terry import (
    SPREAD,
    Duels,
    Posterior,
    fit_bradley_terry,
    prior_strengths,
)
from podium.judging.forecast import expected_correlation, expected_left
from podium.judging.log_summary import LogSummary
from podium.kernels import Doubles

_HEAT = 16
"""How many items play a knock-out before anything is known."""

_AT_ONCE = 4
"""How many telling pairs are open at once: the later ones would change with the first verdict."""

_GRADE_TRUST = 0.7
"""The correlation of one person's grades with the truth."""

_DECIMALS = 9
"""Up to which estimates are compared; beyond, they differ by the order of additions."""


@dataclass(frozen=True)
class SelectionProblem:
    """What is to be judged: the items in the order they are taken, and how many matter."""

    order: Sequence[int]
    k: int
    ordered: bool
    random_state: int


class Strategy(Protocol):
    """Chooses the pairs to ask next and ranks the items by the answers."""

    def waiting(self, assessor: str | None) -> list[Pair[int]]:
        """The pairs to judge now, for a person or for anyone."""

    def ranked(self) -> tuple[Sequence[int], bool]:
        """Items, best first, and whether that is final."""

    def expected_left(self, draws: int) -> float:
        """About how many judgments are still needed."""


class SelectionStrategy:
    """Runs a selection algorithm as far as the record goes."""

    def __init__(
        self, algorithm: Algorithm[Any], problem: SelectionProblem, summary: LogSummary
    ) -> None:
        self._algorithm = algorithm
        self._problem = problem
        self._summary = summary
        self._selection: Selection[int] = algorithm(problem.order, problem.k)
        self._batch: list[Pair[int]] | None = None
        self._top: list[int] | None = None

    def waiting(self, assessor: str | None) -> list[Pair[int]]:
        """The open pairs of the present batch; with none left, the algorithm moves on."""
        waiting = self._move()
        if assessor is None:
            return waiting
        votes = self._summary.votes
        return [pair for pair in waiting if assessor not in votes.get((min(pair), max(pair)), {})]

    def ranked(self) -> tuple[Sequence[int], bool]:
        """The algorithm's top k, or all items by what is likeliest so far."""
        self._move()
        if self._top is not None:
            return self._top, True
        return estimated_order(self._problem, self._summary), False

    def expected_left(self, draws: int) -> float:
        """The mean over simulated orders that agree with all that is known."""
        if not self._move():
            return 0.0
        problem = self._problem
        return expected_left(
            self._algorithm,
            problem.order,
            problem.k,
            self._summary.known,
            self._summary.answer,
            ordered=problem.ordered,
            draws=draws,
            random_state=problem.random_state,
        )

    def _move(self) -> list[Pair[int]]:
        """Move the algorithm on as far as it goes, and return the pairs that it waits for."""
        summary = self._summary
        judged = summary.known.judged
        if self._top is not None:
            return []
        try:
            if self._batch is None:
                self._batch = next(self._selection)
            while True:
                outcomes = []
                waiting = []
                for pair in self._batch:
                    # Most pairs of a replay were judged: to look there first halves its time.
                    outcome = None if summary.bad else judged.get(pair)
                    if outcome is None:
                        outcome = summary.answer(summary.known, *pair)
                    if outcome is None:
                        waiting.append(pair)
                    else:
                        outcomes.append(outcome)
                if waiting:
                    return waiting
                self._batch = self._selection.send(outcomes)
        except StopIteration as end:
            self._top = end.value
            return []


class ActiveSamplingStrategy:
    """Asks the most informative pairs until a budget is spent; no single verdict is final.

    Nobody is asked the same pair twice. So it also ends when all who have judged so far have judged
    every pair; someone new can still go on.

    Without a prior ranking or grades, the first items play a knock-out, because a search for the
    best needs someone to beat.
    """

    def __init__(self, budget: int, problem: SelectionProblem, summary: LogSummary) -> None:
        self._budget = budget
        self._problem = problem
        self._summary = summary

    def waiting(self, assessor: str | None) -> list[Pair[int]]:
        """The most telling pairs that the person has not judged, or someone of those who judge."""
        left = self._left()
        if left == 0:
            return []
        judged = self._judged(assessor)
        heat = [pair for pair in self._heat() if (min(pair), max(pair)) not in judged]
        if heat:
            return heat[:left]
        return most_informative_pairs(
            _posterior(self._problem, self._summary),
            self._problem.k,
            count=min(_AT_ONCE, left),
            without=judged,
            out=self._summary.bad,
            # Other draws each time, or an item that is low in all of them is never asked about.
            random_state=(self._problem.random_state + 1 + left)
            % 2**63,  # the largest seed has a next one, too
        )

    def ranked(self) -> tuple[Sequence[int], bool]:
        """Items by expected gain; final once nothing is asked any more."""
        return estimated_order(self._problem, self._summary), not self.waiting(None)

    def expected_left(self, _draws: int) -> float:
        """What is left of the budget, or of the pairs that those who judge have not judged."""
        if not self.waiting(None):
            return 0.0
        bad, votes = self._summary.bad, self._summary.votes
        items = len(self._problem.order) - len(bad)
        possible = max(len(self._people()), 1) * items * (items - 1) // 2
        votes_of_pair = sum(
            len(votes_of_pair)
            for pair, votes_of_pair in votes.items()
            if not bad.intersection(pair)
        )
        return float(min(self._left(), possible - votes_of_pair))

    def _people(self) -> set[str]:
        return set(_names(self._summary))

    def _judged(self, assessor: str | None) -> set[tuple[int, int]]:
        """The pairs that a person has judged; for anyone, those that everyone has who judges."""
        votes = self._summary.votes
        if assessor is not None:
            return {pair for pair, votes_of_pair in votes.items() if assessor in votes_of_pair}
        people = len(self._people())
        return {pair for pair, votes_of_pair in votes.items() if len(votes_of_pair) == people}

    def _spent(self) -> int:
        return sum(map(len, self._summary.votes.values()))

    def _left(self) -> int:
        return max(self._budget - self._spent(), 0)

    def _heat(self) -> list[Pair[int]]:
        """The first matches; later verdicts may overturn them, but not bring the heat back."""
        if self._problem.ordered or self._summary.grades or self._spent() >= _HEAT - 1:
            return []
        plan = SelectionStrategy(
            tournament, SelectionProblem(self._problem.order[:_HEAT], 1, False, 0), self._summary
        )
        return plan.waiting(None)


def estimated_order(problem: SelectionProblem, summary: LogSummary) -> list[int]:
    """All items by expected gain, assuming that any verdict may be wrong."""
    return list(chain.from_iterable(estimated_levels(problem, summary)))


def estimated_levels(
    problem: SelectionProblem, summary: LogSummary, *, reliability: bool = False
) -> list[list[int]]:
    """The same, items between which nothing decides together, in the order they are taken.

    Args:
        problem: The items.
        summary: What was judged.
        reliability: Whether to give less weight to people whom the others contradict.
    """
    posterior = _posterior(problem, summary, reliability)
    gains = expected_gains(posterior, problem.k, out=summary.bad)[:, 0]
    order = np.asarray(problem.order)
    with np.errstate(divide="ignore"):  # items that are surely not in the top k have no gain
        keys = np.round([np.log(gains[order]), posterior.means[order]], _DECIMALS)
    ranked = np.lexsort((-keys[1], -keys[0]))
    new_level = (keys[:, ranked[1:]] != keys[:, ranked[:-1]]).any(axis=0)
    return [level.tolist() for level in np.split(order[ranked], np.flatnonzero(new_level) + 1)]


def learned_slopes(problem: SelectionProblem, summary: LogSummary) -> dict[str, float]:
    """How much of a difference between items shows in each person's verdicts."""
    slopes = _posterior(problem, summary, reliability=True).slopes
    return dict(zip(_names(summary), slopes.tolist(), strict=True)) if summary.votes else {}


def _names(summary: LogSummary) -> list[str]:
    return sorted({name for votes_of_pair in summary.votes.values() for name in votes_of_pair})


def _posterior(
    problem: SelectionProblem, summary: LogSummary, reliability: bool = False
) -> Posterior:
    names = _names(summary)
    raters = {name: number if reliability else 0 for number, name in enumerate(names)}
    # Sorted, so that sums are identical to the last bit in any order of verdicts.
    rows = sorted(
        (left, right, int(outcome), raters[name])
        for (left, right), votes_of_pair in summary.votes.items()
        for name, outcome in votes_of_pair.items()
    )
    items = len(problem.order)
    means, spread = np.zeros(items), np.full(items, SPREAD)
    if problem.ordered:
        trust = expected_correlation(problem.order, summary.known)
        ranked, spread[:] = prior_strengths(items, trust)
        means[np.asarray(problem.order)] = ranked
    elif summary.grades:
        _grade_prior(summary, means, spread)
    return fit_bradley_terry(
        items, Duels.of(rows), means=means, spread=spread, reliability=reliability
    )


def _grade_prior(summary: LogSummary, means: Doubles, spread: Doubles) -> None:
    """Set the prior from grades: their ranks correlate with the truth, more so with many grades."""
    items = np.array(list(summary.grades))
    grade_lists = [list(votes_of_pair.values()) for votes_of_pair in summary.grades.values()]
    grades = np.array([np.mean(values) for values in grade_lists])
    ranks = ((grades > grades[:, None]).sum(axis=0) + (grades >= grades[:, None]).sum(axis=0)) / 2
    quantiles = ndtri(ranks / len(ranks))
    counts = np.array([len(values) for values in grade_lists])
    trust = _GRADE_TRUST * np.sqrt(counts / (1 + (counts - 1) * _GRADE_TRUST**2))
    means[items] = trust * SPREAD * quantiles
    spread[items] = SPREAD * np.sqrt(1 - trust**2)
