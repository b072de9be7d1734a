"""How far people agree: the 3x3 matrix of Niu et al. 2012, its ratios and their chi-square test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from podium.errors import DataError
from podium.judging.agreement.ratings import Ratings
from podium.judging.entries import Entry, Grade, Outcome, Verdict, active_entries
from podium.kernels import Doubles, Ints

_VALUES = np.array([Outcome.LEFT, Outcome.TIE, Outcome.RIGHT])


@dataclass(frozen=True, eq=False)
class Agreement:
    """The verdicts of two people against each other, over all pairs judged by two or more.

    Attributes:
        table: Rows are one person's verdict, columns another's on the same pair:
            left, tie, right. A pair with m votes adds m (m - 1): every two people, both ways.

    Example:
        >>> agreement = Agreement.of(Ratings.from_table([[1, 1], [0, 1], [-1, 1], [1, np.nan]]))
        >>> agreement.table.tolist()
        [[2, 1, 1], [1, 0, 0], [1, 0, 0]]
        >>> round(agreement.overall, 2), agreement.without_ties
        (0.33, 0.5)
    """

    table: Ints

    @classmethod
    def of(cls, ballots: Ratings) -> Agreement:
        """Count over votes of 1, 0 and -1; pairs with one vote do not count."""
        if not np.isin(ballots.values, _VALUES).all():
            raise DataError("a vote is not 1, 0 or -1", hint="Turn grades into preferences first.")
        full = np.zeros((int(ballots.units.max(initial=-1)) + 1, 3), np.int64)
        np.add.at(full, (ballots.units, 1 - ballots.values.astype(np.int64)), 1)
        return cls(full.T @ full - np.diag(full.sum(axis=0)))

    @property
    def rows(self) -> Doubles:
        """The probability of another's verdict (column) given one person's (row)."""
        sums = self.table.sum(axis=1, keepdims=True)
        shares: Doubles = self.table / np.maximum(sums, 1)
        return shares

    @property
    def overall(self) -> float:
        """The share of votes that agree."""
        return _share(*self.ratio())

    @property
    def without_ties(self) -> float:
        """The share of votes that agree where neither of two is a tie."""
        return _share(*self.ratio(ties=False))

    def ratio(self, *, ties: bool = True) -> tuple[int, int]:
        """How many times two people agreed, and disagreed."""
        table = self.table if ties else self.table[np.ix_([0, 2], [0, 2])]
        agreed = int(np.trace(table)) // 2
        return agreed, int(table.sum()) // 2 - agreed


@dataclass(frozen=True)
class AgreementTest:
    """Whether two ways of judging differ in agreement: Pearson's chi-square, one degree."""

    statistic: float
    p_value: float


def compare_agreement(one: Agreement, other: Agreement, *, ties: bool = True) -> AgreementTest:
    """Test whether agreed and disagreed stand in the same ratio in two ways of judging.

    Votes of one pair by three or more people are not independent, so with them the p-value is too
    small; bootstrap the difference instead.

    Example:
        >>> often = Agreement(np.diag([80, 40, 40]) + 40)
        >>> compare_agreement(often, Agreement(np.full((3, 3), 40))).p_value < 0.001
        True
    """
    table = np.array([one.ratio(ties=ties), other.ratio(ties=ties)], float)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
    if not expected.all():
        raise DataError(
            "there is nothing to compare: a row or column of counts is empty",
            hint="Collect pairs that two people judged.",
        )
    statistic = float(((table - expected) ** 2 / expected).sum())
    return AgreementTest(statistic, float(chdtrc(1, statistic)))


def inferred_verdicts(
    log: Sequence[Entry], pairs: Sequence[tuple[str, str]] | None = None
) -> list[Verdict]:
    """The preferences that each person's standing grades imply: the higher grade is better.

    Args:
        log: A query's log with grades.
        pairs: Which pairs to infer; by default every two items that a person graded.

    Example:
        >>> log = [Grade("a", 4, "ann"), Grade("b", 2, "ann"), Grade("c", 2, "ann")]
        >>> [(v.left, v.right, v.outcome.name) for v in inferred_verdicts(log)]
        [('a', 'b', 'LEFT'), ('a', 'c', 'LEFT'), ('b', 'c', 'TIE')]
    """
    grades: dict[str, dict[str, int]] = {}
    for position in active_entries(log):
        entry = log[position]
        if isinstance(entry, Grade):
            grades.setdefault(entry.assessor, {})[entry.item] = entry.grade
    verdicts = []
    for assessor, graded in grades.items():
        items = sorted(graded)
        chosen = list(combinations(items, 2)) if pairs is None else pairs
        verdicts += [
            Verdict(left, right, Outcome(int(np.sign(graded[left] - graded[right]))), assessor)
            for left, right in chosen
            if left in graded and right in graded
        ]
    return verdicts


def self_consistency(logs: Mapping[str, Sequence[Entry]]) -> dict[str, tuple[int, int]]:
    """How often each person judged a pair again, and how often their verdict was the same.

    Pairs that come back with their sides exchanged count; verdicts taken back do not.

    Example:
        >>> log = [
        ...     Verdict("a", "b", Outcome.LEFT, "ann"), Verdict("b", "a", Outcome.RIGHT, "ann")
        ... ]
        >>> self_consistency({"q1": log})
        {'ann': (1, 1)}
    """
    counts: dict[str, tuple[int, int]] = {}
    for log in logs.values():
        last: dict[tuple[str, str, str], Outcome] = {}
        for position in active_entries(log):
            entry = log[position]
            if not isinstance(entry, Verdict):
                continue
            first, second = sorted((entry.left, entry.right))
            outcome = entry.outcome if entry.left == first else entry.outcome.flipped
            before = last.get((entry.assessor, first, second))
            if before is not None:
                again, same = counts.get(entry.assessor, (0, 0))
                counts[entry.assessor] = again + 1, same + (before is outcome)
            last[entry.assessor, first, second] = outcome
    return counts


def _share(agreed: int, disagreed: int) -> float:
    return agreed / (agreed + disagreed) if agreed + disagreed else float("nan")
