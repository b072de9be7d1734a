"""How much work a judging project is: simulate it before asking anyone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from podium.data.seeds import generator
from podium.errors import ArgumentError
from podium.judging.algorithms import get_algorithm
from podium.judging.algorithms.selection import run_selection
from podium.judging.assessors.simulated import GRADE_SECONDS, HABITS, Habits, SimulatedAssessor
from podium.judging.assignment import Overlap
from podium.judging.kndcg import k_ndcg
from podium.kernels import Doubles, Ints


@dataclass(frozen=True, eq=False)
class Workload:
    """What judging some queries takes.

    Attributes:
        algorithm: Which algorithm was played.
        queries: How many queries there are.
        judgments: How many judgments each simulated query took, second opinions left out.
        rounds: In how many batches: the fewest turns if many judge a query at once.
        quality: The κ-NDCG@k of each result against the simulated truth.
        overlap: Which share of pairs is judged by more than one.
        seconds: How long a judgment takes.
    """

    algorithm: str
    queries: int
    judgments: Ints
    rounds: Ints
    quality: Doubles
    overlap: Overlap | None
    seconds: float

    @property
    def votes_per_pair(self) -> float:
        """How many people judge a pair on average."""
        if self.overlap is None:
            return 1.0
        return 1 + self.overlap.share * (self.overlap.assessors - 1)

    @property
    def per_query(self) -> float:
        """The mean number of judgments of a query."""
        return float(self.judgments.mean()) * self.votes_per_pair

    @property
    def total(self) -> float:
        """The expected number of judgments of all queries."""
        return self.per_query * self.queries

    @property
    def hours(self) -> float:
        """The expected hours of work, breaks left out."""
        return self.total * self.seconds / 3600

    def hours_within(self, confidence: float = 0.9) -> tuple[float, float]:
        """The range that the hours of all queries will be in, by Student's prediction interval.

        Queries differ by chance: those that are to be judged, and those that were simulated, of
        which there are few. Which pairs get a second opinion is chance too.

        Args:
            confidence: How often the hours are to be in the range, between 0 and 1.
        """
        runs = len(self.judgments)
        if not 0 < confidence < 1:
            raise ArgumentError(f"confidence is {confidence}", hint="Give a number in (0, 1).")
        if runs < 2:
            raise ArgumentError("one simulated query has no range", hint="Give runs=2 or more.")
        each = float(self.judgments.var(ddof=1)) * self.votes_per_pair**2
        variance = each * self.queries * (1 + self.queries / runs)
        if self.overlap is not None:
            share, more = self.overlap.share, self.overlap.assessors - 1
            pairs = float(self.judgments.mean()) * self.queries
            variance += pairs * share * (1 - share) * more**2
        width = float(stdtrit(runs - 1, (1 + confidence) / 2))
        swing = width * np.sqrt(variance) * self.seconds / 3600
        return max(self.hours - swing, 0.0), self.hours + swing

    def people(self, hours_each: float) -> int:
        """How many people it takes if each works this many hours."""
        if hours_each <= 0:
            raise ArgumentError(f"{hours_each} hours are too few", hint="Give more than 0.")
        return int(np.ceil(self.hours / hours_each))


def estimate_workload(
    queries: int,
    items: int,
    k: int = 10,
    *,
    algorithm: str = "adaptive",
    prior: float = 0.0,
    habits: Habits = HABITS["real"],
    overlap: Overlap | None = None,
    runs: int = 200,
    random_state: int = 0,
) -> Workload:
    """Play many queries with simulated assessors and add up what all of them take.

    Args:
        queries: How many queries are to be judged.
        items: How many items each has.
        k: How many to put in order.
        algorithm: A name in `podium.judging.algorithms.ALGORITHMS`.
        prior: The correlation of an existing ranking with the truth, from 0 to 1.
        habits: How people judge.
        overlap: Which pairs are judged by several people.
        runs: How many queries to play.
        random_state: Draws them.

    Example:
        >>> work = estimate_workload(500, 50, k=10, runs=20)
        >>> work.people(hours_each=20) >= 1
        True
    """
    if not 0 <= prior <= 1:
        raise ArgumentError(f"the prior's correlation is {prior}", hint="Give 0 to 1.")
    _check_sizes(queries, items, k, runs)
    select = get_algorithm(algorithm)
    random = generator(random_state)
    results = []
    for number in range(runs):
        relevance = random.standard_normal(items)
        scores = prior * relevance + np.sqrt(1 - prior**2) * random.standard_normal(items)
        relevance = relevance[np.argsort(-scores)]
        judge = SimulatedAssessor[int](relevance.tolist(), habits, random_state=number)
        selected = run_selection(select, items, k, judge)
        results.append((selected.judgments, selected.rounds, k_ndcg(selected.top, relevance, k)))
    judgments, rounds, quality = np.array(results).T
    return Workload(
        algorithm,
        queries,
        judgments.astype(np.int64),
        rounds.astype(np.int64),
        quality,
        overlap,
        habits.seconds,
    )


def estimate_grading_workload(
    queries: int,
    items: int,
    k: int = 10,
    *,
    habits: Habits = HABITS["real"],
    overlap: Overlap | None = None,
    seconds: float = GRADE_SECONDS,
    runs: int = 200,
    random_state: int = 0,
) -> Workload:
    """The same for grading every item on five levels; equal grades are in random order.

    Example:
        >>> estimate_grading_workload(500, 50, k=10, runs=20).total
        25000.0
    """
    _check_sizes(queries, items, k, runs)
    random = generator(random_state)
    quality = []
    for number in range(runs):
        relevance = random.standard_normal(items)
        judge = SimulatedAssessor[int](relevance.tolist(), habits, random_state=number)
        grades = np.array([judge.grade(item) for item in range(items)])
        top = np.argsort(-grades - random.random(items))
        quality.append(k_ndcg(top.tolist(), relevance, k))
    each = np.full(runs, items)
    return Workload("five grades", queries, each, each, np.array(quality), overlap, seconds)


def _check_sizes(*sizes: int) -> None:
    if min(sizes) < 1:
        raise ArgumentError(
            "queries, items, k and runs are at least 1", hint="Give larger numbers."
        )
