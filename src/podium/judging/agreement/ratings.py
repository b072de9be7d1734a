"""Many people's verdicts on the same things, as arrays: what agreement is measured on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.errors import DataError
from podium.judging.entries import Entry, Verdict, active_entries
from podium.kernels import Doubles, Ints


@dataclass(frozen=True, eq=False)
class Ratings:
    """One row a vote: what was judged, by whom, and the value.

    Attributes:
        units: The number of the pair or item judged, from 0.
        raters: The number of the person, from 0.
        values: Their verdicts: 1, 0 or -1 for pairs, or a grade.
        rater_names: The people, by number.
        unit_names: What was judged, by number, if it has names.

    Example:
        >>> ballots = Ratings.from_table([[1, 1, 0], [-1, -1, np.nan]])
        >>> ballots.values.tolist(), ballots.counts().tolist()
        ([1.0, 1.0, 0.0, -1.0, -1.0], [[0, 1, 2], [2, 0, 0]])
    """

    units: Ints
    raters: Ints
    values: Doubles
    rater_names: tuple[str, ...]
    unit_names: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.units) == len(self.raters) == len(self.values):
            raise DataError("votes have columns of unequal length", hint="Give one value per vote.")
        if len(self.values) and not np.isfinite(self.values).all():
            raise DataError(
                "a vote is not a finite number", hint="Leave votes that are missing out."
            )

    @classmethod
    def from_table(cls, table: ArrayLike) -> Ratings:
        """Votes from a table, one row per unit and one column per person, NaN for no vote."""
        values = np.asarray(table, float)
        if values.ndim != 2:
            raise DataError(
                "votes are not a table", hint="Give one row per unit, one column per assessor."
            )
        units, raters = np.nonzero(~np.isnan(values))
        names = tuple(str(column) for column in range(values.shape[1]))
        return cls(units, raters, values[units, raters], names)

    @classmethod
    def from_logs(cls, logs: Mapping[str, Iterable[Entry]]) -> Ratings:
        """The last standing verdict of each person on each pair, to each query id its log.

        A pair's items are in alphabetical order: 1 means that the first of them is better.

        Example:
            >>> from podium.judging import Outcome
            >>> log = [
            ...     Verdict("a", "b", Outcome.LEFT, "ann"), Verdict("b", "a", Outcome.LEFT, "bob")
            ... ]
            >>> ballots = Ratings.from_logs({"q1": log})
            >>> ballots.values.tolist(), ballots.unit_names
            ([1.0, -1.0], (('q1', 'a', 'b'),))
        """
        votes_of: dict[tuple[str, str, str], dict[str, int]] = {}
        for query, entries in logs.items():
            log = list(entries)
            for position in active_entries(log):
                entry = log[position]
                if isinstance(entry, Verdict):
                    first, second = sorted((entry.left, entry.right))
                    value = int(entry.outcome if entry.left == first else entry.outcome.flipped)
                    votes_of.setdefault((query, first, second), {})[entry.assessor] = value
        raters = {name: number for number, name in enumerate(_names(votes_of.values()))}
        rows = [
            (unit, raters[assessor], value)
            for unit, votes in enumerate(votes_of.values())
            for assessor, value in votes.items()
        ]
        columns = np.array(rows, np.int64).reshape(-1, 3).T
        return cls(columns[0], columns[1], columns[2].astype(float), tuple(raters), tuple(votes_of))

    @cached_property
    def categories(self) -> Doubles:
        """The values that occur, in order."""
        return np.unique(self.values)

    def counts(self) -> Ints:
        """How often each unit got each value: one row per unit, one column per category."""
        size = int(self.units.max()) + 1 if len(self.units) else 0
        table = np.zeros((size, len(self.categories)), np.int64)
        np.add.at(table, (self.units, np.searchsorted(self.categories, self.values)), 1)
        return table

    def take(self, units: Ints) -> Ratings:
        """Some units, one as often as it is named, for the bootstrap."""
        order = np.argsort(self.units, kind="stable")
        begins = np.searchsorted(self.units[order], np.arange(units.max() + 2))
        sizes = np.diff(begins)[units]
        ends = np.cumsum(sizes)
        rows = order[np.repeat(begins[units] - ends + sizes, sizes) + np.arange(ends[-1])]
        return Ratings(
            np.repeat(np.arange(len(units)), sizes),
            self.raters[rows],
            self.values[rows],
            self.rater_names,
        )


def _names(votes: Iterable[Mapping[str, int]]) -> list[str]:
    return sorted({assessor for names in votes for assessor in names})
