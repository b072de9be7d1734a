"""Let assessors that are programs judge a session."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from podium.judging.algorithms.selection import Pair
from podium.judging.entries import Grade, Verdict, active_entries
from podium.judging.session import Session
from podium.judging.session_file import SessionFile


class Assessor(Protocol):
    """Someone who judges pairs: `SimulatedAssessor`, `EndpointAssessor`, or your own."""

    @property
    def name(self) -> str:
        """Who they are, in the log."""

    def verdict(self, pair: Pair[str]) -> Verdict | None:
        """Judge a pair; None leaves it to others."""


class Grader(Protocol):
    """Someone who grades documents: `EndpointAssessor`, or your own."""

    @property
    def name(self) -> str:
        """Who they are, in the log."""

    def grade(self, item: str) -> Grade | None:
        """Grade a document; None leaves it to others."""


def judge_session(
    target: Session | SessionFile,
    assessors: Sequence[Assessor],
    *,
    max_judgments: int | None = None,
    max_workers: int = 1,
) -> int:
    """Let assessors judge open pairs in turn until a session is done; returns how many they did.

    A pair on which an assessor has no verdict stays open, and that assessor is not asked again.

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
    count = 0
    passed: set[tuple[str, frozenset[str]]] = set()
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
                    and (assessor.name, frozenset(pair)) not in passed
                ]
                if len(tasks) >= batch_size:
                    break
            if not tasks:
                break
            chosen = tasks[:batch_size]
            verdicts = pool.map(lambda task: task[0].verdict(task[1]), chosen)
            for (assessor, pair), verdict in zip(chosen, verdicts, strict=True):
                if verdict is None:
                    passed.add((assessor.name, frozenset(pair)))
                else:
                    target.add(verdict)
                    count += 1
    return count


def grade_session(target: Session | SessionFile, grader: Grader, *, max_workers: int = 1) -> int:
    """Let a grader grade the items of a session that it has not graded; returns how many it did.

    Args:
        target: The session, or its journal, to which each grade is written as it comes.
        grader: Who grades.
        max_workers: Number of items to grade in parallel.

    Example:
        >>> class Even:
        ...     name = "even"
        ...     def grade(self, item):
        ...         return Grade(item, 2, self.name)
        >>> session = Session(["a", "b"], k=1)
        >>> grade_session(session, Even()), grade_session(session, Even())
        (2, 0)
    """
    session = target.session if isinstance(target, SessionFile) else target
    entries = [session.log[position] for position in active_entries(session.log)]
    graded = {
        entry.item
        for entry in entries
        if isinstance(entry, Grade) and entry.assessor == grader.name
    }
    missing = [item for item in session.items if item not in graded]
    count = 0
    with ThreadPoolExecutor(max_workers) as pool:
        try:
            for grade in pool.map(grader.grade, missing):
                if grade is not None:
                    target.add(grade)
                    count += 1
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return count
