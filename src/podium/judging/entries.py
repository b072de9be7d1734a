"""Log entries: everything assessors do, in an append-only log.

A log has everything that is known about a session: verdicts on pairs, marks on items, grades,
verdicts on whole rankings, and undos. An undo is an entry too: it names the entry that no longer
stands by its position in the log, and can itself be undone. `active_entries` returns what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum
from typing import Any, TypeAlias

from podium.errors import DataError

GRADES = ("bad", "fair", "good", "excellent", "perfect")
"""The five levels of an absolute judgment, worst first (Niu et al. 2012, 4.1)."""
MOST_GRADES = 10
"""How many levels a scale may have: one key each."""


class Outcome(IntEnum):
    """Which side of a pair is better, with the values of ``podium.data.Preferences.verdicts``.

    Example:
        >>> Outcome.LEFT.flipped
        <Outcome.RIGHT: -1>
    """

    LEFT = 1
    TIE = 0
    RIGHT = -1

    @property
    def flipped(self) -> Outcome:
        """The same verdict with the sides exchanged."""
        return _FLIPPED[self]


def as_outcome(value: Any) -> Outcome:
    """An outcome as it is, or from the number that stands for it.

    Example:
        >>> as_outcome(-1)
        <Outcome.RIGHT: -1>
    """
    if isinstance(value, Outcome):
        return value
    # False would be a tie, where its writer is likely to mean right.
    if not isinstance(value, bool):
        try:
            return Outcome(value)
        except ValueError:
            pass
    raise DataError(f"outcome is {value!r}", hint="1 is left, -1 right, 0 a tie.")


_FLIPPED = {
    Outcome.LEFT: Outcome.RIGHT,
    Outcome.TIE: Outcome.TIE,
    Outcome.RIGHT: Outcome.LEFT,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """An assessor compared two items.

    Attributes:
        left: The item shown on the left.
        right: The item shown on the right.
        outcome: Which is better, or that neither is; 1, 0 and -1 become outcomes.
        assessor: Who judged.
        at: When, in seconds since 1970.
        seconds: How long it took, pauses left out.

    Example:
        >>> Verdict("d1", "d2", Outcome.LEFT, assessor="ann", seconds=5.5).outcome.name
        'LEFT'
    """

    left: str
    right: str
    outcome: Outcome
    assessor: str = ""
    at: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.outcome.__class__ is not Outcome:
            object.__setattr__(self, "outcome", as_outcome(self.outcome))
        if self.left == self.right:
            raise DataError(f"{self.left!r} is compared with itself", hint="Name two items.")


@dataclass(frozen=True, slots=True)
class Mark:
    """An assessor marked an item as clearly irrelevant, which excludes it from the top k."""

    item: str
    assessor: str = ""
    at: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Grade:
    """An assessor gave an item an absolute grade: 0 (bad) to 4 (perfect), or up to 9.

    Scales of other lengths than `GRADES` have up to ten levels, from 0 on, worst first.
    """

    item: str
    grade: int
    assessor: str = ""
    at: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.grade not in range(MOST_GRADES):
            raise DataError(
                f"{self.grade!r} is not a valid grade",
                hint=f"Give 0 (the worst) to {MOST_GRADES - 1}.",
            )


@dataclass(frozen=True, slots=True)
class SideBySide:
    """An assessor compared two rankings: 2 is left much better, -2 right, 0 the same."""

    left: str
    right: str
    choice: int
    assessor: str = ""
    at: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.choice not in range(-2, 3):
            raise DataError(
                f"{self.choice!r} is not a valid verdict on two rankings",
                hint="Give -2 to 2; 2 is left.",
            )
        if self.left == self.right:
            raise DataError(
                f"ranking {self.left!r} is compared with itself", hint="Name two rankings."
            )


@dataclass(frozen=True, slots=True)
class Undo:
    """An assessor took back the entry at a position in the log."""

    entry: int
    assessor: str = ""
    at: float = 0.0
    seconds: float = 0.0


Entry: TypeAlias = Verdict | Mark | Grade | SideBySide | Undo
"""Any entry of a log."""

_KINDS: dict[str, type[Entry]] = {
    "verdict": Verdict,
    "bad": Mark,
    "grade": Grade,
    "side-by-side": SideBySide,
    "undo": Undo,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "Outcome": int,
}
_EXACT: dict[str, type] = {"str": str, "int": int, "float": float, "Outcome": Outcome}
_FIELDS = {
    kind: {field.name: (str(field.type), _TYPES[str(field.type)]) for field in fields(kind)}
    for kind in _NAMES
}
_DEFAULTS = {kind: {field.name: field.default for field in fields(kind)} for kind in _NAMES}
_LONGEST = 1e12
"""Longer than any time. NaN and infinity, which JSON readers let through, are not below it."""


def check_entry(entry: Entry) -> None:
    """Refuse an entry that could not be read again once it is written: see `entry_from_json`."""
    known = _FIELDS.get(type(entry))
    if known is None:
        raise DataError(
            f"{entry!r} is not an entry", hint="Give a Verdict, Mark, Grade or the like."
        )
    for name, (kind, types) in known.items():
        value = getattr(entry, name)
        # Nearly all entries are right, and a replay checks every one.
        is_exact = value.__class__ is _EXACT[kind]
        if not is_exact or (kind == "float" and not 0 <= value < _LONGEST):
            _check_value(_NAMES[type(entry)], name, value, kind, types)


def _check_value(
    entry: str, name: str, value: object, kind: str, expected_type: type | tuple[type, ...]
) -> None:
    if not isinstance(value, expected_type) or isinstance(value, bool):
        raise DataError(f"{name!r} of a {entry} is {value!r}", hint=f"Give a value of type {kind}.")
    if kind == "float" and not 0 <= value < _LONGEST:  # type: ignore[operator]
        raise DataError(f"{name!r} of a {entry} is {value!r}", hint="Give seconds.")


def active_entries(log: Sequence[Entry]) -> list[int]:
    """Return the positions of the entries that were not undone, without the undos.

    Example:
        >>> log = [Mark("a"), Mark("b"), Undo(0), Undo(2)]
        >>> active_entries(log[:3]), active_entries(log)  # the second undo brings "a" back
        ([1], [0, 1])
    """
    undone: set[int] = set()
    kept = []
    for position in range(len(log) - 1, -1, -1):
        if position in undone:
            continue
        entry = log[position]
        if isinstance(entry, Undo):
            undone.add(entry.entry)
        else:
            kept.append(position)
    return kept[::-1]


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """Convert an entry to JSON values, leaving out defaults.

    Example:
        >>> entry_to_json(Verdict("a", "b", Outcome.TIE, assessor="ann"))
        {'kind': 'verdict', 'left': 'a', 'right': 'b', 'outcome': 0, 'assessor': 'ann'}
    """
    values: dict[str, Any] = {"kind": _NAMES[type(entry)]}
    for name, default in _DEFAULTS[type(entry)].items():
        value = getattr(entry, name)
        if value != default:
            values[name] = int(value) if isinstance(value, IntEnum) else value
    return values


def entry_from_json(values: dict[str, Any]) -> Entry:
    """Parse an entry written by `entry_to_json`.

    Example:
        >>> entry_from_json({"kind": "bad", "item": "d7", "assessor": "ann"})
        Mark(item='d7', assessor='ann', at=0.0, seconds=0.0)
    """
    values = dict(values)
    name = values.pop("kind", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DataError(
            f"{name!r} is not a valid kind of entry", hint=f"Known: {', '.join(_KINDS)}."
        )
    for field in fields(kind):
        if field.default is MISSING and field.name not in values:
            raise DataError(f"the {name} has no {field.name!r}", hint="Give one.")
    known = _FIELDS[kind]
    for key, value in values.items():
        if key not in known:
            raise DataError(f"a {name} has no {key!r}", hint=f"Known: {', '.join(known)}.")
        _check_value(str(name), key, value, *known[key])
    return kind(**values)


def seconds_spent(log: Sequence[Entry], assessors: Iterable[str] | None = None) -> float:
    """Total time of all entries, including undone ones.

    Example:
        >>> seconds_spent([Mark("a", seconds=2.5), Undo(0), Mark("b", seconds=1.5)])
        4.0
    """
    names = None if assessors is None else set(assessors)
    return sum(entry.seconds for entry in log if names is None or entry.assessor in names)


def majority(outcomes: Iterable[Outcome]) -> Outcome:
    """The majority outcome; if two are equally frequent, the side with more votes, or a tie.

    Example:
        >>> majority([Outcome.LEFT, Outcome.TIE, Outcome.TIE]).name
        'TIE'
        >>> majority([Outcome.LEFT, Outcome.RIGHT]).name
        'TIE'
    """
    left = tie = right = 0
    for outcome in outcomes:
        left += outcome == Outcome.LEFT
        tie += outcome == Outcome.TIE
        right += outcome == Outcome.RIGHT
    if left > right and left >= tie:
        return Outcome.LEFT
    if right > left and right >= tie:
        return Outcome.RIGHT
    return Outcome.TIE
