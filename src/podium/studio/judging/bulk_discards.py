"""Discarding all that someone judged since some time, and restoring it: jobs of the queue.

Each query is a transaction of its own, so that nobody who judges waits for all of them. A job that
another worker takes over goes on where the first one stopped: what is undone is not undone again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated
from uuid import UUID, uuid5

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from podium.studio.accounts.identity import Member, Person, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import JobContext, State, enqueue
from podium.studio.judging.corrections import (
    Correction,
    can_return,
    correct_query,
    is_discarded,
)
from podium.studio.store.database import in_transaction, reading, storable
from podium.studio.store.enums import Kind, Role
from podium.studio.store.rows import JobRow, ProjectRow, fetch_all, fetch_one
from podium.studio.store.tables import Job, JudgmentCount, LogEntry, Project, ProjectQuery
from podium.studio.store.tokens import new_token

DISCARD = "discard"
RESTORE = "restore"
_CHUNK = 500


class DiscardRequest(BaseModel):
    """Whose judgments to discard, and since when.

    Example:
        >>> DiscardRequest(since=0.0, reason=" left the team ").reason
        'left the team'
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    since: Annotated[float, Field(ge=0, lt=1e11)] = 0.0
    """In seconds since 1970."""
    reason: Annotated[
        str, AfterValidator(lambda text: storable(text).strip()), Field(max_length=2000)
    ] = ""


def request_discard(
    connection: Connection, who: Member, user_id: int, request: DiscardRequest
) -> int:
    """Queue a job that discards someone's judgments; returns its id."""
    check_not_archived(who.project)
    if not _has_judged(connection, who.project.id, user_id):
        raise RefusedError(404, "This person has judged nothing here.")
    # The tokens of the entries are derived from it, so nobody may guess it.
    parameters = {"user": user_id, "batch": new_token().hex, **request.model_dump()}
    return enqueue(connection, who.project.id, who.person.id, DISCARD, parameters)


def request_restoration(connection: Connection, who: Member, job_id: int) -> int:
    """Queue a job that restores what another discarded; returns its id."""
    check_not_archived(who.project)
    job = fetch_one(
        connection,
        select(Job.__table__).where(
            Job.id == job_id,
            Job.project_id == who.project.id,
            Job.kind == DISCARD,
            Job.state == State.DONE.value,
        ),
        JobRow,
    )
    if job is None:
        raise RefusedError(404, "There is nothing to restore.")
    parameters = {name: job.parameters[name] for name in ("user", "batch")} | {"job": job.id}
    return enqueue(connection, who.project.id, who.person.id, RESTORE, parameters)


def bulk_jobs(connection: Connection, project_id: int, user_id: int) -> list[JobRow]:
    """The jobs that discarded or restored someone's judgments, newest first."""
    statement = (
        select(Job.__table__)
        .where(Job.project_id == project_id, Job.kind.in_([DISCARD, RESTORE]))
        .order_by(Job.id.desc())
        .limit(_CHUNK)
    )
    jobs = fetch_all(connection, statement, JobRow)
    return [job for job in jobs if job.parameters["user"] == user_id]


def run_discard(work: JobContext) -> None:
    """Run a job that discards judgments."""
    parameters = work.job.parameters
    user_id, batch = int(parameters["user"]), UUID(parameters["batch"])

    def discard_in(connection: Connection, query_id: int) -> int:
        correction = correct_query(connection, _manager(connection, work.job), query_id)
        judgments = [
            entry
            for entry in correction.judged.standing
            if entry.user == user_id
            and entry.kind is not Kind.SKIP
            # Later answers are not meant, and would have the tokens of the first attempt.
            and parameters["since"] <= entry.at <= work.job.created_at
        ]
        if judgments:
            token = uuid5(batch, str(query_id))
            correction.query.undo(judgments, token, parameters["reason"] or None)
            correction.query.write_back()
        return len({entry.token for entry in judgments})

    queries = reading(
        work.engine,
        lambda c: _judged_queries(c, work.job.project_id, user_id, parameters["since"]),
    )
    _run(work, queries, discard_in, "discarded judgments")


def run_restore(work: JobContext) -> None:
    """Run a job that restores judgments."""
    parameters = work.job.parameters
    batch = UUID(parameters["batch"])

    def restore_in(connection: Connection, query_id: int) -> int:
        correction = correct_query(connection, _manager(connection, work.job), query_id)
        return _restore_batch(correction, uuid5(batch, str(query_id)))

    queries = reading(
        work.engine,
        lambda c: list(_queries_of_batch(c, work.job.project_id, int(parameters["user"]), batch)),
    )
    _run(work, queries, restore_in, "restored judgments")


def _restore_batch(correction: Correction, token: UUID) -> int:
    judged = correction.judged
    undone = [judged.log[entry.undoes or 0] for entry in judged.log if entry.token == token]
    answer = [
        entry for entry in undone if is_discarded(judged, entry) and can_return(judged, [entry])
    ]
    if answer:
        correction.query.restore(answer)
        correction.query.write_back()
    return len({entry.token for entry in answer})


def _run(
    work: JobContext,
    queries: Sequence[int],
    change: Callable[[Connection, int], int],
    action: str,
) -> None:
    result = {"judgments": 0, "queries": 0}
    for number, query_id in enumerate(queries, start=1):
        count = in_transaction(work.engine, lambda c, query=query_id: change(c, query))  # type: ignore[misc]
        result["judgments"] += count
        result["queries"] += count > 0
        work.progress(number / len(queries))

    def finish(connection: Connection) -> None:
        job = work.job
        record(
            connection, job.user_id, job.project_id, action,
            person=job.parameters["user"], job=job.id, **result,
        )  # fmt: skip
        work.finish(connection, result)

    in_transaction(work.engine, finish)


def _manager(connection: Connection, job: JobRow) -> Member:
    """Who asked for a job, as far as corrections need to know."""
    row = connection.execute(select(Project.__table__).where(Project.id == job.project_id)).one()
    return Member(Person(job.user_id, "", "", False), Role.MANAGER, ProjectRow(*row))


def _has_judged(connection: Connection, project_id: int, user_id: int) -> bool:
    return bool(_judged_queries(connection, project_id, user_id, 0.0))


def _judged_queries(
    connection: Connection, project_id: int, user_id: int, since: float
) -> list[int]:
    return list(
        connection.scalars(
            select(JudgmentCount.query_id)
            .join(ProjectQuery, ProjectQuery.id == JudgmentCount.query_id)
            .where(
                ProjectQuery.project_id == project_id,
                JudgmentCount.user_id == user_id,
                JudgmentCount.last_at >= since,
            )
            .order_by(JudgmentCount.query_id)
        )
    )


def _queries_of_batch(
    connection: Connection, project_id: int, user_id: int, batch: UUID
) -> Iterator[int]:
    """The queries in which a job discarded something."""
    queries = _judged_queries(connection, project_id, user_id, 0.0)
    for begin in range(0, len(queries), _CHUNK):
        tokens = [uuid5(batch, str(query)) for query in queries[begin : begin + _CHUNK]]
        yield from connection.scalars(
            select(LogEntry.query_id).where(LogEntry.token.in_(tokens), LogEntry.part == 0)
        )
