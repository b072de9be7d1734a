"""What people can answer, and what each answer adds to the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.judging import Outcome
from podium.judging.entries import GRADES
from podium.studio.errors import RefusedError
from podium.studio.judging.modes import NO_ITEM, JudgingTask, QueryLogEntry
from podium.studio.store.enums import Kind, Mode, Purpose

SKIP = "skip"
SAME = "keep"
"""What an answer is changed to if only its comment changes."""
_VERDICTS = {"left": Outcome.LEFT, "tie": Outcome.TIE, "right": Outcome.RIGHT}
_MARKS = {"bad-left": (0,), "bad-right": (1,), "bad-both": (0, 1)}
_POINTS = {
    "left-much": 2,
    "left": 1,
    "same": 0,
    "right": -1,
    "right-much": -2,
}

_CHOICES: dict[Mode, tuple[str, ...]] = {
    Mode.PAIRS: (*_VERDICTS, *_MARKS, SKIP),
    Mode.RANKINGS: (*_POINTS, SKIP),
}


def choices(mode: Mode, grades: Sequence[str] = GRADES) -> tuple[str, ...]:
    """The possible answers in a judging mode.

    Args:
        mode: The judging mode.
        grades: The names of the grades, worst first.

    Example:
        >>> choices(Mode.GRADES, ["no", "yes"])
        ('no', 'yes', 'skip')
    """
    return (*grades, SKIP) if mode is Mode.GRADES else _CHOICES[mode]


def choice_of(kind: Kind, value: int, grades: Sequence[str] = GRADES) -> str:
    """The choice that adds an entry of a kind with a value.

    Example:
        >>> choice_of(Kind.VERDICT, -1), choice_of(Kind.SIDE_BY_SIDE, 2)
        ('right', 'left-much')
    """
    if kind is Kind.GRADE:
        return grades[value]
    values = _POINTS if kind is Kind.SIDE_BY_SIDE else _VERDICTS
    return next(choice for choice, each in values.items() if each == value)


def invalid_choice(choice: str) -> RefusedError:
    """The refusal of an answer that a task does not have."""
    return RefusedError(422, "%(choice)s is not a valid answer here.", choice=repr(choice))


@dataclass(frozen=True)
class AnswerEntry:
    """A log entry that an answer adds; most answers add one, "both are bad" adds two."""

    kind: Kind
    left: int
    right: int | None
    value: int | None


def answer_entries(
    mode: Mode, task: JudgingTask, choice: str, grades: Sequence[str] = GRADES
) -> list[AnswerEntry]:
    """The log entries that an answer adds; one that the mode does not have is refused.

    Bad marks on repeated and gold pairs are verdicts: the point of those is to compare.

    Example:
        >>> answer_entries(Mode.PAIRS, JudgingTask(3, 5), "bad-both")[1]
        AnswerEntry(kind=<Kind.BAD: 'bad'>, left=5, right=None, value=None)
    """
    right = None if task.right == NO_ITEM else task.right
    if choice not in choices(mode, grades):
        raise invalid_choice(choice)
    if choice == SKIP:
        return [AnswerEntry(Kind.SKIP, task.left, right, None)]
    if mode is Mode.GRADES:
        return [AnswerEntry(Kind.GRADE, task.left, None, grades.index(choice))]
    if mode is Mode.RANKINGS:
        return [AnswerEntry(Kind.SIDE_BY_SIDE, task.left, right, _POINTS[choice])]
    if choice in _VERDICTS:
        return [AnswerEntry(Kind.VERDICT, task.left, right, _VERDICTS[choice])]
    marked = _MARKS[choice]
    if task.purpose is not Purpose.MAIN:
        worth = (0 not in marked) - (1 not in marked)
        return [AnswerEntry(Kind.VERDICT, task.left, right, worth)]
    sides = (task.left, task.right)
    return [AnswerEntry(Kind.BAD, sides[side], None, None) for side in marked]


def changed_entries(
    mode: str, before: Sequence[QueryLogEntry], choice: str, grades: Sequence[str] = GRADES
) -> list[AnswerEntry]:
    """The log entries of an answer that replaces an earlier one; refused if it cannot.

    A mark on one document does not say with which other it was shown, so only its comment changes.

    Args:
        mode: The judging mode.
        before: The entries of the earlier answer.
        choice: The new answer; ``keep`` repeats the earlier one.
        grades: The names of the grades, worst first.
    """
    if choice == SAME:
        return [AnswerEntry(each.kind, each.left or 0, each.right, each.value) for each in before]
    positions = [each.left for each in before if each.left is not None]
    if len(before) == 1 and before[0].right is not None:
        positions.append(before[0].right)
    if not positions or (before[0].kind is Kind.BAD and len(positions) == 1):
        raise invalid_choice(choice)
    right = positions[1] if len(positions) > 1 else NO_ITEM
    task = JudgingTask(positions[0], right, before[0].purpose)
    return answer_entries(Mode(mode), task, choice, grades)
