"""What a session comes to: the ordered top k, as labels for everything else in Podium."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from podium.data.judged import Judgments
from podium.data.preferences import Preferences
from podium.errors import DataError
from podium.judging.entries import Entry, Grade, Mark, Verdict, active_entries
from podium.kernels import Floats


@dataclass(frozen=True)
class SessionResult:
    """The ordered top k, so far or final.

    Attributes:
        top: The best items, best first.
        levels: The same items, those judged equal to a neighbor together. The last level may
            have further items: those judged equal to the last of the top k.
        k: How many were asked for.
        complete: Whether every judgment that the algorithm needs is there; if not, the order is
            the best guess from those that are.
        inseparable: In an estimate, items of the top k that no verdict separates from each other
            or from some below: their order is the prior ranking's, or else drawn by the seed.
    """

    top: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    k: int
    complete: bool
    inseparable: tuple[tuple[str, ...], ...] = ()

    def labels(self, items: Sequence[str], *, ties: bool = False) -> Floats:
        """A label for each item: k for the best down to 1, and 0 below the top k.

        Args:
            items: The items to label.
            ties: Whether items judged equal get equal labels, that of the first of them.

        Example:
            >>> result = SessionResult(("a", "b", "c"), (("a",), ("b", "c", "d")), 3, True)
            >>> result.labels(["a", "b", "c", "d", "e"]).tolist()
            [3.0, 2.0, 1.0, 0.0, 0.0]
            >>> result.labels(["a", "b", "c", "d", "e"], ties=True).tolist()
            [3.0, 2.0, 2.0, 2.0, 0.0]
        """
        label_of: dict[str, int] = {}
        position = 0
        for level in self.levels if ties else [(item,) for item in self.top]:
            label_of.update(dict.fromkeys(level, self.k - position))
            position += len(level)
        return np.array([label_of.get(item, 0) for item in items], np.float32)


def levels(
    top: Sequence[int], below: Iterable[int], tied: Callable[[int, int], bool]
) -> list[list[int]]:
    """Put neighbors of an order that are tied on one level, and what is tied with its last.

    Example:
        >>> levels([0, 1, 2], [3, 4], lambda left, right: (left, right) in {(1, 2), (2, 4)})
        [[0], [1, 2, 4]]
    """
    groups: list[list[int]] = []
    for item in top:
        if groups and tied(groups[-1][-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    if groups:
        last = groups[-1][-1]
        groups[-1] += [item for item in below if tied(last, item)]
    return groups


class JudgedSession(Protocol):
    """What labels are taken from: a session."""

    @property
    def log(self) -> Sequence[Entry]:
        """The log entries about them."""

    @property
    def items(self) -> Sequence[str]:
        """All items of the query."""

    def result(self) -> SessionResult:
        """What is known of their order."""


def session_judgments(sessions: Mapping[str, JudgedSession], *, ties: bool = False) -> Judgments:
    """The labels of the sessions of many queries, by query id.

    Queries without judgments are left out: a prior ranking is not a judgment.

    Args:
        sessions: To each query id its session.
        ties: Whether items that were judged equal have the same label.

    Example:
        >>> from podium.judging import Outcome, Session, Verdict
        >>> session = Session(["a", "b"], k=1, log=[Verdict("a", "b", Outcome.RIGHT)])
        >>> session_judgments({"q1": session}).labels.tolist()
        [0.0, 1.0]
    """
    if not sessions:
        raise DataError("there are no sessions", hint="Give at least one query's.")
    judged = [
        (query, each.items, result)
        for query, each in sessions.items()
        if (result := each.result()).complete or _judged(each.log)
    ]
    if not judged:
        raise DataError("nothing has been judged yet", hint="Judge a pair first.")
    return Judgments.from_columns(
        [query for query, items, _ in judged for _ in items],
        [item for _, items, _ in judged for item in items],
        np.concatenate([result.labels(items, ties=ties) for _, items, result in judged]),
    )


def _judged(log: Sequence[Entry]) -> bool:
    return any(
        isinstance(log[position], Verdict | Mark | Grade) for position in active_entries(log)
    )


def log_preferences(logs: Mapping[str, Iterable[Entry]]) -> Preferences:
    """The verdicts that stand in many queries' logs, as rows of preferences.

    Example:
        >>> from podium.judging import Outcome, Verdict
        >>> log_preferences({"q1": [Verdict("a", "b", Outcome.RIGHT)]}).verdicts.tolist()
        [-1]
    """
    rows = []
    for query, entries in logs.items():
        log = list(entries)
        for position in active_entries(log):
            entry = log[position]
            if isinstance(entry, Verdict):
                rows.append((query, entry.left, entry.right, int(entry.outcome)))
    if not rows:
        raise DataError("no verdict stands in the logs", hint="Judge a pair first.")
    return Preferences.from_columns(*zip(*rows, strict=True))
