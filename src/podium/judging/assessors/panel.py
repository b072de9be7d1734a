"""Let assessors that are programs judge a session."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from podium.judging.algorithms.selection import Pair
from podium.judging.entries import Entry, Verdict
from podium.judging.session import Session
from podium.judging.session_file import SessionFile


class Assessor(Protocol):
    """Someone who judges pairs: `SimulatedAssessor`, `EndpointAssessor`, or your own."""

    @property
    def name(self) -> str:
        """Who they are, in the log."""

    def verdict(self, pair: Pair[str], at: float = 0.0) -> Verdict:
        """Judge a pair."""


def judge_session(
    target: Session | SessionFile,
    assessors: Sequence[Assessor],
    *,
    max_judgments: int | None = None,
    max_workers: int = 1,
) -> int:
    """Let assessors judge open pairs in turn until a session is done; returns how many they did.

    Args:
        target: The session, or its journal, to which each verdict is written as it comes.
        assessors: Who judges.
        max_judgments: Maximum number of pairs to judge.
        max_workers: Number of pairs to judge in parallel, for slow assessors.

    Example:
        >>> from podium.judging import HABITS, SimulatedAssessor
        >>> session = Session(["a", "b", "c"], k=1)
        >>> ann = SimulatedAssessor({"a": 1, "b": 3, "c": 2}, HABITS["perfect"])
        >>> judge_session(session, [ann])
        2
        >>> session.result().top
        ('b',)
    """
    session = target.session if isinstance(target, SessionFile) else target
    add_entry = target.add
    count = 0
    with ThreadPoolExecutor(max_workers) as pool:
        while max_judgments is None or count < max_judgments:
            batch_size = (
                max_workers if max_judgments is None else min(max_workers, max_judgments - count)
            )
            tasks: list[tuple[Assessor, Pair[str]]] = []
            for turn in range(count, count + len(assessors)):
                assessor = assessors[turn % len(assessors)]
                taken = {frozenset(pair) for _, pair in tasks}
                tasks += [
                    (assessor, pair)
                    for pair in session.open_pairs(assessor.name)
                    if frozenset(pair) not in taken
                ]
                if len(tasks) >= batch_size:
                    break
            if not tasks:
                break
            entries: list[Entry] = list(
                pool.map(lambda task: task[0].verdict(task[1]), tasks[:batch_size])
            )
            for entry in entries:
                add_entry(entry)
                count += 1
    return count
