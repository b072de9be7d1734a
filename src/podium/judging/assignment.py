"""Who judges what, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.data.seeds import hashed_uniform
from podium.errors import ArgumentError


@dataclass(frozen=True)
class Overlap:
    """Some pairs are judged by several people, so that their agreement can be measured.

    Attributes:
        share: The share of pairs that are.
        assessors: How many people judge each of them; the majority counts.
        random_state: Draws the pairs.

    Example:
        >>> Overlap(1.0, assessors=3).needed("a", "b")
        3
    """

    share: float
    assessors: int = 2
    random_state: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ArgumentError(f"the share of pairs is {self.share}", hint="Give 0 to 1.")
        if self.assessors < 1:
            raise ArgumentError(f"{self.assessors} assessors judge a pair", hint="Give at least 1.")

    def needed(self, left: str, right: str) -> int:
        """How many people judge a pair, whichever side its items are on."""
        one, other = sorted((left, right))
        return (
            self.assessors
            if hashed_uniform(self.random_state, "overlap", one, other) < self.share
            else 1
        )


@dataclass(frozen=True)
class Assignment:
    """A person judges a query in some mode, such as by pairs or by grades."""

    assessor: str
    query: str
    mode: str


def rotate(
    queries: Sequence[str],
    assessors: Sequence[str],
    *,
    modes: Sequence[str] = ("pairs", "grades"),
    rounds: int = 1,
    random_state: int = 0,
) -> list[Assignment]:
    """The fold rotation of Niu et al. 2012: nobody meets a query twice, everybody uses all modes.

    Queries are drawn into as many folds as there are people. In a round, person i judges fold i
    in the first mode, fold i + 1 in the second, and so on; the next round goes on from there.
    Each query is judged in each mode once a round, by different people: two rounds are needed to
    tell how far people agree.

    Args:
        queries: The queries.
        assessors: The people, at least one for each mode and round.
        modes: The ways of judging that are compared.
        rounds: How many people judge each query in each mode.
        random_state: Draws the folds.

    Example:
        >>> for assignment in rotate(["q1", "q2"], ["ann", "bob"], random_state=1):
        ...     print(assignment.assessor, assignment.query, assignment.mode)
        ann q1 pairs
        ann q2 grades
        bob q2 pairs
        bob q1 grades
    """
    people = len(assessors)
    if len(set(assessors)) < people or len(set(queries)) < len(queries):
        raise ArgumentError("an assessor or a query is repeated", hint="Name each once.")
    if rounds < 1 or rounds * len(modes) > people:
        raise ArgumentError(
            f"{people} people cannot judge {rounds} times in {len(modes)} modes without meeting a "
            "query twice",
            hint=f"Find {rounds * len(modes)} people, or ask for fewer rounds.",
        )
    drawn = sorted(queries, key=lambda query: hashed_uniform(random_state, "fold", query))
    return [
        Assignment(assessor, query, mode)
        for turn in range(rounds)
        for index, assessor in enumerate(assessors)
        for shift, mode in enumerate(modes)
        for query in drawn[(index + shift + turn * len(modes)) % people :: people]
    ]


def balance(
    work: Mapping[str, float], assessors: Sequence[str], *, copies: int = 1, random_state: int = 0
) -> dict[str, list[str]]:
    """Share queries out so that everyone has about the same amount to do.

    The largest goes first, to the person with the least; nobody gets the same query twice.

    Args:
        work: What each query takes, such as its expected number of judgments.
        assessors: The people.
        copies: How many different people judge each query.
        random_state: Draws who comes first among equals.

    Example:
        >>> balance({"q1": 90, "q2": 50, "q3": 40}, ["ann", "bob"])
        {'ann': ['q1'], 'bob': ['q2', 'q3']}
    """
    if not 1 <= copies <= len(set(assessors)):
        raise ArgumentError(
            f"{len(set(assessors))} people cannot make {copies} copies", hint="Find more people."
        )
    load = dict.fromkeys(assessors, 0.0)
    shares: dict[str, list[str]] = {assessor: [] for assessor in assessors}
    for query in sorted(
        work, key=lambda query: (-work[query], hashed_uniform(random_state, "query", query))
    ):
        least = sorted(
            load, key=lambda who: (load[who], hashed_uniform(random_state, "person", query, who))
        )
        for assessor in least[:copies]:
            shares[assessor].append(query)
            load[assessor] += work[query]
    return shares
