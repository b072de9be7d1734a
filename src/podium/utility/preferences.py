"""Preferences between rankings: which of two lists of graded documents people liked better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.errors import DataError
from podium.judging import SideBySide
from podium.judging.entries import Entry, active_entries
from podium.kernels import Doubles, Ints

Grades: TypeAlias = NDArray[np.uint8]
"""One row per ranking, one column per position: the document's grade, 0 the lowest."""

MOST_GRADES = 256
MOST_DEPTH = 1000


@dataclass(frozen=True, eq=False)
class RankingPreferences:
    """Pairs of rankings with people's verdicts on them.

    A ranking is the grades of its documents, best position first. Both rankings of a pair need not
    have the same documents. A position without a document counts as the lowest grade, as in DCG.
    Make one with ``from_arrays``, ``from_verdicts`` or ``read_preferences``.

    Attributes:
        left: Grades of one ranking, one row per pair, one column per position.
        right: Grades of the other ranking.
        choices: 2 (left is much better), 1, 0 (the same), -1, -2 (right is much better).
        pair_weights: How much each pair counts.
        queries: A number for each pair's query: pairs of one query are never split between
            training and test, and are drawn together.
        grades: How many grades there are.

    Example:
        >>> pairs = RankingPreferences.from_arrays(
        ...     left=[[2, 0, 1], [1, 1, 0]], right=[[1, 1, 0], [0, 2, 1]], choices=[1, 0]
        ... )
        >>> len(pairs), pairs.depth, pairs.grades
        (2, 3, 3)
    """

    left: Grades
    right: Grades
    choices: NDArray[np.int8]
    pair_weights: Doubles
    queries: Ints
    grades: int
    _checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self._checked:
            _check(self)

    @classmethod
    def from_arrays(
        cls,
        left: ArrayLike | Sequence[Sequence[int]],
        right: ArrayLike | Sequence[Sequence[int]],
        choices: ArrayLike | None = None,
        *,
        pair_weights: ArrayLike | None = None,
        queries: ArrayLike | Sequence[object] | None = None,
        grades: int | None = None,
        depth: int | None = None,
    ) -> RankingPreferences:
        """Take grades as arrays, or as lists of any length.

        Args:
            left: The grades of one ranking of each pair, integers from 0 (the lowest).
            right: The grades of the other.
            choices: 2 to -2 for each pair; all 0 if not given (a pool of pairs still to judge).
            pair_weights: How much each pair counts, by default 1.
            queries: The query of each pair, as ids of any kind; by default each pair has its own.
            grades: How many grades there are; by default one more than the highest met.
            depth: How many positions count; by default those of the longest ranking.
        """
        one, other = _table(left, "left"), _table(right, "right")
        if len(one) != len(other):
            raise DataError(
                f"there are {len(one)} left and {len(other)} right rankings", hint="Give pairs."
            )
        longest = max(one.shape[1], other.shape[1]) if depth is None else depth
        if not 1 <= longest <= MOST_DEPTH:
            raise DataError(
                f"rankings have {longest} positions", hint=f"Give 1 to {MOST_DEPTH} (see depth)."
            )
        one, other = _cut(one, longest), _cut(other, longest)
        count = len(one)
        highest = int(max(one.max(initial=0), other.max(initial=0)))
        return cls(
            one,
            other,
            _column(np.zeros(count) if choices is None else choices, count, "choices", np.int8),
            _column(
                np.ones(count) if pair_weights is None else pair_weights,
                count,
                "pair_weights",
                np.float64,
            ),
            _numbers(queries, count),
            max(highest + 1, 2) if grades is None else grades,
        )

    @classmethod
    def from_verdicts(
        cls,
        log: Sequence[Entry],
        rankings: Mapping[str, Sequence[int]],
        *,
        queries: Mapping[str, object] | None = None,
        grades: int | None = None,
        depth: int | None = None,
    ) -> RankingPreferences:
        """Take the side-by-side verdicts of a judging log, without those undone.

        Args:
            log: Entries of ``podium.judging``; other kinds of entries are skipped.
            rankings: To each name in the verdicts, the grades of its documents in order.
            queries: To each name its query; by default each two names are a query of their own.
            grades: As in ``from_arrays``.
            depth: As in ``from_arrays``.

        Example:
            >>> log = [SideBySide("new", "old", 2), SideBySide("old", "new", 0)]
            >>> shown = {"new": [2, 1, 0], "old": [0, 2]}
            >>> RankingPreferences.from_verdicts(log, shown).choices.tolist()
            [2, 0]
        """
        active = (log[index] for index in active_entries(log))
        pairs = [entry for entry in active if isinstance(entry, SideBySide)]
        for entry in pairs:
            for name in (entry.left, entry.right):
                if name not in rankings:
                    raise DataError(f"ranking {name!r} is not known", hint="Give its grades.")
        if not pairs:
            raise DataError(
                "the log has no side-by-side verdict", hint="Judge some rankings first."
            )
        return cls.from_arrays(
            [rankings[entry.left] for entry in pairs],
            [rankings[entry.right] for entry in pairs],
            [entry.choice for entry in pairs],
            queries=[
                tuple(sorted((entry.left, entry.right))) if queries is None else queries[entry.left]
                for entry in pairs
            ],
            grades=grades,
            depth=depth,
        )

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def depth(self) -> int:
        """How many positions count."""
        return int(self.left.shape[1])

    @property
    def strict(self) -> NDArray[np.bool_]:
        """Which pairs have a better side."""
        return np.asarray(self.choices != 0)

    def take(self, indices: ArrayLike) -> RankingPreferences:
        """Return some of the pairs, by a mask or by indices, which may repeat."""
        chosen = np.asarray(indices)
        chosen = chosen if chosen.size else chosen.astype(np.int64)
        return RankingPreferences(
            np.ascontiguousarray(self.left[chosen]),
            np.ascontiguousarray(self.right[chosen]),
            self.choices[chosen],
            self.pair_weights[chosen],
            self.queries[chosen],
            self.grades,
            _checked=True,
        )

    def joined(self, other: RankingPreferences) -> RankingPreferences:
        """Append other pairs of the same depth and grades; their queries count as new ones."""
        if (self.depth, self.grades) != (other.depth, other.grades):
            raise DataError(
                "the pairs differ in depth or grades", hint="Give depth= and grades= for both."
            )
        beyond = int(self.queries.max(initial=-1)) + 1
        return RankingPreferences(
            np.concatenate((self.left, other.left)),
            np.concatenate((self.right, other.right)),
            np.concatenate((self.choices, other.choices)),
            np.concatenate((self.pair_weights, other.pair_weights)),
            np.concatenate((self.queries, other.queries + beyond)),
            self.grades,
            _checked=True,
        )

    def with_choices(self, choices: ArrayLike) -> RankingPreferences:
        """Return the same pairs with other verdicts."""
        return RankingPreferences(
            self.left,
            self.right,
            _column(choices, len(self), "choices", np.int8),
            self.pair_weights,
            self.queries,
            self.grades,
        )

    def leads(self, table: Doubles) -> Doubles:
        """Compute how far left is ahead of right in each pair, by a table of utilities.

        Args:
            table: One row per position, one column per grade.

        Example:
            >>> pairs = RankingPreferences.from_arrays([[1, 0]], [[0, 1]], [1])
            >>> pairs.leads(np.array([[0, 1.0], [0, 0.25]])).tolist()
            [0.75]
        """
        from podium.utility.pair_kernels import leads_of

        if table.shape != (self.depth, self.grades):
            raise DataError(
                f"utilities have shape {table.shape}, the pairs {(self.depth, self.grades)}",
                hint="Give one row per position and one column per grade.",
            )
        return leads_of(self.left, self.right, np.ascontiguousarray(table - table[:, :1]))


def _check(pairs: RankingPreferences) -> None:
    if not 2 <= pairs.grades <= MOST_GRADES:
        raise DataError(f"there are {pairs.grades} grades", hint=f"Give 2 to {MOST_GRADES}.")
    highest = int(max(pairs.left.max(initial=0), pairs.right.max(initial=0)))
    if highest >= pairs.grades:
        raise DataError(
            f"a grade is {highest} where there are {pairs.grades}",
            hint="Count grades from 0, and give grades= if the highest does not occur.",
        )
    if len(pairs.choices) and np.abs(pairs.choices).max() > 2:
        raise DataError(
            f"a choice is {pairs.choices[np.abs(pairs.choices).argmax()]}",
            hint="Give 2 (left is much better) to -2 (right is much better).",
        )
    if not np.all(np.isfinite(pairs.pair_weights)) or np.any(pairs.pair_weights < 0):
        raise DataError("a weight is negative or not finite", hint="Give weights of at least 0.")


def _table(rankings: Any, side: str) -> NDArray[Any]:
    """Rankings as a matrix of uint8, shorter ones filled with the lowest grade."""
    if not isinstance(rankings, np.ndarray):
        rows = [np.asarray(row) for row in rankings]
        if any(row.ndim != 1 for row in rows):
            raise DataError(
                f"a {side} ranking is not a list", hint="Give the grades of each ranking."
            )
        width = max((len(row) for row in rows), default=0)
        rankings = np.zeros((len(rows), width), np.int64 if width else np.uint8)
        for index, row in enumerate(rows):
            if row.size and row.dtype.kind not in "iu":
                raise _no_grade(row[0].item(), side)
            rankings[index, : len(row)] = row
    if rankings.ndim != 2 or rankings.dtype.kind not in "iu":
        raise DataError(
            f"{side} has {rankings.ndim} dimensions of {rankings.dtype}",
            hint="Give one row per pair and one column per position, integers from 0.",
        )
    if rankings.size and (rankings.min() < 0 or rankings.max() >= MOST_GRADES):
        bad = rankings[(rankings < 0) | (rankings >= MOST_GRADES)][0]
        raise _no_grade(bad.item(), side)
    return np.ascontiguousarray(rankings, np.uint8)


def _no_grade(value: object, side: str) -> DataError:
    return DataError(
        f"a {side} ranking has {value!r} for a grade",
        hint=f"Grades are integers from 0 to {MOST_GRADES - 1}.",
    )


def _cut(rankings: NDArray[Any], depth: int) -> Grades:
    missing = max(depth - rankings.shape[1], 0)
    return np.ascontiguousarray(np.pad(rankings, ((0, 0), (0, missing)))[:, :depth])


def _column(values: ArrayLike, count: int, name: str, kind: Any) -> NDArray[Any]:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} are not numbers", hint="Give a number for each pair.") from error
    if column.shape != (count,):
        raise DataError(
            f"{name} have shape {column.shape}, there are {count} pairs",
            hint="Give one for each pair.",
        )
    if kind is np.int8 and (np.any(column != np.floor(column)) or np.any(np.abs(column) > 2)):
        raise DataError(f"{name} has values outside -2 to 2", hint="2 is left much better.")
    return np.ascontiguousarray(column.astype(kind))


def _numbers(queries: Any, count: int) -> Ints:
    """Number the queries in order of first appearance."""
    if queries is None:
        return np.arange(count, dtype=np.int64)
    ids = queries.tolist() if isinstance(queries, np.ndarray) else list(queries)
    if len(ids) != count:
        raise DataError(
            f"there are {len(ids)} queries for {count} pairs", hint="Give one for each pair."
        )
    known: dict[object, int] = {}
    return np.array([known.setdefault(each, len(known)) for each in ids], np.int64)
