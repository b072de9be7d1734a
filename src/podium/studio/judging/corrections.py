"""Corrections by managers: judgments are discarded and restored, queries and documents withdrawn.

The log is append-only: a judgment is discarded by an undo in the name of its author, which names
the manager, and restored by an undo of that undo. What was withdrawn is an entry too. The audit log
records all of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.judging.judged import JudgedQuery, load_judged_query
from podium.studio.judging.modes import QueryLogEntry, RankingsMode
from podium.studio.judging.unit_of_work import LockedQuery
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import Lease, Project, ProjectQuery
from podium.studio.store.tokens import new_token

_JUDGMENTS = (Kind.VERDICT, Kind.BAD, Kind.GRADE, Kind.SIDE_BY_SIDE)


@dataclass(frozen=True)
class Correction:
    """A query that a manager changes: its row is locked, its log replayed.

    Attributes:
        connection: The transaction.
        judged: The query with its log and state.
        query: The query with the same state, to be changed and written back.
    """

    connection: Connection
    judged: JudgedQuery
    query: LockedQuery


def correct_query(connection: Connection, who: Member, query_id: int) -> Correction:
    """Lock a query of a manager's project, and replay its log."""
    statement = select(ProjectQuery.__table__).where(
        ProjectQuery.id == query_id, ProjectQuery.project_id == who.project.id
    )
    row = fetch_one(connection, statement.with_for_update(), ProjectQueryRow)
    if row is None:
        raise RefusedError(404, "The query does not exist.")
    # Read after the lock: the settings may have changed since the request began.
    values = connection.execute(select(Project.__table__).where(Project.id == who.project.id)).one()
    project = ProjectRow(*values)
    check_not_archived(project)
    judged = load_judged_query(connection, project, row)
    query = LockedQuery(connection, row, judged.state, time.time(), who.person.id)
    return Correction(connection, judged, query)


def rejudge(connection: Connection, who: Member, query_id: int, loop: Sequence[int]) -> int:
    """Undo everyone's verdicts on neighbours in a loop; returns the number of verdicts.

    All of them, because nobody knows which one is wrong: if one verdict of a loop is missing, the
    others imply it, and it would not be asked.

    Args:
        connection: The transaction.
        who: The manager who requests it.
        query_id: The query.
        loop: Positions of documents; the last one is a neighbour of the first. Two are a pair.
    """
    correction = correct_query(connection, who, query_id)
    if who.project.mode != Mode.PAIRS:
        raise RefusedError(409, "Only pairs can be judged again.")
    pairs = {frozenset(pair) for pair in zip(loop, [*loop[1:], loop[0]], strict=True)}
    verdicts = [
        entry
        for entry in correction.judged.standing
        if entry.kind is Kind.VERDICT
        and entry.purpose is Purpose.MAIN
        and {entry.left, entry.right} in pairs
    ]
    if not verdicts:
        raise RefusedError(404, "There are no judgments on these documents to undo.")
    correction.query.undo(verdicts, new_token(), "asked again")
    correction.query.write_back()
    record(
        connection, who.person.id, who.project.id, "requested new judgments",
        query=correction.judged.query.name, documents=list(loop), verdicts=len(verdicts),
    )  # fmt: skip
    return len(verdicts)


def discard(
    connection: Connection, who: Member, query_id: int, position: int, reason: str | None
) -> None:
    """Discard the judgment that the entry at a position of a query's log belongs to."""
    correction = correct_query(connection, who, query_id)
    state = correction.judged.state
    answer = [each for each in _answer_at(correction, position) if state.stands(each.position)]
    if not answer:
        raise RefusedError(409, "This judgment does not stand any more.")
    correction.query.undo(answer, new_token(), reason)
    correction.query.write_back()
    record(
        connection, who.person.id, who.project.id, "discarded a judgment",
        query=correction.judged.query.name, entry=position, person=answer[0].user,
    )  # fmt: skip


def restore(connection: Connection, who: Member, query_id: int, position: int) -> None:
    """Restore a judgment that a manager discarded."""
    correction = correct_query(connection, who, query_id)
    answer = [
        each for each in _answer_at(correction, position) if is_discarded(correction.judged, each)
    ]
    if not answer:
        raise RefusedError(409, "No manager discarded this judgment.")
    if not can_return(correction.judged, answer):
        raise RefusedError(
            409, "The same person has judged this again since: discard that judgment first."
        )
    correction.query.restore(answer)
    correction.query.write_back()
    record(
        connection, who.person.id, who.project.id, "restored a judgment",
        query=correction.judged.query.name, entry=position, person=answer[0].user,
    )  # fmt: skip


def judgment_at(
    connection: Connection, who: Member, query_id: int, position: int
) -> tuple[JudgedQuery, QueryLogEntry]:
    """A judgment of documents that stands, which is to be an example for others; its query."""
    correction = correct_query(connection, who, query_id)
    entry = _answer_at(correction, position)[0]
    if entry.kind not in (Kind.VERDICT, Kind.GRADE):
        raise RefusedError(409, "Only judgments of pairs and grades can be examples.")
    if not correction.judged.state.stands(entry.position):
        raise RefusedError(409, "This judgment does not stand any more.")
    return correction.judged, entry


def withdraw(
    connection: Connection,
    who: Member,
    query_id: int,
    document: int | None,
    reason: str | None = None,
) -> None:
    """Withdraw a query, or one of its documents by position; its open tasks go to nobody."""
    correction = correct_query(connection, who, query_id)
    state = correction.judged.state
    _check_document(correction, document)
    if state.withdrawal_of(document) is not None:
        raise RefusedError(409, "It has been withdrawn already.")
    if document is not None and len(state.documents) - len(state.withdrawn_documents) <= 2:
        raise RefusedError(409, "A query needs two documents: withdraw the query instead.")
    correction.query.withdraw(document, reason)
    _release_leases(correction, document)
    correction.query.write_back()
    _record_withdrawal(correction, who, "withdrew", document)


def readmit(connection: Connection, who: Member, query_id: int, document: int | None) -> None:
    """Take a withdrawn query or document back in."""
    correction = correct_query(connection, who, query_id)
    _check_document(correction, document)
    withdrawal = correction.judged.state.withdrawal_of(document)
    if withdrawal is None:
        raise RefusedError(409, "It is not withdrawn.")
    correction.query.readmit(withdrawal)
    correction.query.write_back()
    _record_withdrawal(correction, who, "restored", document)


def is_discarded(judged: JudgedQuery, entry: QueryLogEntry) -> bool:
    """Whether an entry is a judgment that a manager undid, and nobody brought back."""
    undo = judged.state.undo_of(entry.position)
    return undo is not None and judged.log[undo].manager is not None


def can_return(judged: JudgedQuery, answer: Sequence[QueryLogEntry]) -> bool:
    """Whether their author has not judged the same again since."""
    return not any(
        each.user == entry.user
        and each.purpose is entry.purpose
        and each.kind in _JUDGMENTS
        and {each.left, each.right} == {entry.left, entry.right}
        for entry in answer
        for each in judged.standing
    )


def _answer_at(correction: Correction, position: int) -> list[QueryLogEntry]:
    """The entries of the judgment that an entry belongs to."""
    log = correction.judged.log
    if not 0 <= position < len(log) or log[position].kind not in _JUDGMENTS:
        raise RefusedError(404, "The judgment does not exist.")
    return [each for each in log if each.token == log[position].token]


def _check_document(correction: Correction, document: int | None) -> None:
    if document is not None and not 0 <= document < len(correction.judged.items):
        raise RefusedError(404, "The document does not exist.")


def _release_leases(correction: Correction, document: int | None) -> None:
    """End the leases of tasks that are not asked any more."""
    statement = update(Lease).where(Lease.query_id == correction.judged.query.id, ~Lease.released)
    if document is not None:
        if isinstance(correction.judged.state.mode, RankingsMode):
            return  # rankings are compared without it
        statement = statement.where((Lease.left == document) | (Lease.right == document))
    correction.connection.execute(
        statement.values(released=True, expires_at=correction.query.now, tab="")
    )


def _record_withdrawal(
    correction: Correction, who: Member, verb: str, document: int | None
) -> None:
    details = {"query": correction.judged.query.name}
    if document is not None:
        details["document"] = correction.judged.items[document]
    noun = "a query" if document is None else "a document"
    record(correction.connection, who.person.id, who.project.id, f"{verb} {noun}", **details)
