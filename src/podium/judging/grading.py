"""Absolute grades (Niu et al.'s tool T2) and rankings side by side, from the same kind of log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from podium.data.judged import Judgments
from podium.errors import DataError
from podium.judging.entries import Entry, Grade, Mark, SideBySide, Undo, active_entries
from podium.kernels import Floats


class GradingSession:
    """The grading of one query's items on five levels.

    A mark as bad counts as the lowest grade.

    Args:
        items: The items, by id.
        people: How many people are to grade each.
        log: The entries so far.

    Example:
        >>> session = GradingSession(["a", "b"])
        >>> session.add(Grade("a", 3, assessor="ann", seconds=12.5))
        0
        >>> session.open_items(), session.labels().tolist()
        (['b'], [3.0, 0.0])
    """

    def __init__(self, items: Sequence[str], *, people: int = 1, log: Iterable[Entry] = ()) -> None:
        self.items = tuple(items)
        self.people = people
        if not self.items or len(set(self.items)) < len(self.items):
            raise DataError("items are missing or repeated", hint="List each item once.")
        self._log: list[Entry] = []
        for entry in log:
            self.add(entry)

    @property
    def log(self) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        return tuple(self._log)

    def add(self, entry: Entry) -> int:
        """Add an entry and return its position in the log."""
        if isinstance(entry, Grade | Mark) and entry.item not in self.items:
            raise DataError(f"{entry.item!r} is not an item of this session", hint="See its items.")
        if isinstance(entry, Undo) and not 0 <= entry.entry < len(self._log):
            raise DataError(f"there is no entry {entry.entry} to undo", hint="See the log.")
        self._log.append(entry)
        return len(self._log) - 1

    def grades(self) -> dict[str, dict[str, int]]:
        """To each item the last standing grade of each person."""
        grades_of: dict[str, dict[str, int]] = {item: {} for item in self.items}
        for position in active_entries(self._log):
            entry = self._log[position]
            if isinstance(entry, Grade):
                grades_of[entry.item][entry.assessor] = entry.grade
            elif isinstance(entry, Mark):
                grades_of[entry.item][entry.assessor] = 0
        return grades_of

    def open_items(self, assessor: str | None = None) -> list[str]:
        """The items that need more grades, for a person or for anyone."""
        return [
            item
            for item, grades in self.grades().items()
            if len(grades) < self.people and assessor not in grades
        ]

    @property
    def done(self) -> bool:
        """Whether no grade is missing."""
        return not self.open_items()

    def labels(self) -> Floats:
        """The mean grade of each item, 0 where there is none."""
        return np.array(
            [fmean(grades.values()) if grades else 0.0 for grades in self.grades().values()],
            np.float32,
        )


def grade_judgments(
    logs: Mapping[str, Iterable[Entry]], *, assessor: str | None = None
) -> Judgments:
    """The grades that stand in many queries' logs as labels: an item's mean over assessors.

    Args:
        logs: To each query id its log.
        assessor: Whose grades; by default all.

    Example:
        >>> log = [Grade("a", 3, "ann"), Grade("a", 2, "bob"), Grade("b", 1, "bob")]
        >>> grade_judgments({"q1": log}).labels.tolist()
        [2.5, 1.0]
    """
    grades: dict[tuple[str, str], dict[str, int]] = {}
    for query, entries in logs.items():
        log = list(entries)
        for position in active_entries(log):
            entry = log[position]
            if isinstance(entry, Grade) and assessor in (None, entry.assessor):
                grades.setdefault((query, entry.item), {})[entry.assessor] = entry.grade
    if not grades:
        raise DataError("no grade stands in the logs", hint="Grade a document first.")
    return Judgments.from_columns(
        [query for query, _ in grades],
        [item for _, item in grades],
        [fmean(values.values()) for values in grades.values()],
    )


def side_by_side_totals(log: Sequence[Entry]) -> dict[tuple[str, str], list[int]]:
    """How often each of the five verdicts was given on each two rankings, 2 (left) to -2 first.

    The two names are in alphabetical order, and verdicts are flipped accordingly.

    Example:
        >>> log = [SideBySide("new", "old", 2), SideBySide("old", "new", 1)]
        >>> side_by_side_totals(log)
        {('new', 'old'): [1, 0, 0, 1, 0]}
    """
    totals: dict[tuple[str, str], list[int]] = {}
    for position in active_entries(log):
        entry = log[position]
        if isinstance(entry, SideBySide):
            first, second = sorted((entry.left, entry.right))
            choice = entry.choice if entry.left == first else -entry.choice
            totals.setdefault((first, second), [0] * 5)[2 - choice] += 1
    return totals
