"""Audits of a model: its judgments held against people's on everything that both judged."""

from __future__ import annotations

import math
import time
from dataclasses import asdict

from sqlalchemy import Connection, delete, exists, insert, select

from podium.judging.auditing.audit import Audit, audit
from podium.judging.auditing.sample import HumanLabels, Unit, human_labels
from podium.judging.models.answer_log import ModelAnswer
from podium.studio.accounts.identity import Member
from podium.studio.jobs.queue import UNDER_WAY, JobContext, enqueue
from podium.studio.json_types import JsonObject
from podium.studio.judging.judged import judged_queries
from podium.studio.judging.modes import QueryLogEntry
from podium.studio.models.answers import all_answers
from podium.studio.models.assessors import ModelRow, model_row
from podium.studio.projects.service import project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Purpose
from podium.studio.store.rows import ReportRow, fetch_one
from podium.studio.store.tables import Job, Report, User

AUDIT = "model-audit"
"""The kind of job that audits a model."""
_DRAWS = 500


def request_audit(connection: Connection, who: Member, model_id: int) -> bool:
    """Queue an audit of a model unless one is under way; returns whether it was queued."""
    row = model_row(connection, who.project.id, model_id)
    if is_being_audited(connection, who.project.id, row.id):
        return False
    enqueue(connection, who.project.id, who.person.id, AUDIT, {"model": row.id})
    return True


def is_being_audited(connection: Connection, project_id: int, model_id: int) -> bool:
    """Whether an audit of a model is under way."""
    waiting = exists().where(
        Job.project_id == project_id,
        Job.kind == AUDIT,
        Job.state.in_(UNDER_WAY),
        Job.parameters["model"].as_integer() == model_id,
    )
    return bool(connection.scalar(select(waiting)))


def audit_of(connection: Connection, row: ModelRow) -> ReportRow | None:
    """The last audit of a model, or None."""
    statement = select(Report.__table__).where(
        Report.project_id == row.project_id, Report.kind == _kind(row.id)
    )
    return fetch_one(connection, statement, ReportRow)


def run_audit(work: JobContext) -> None:
    """Run a job that audits a model."""
    model_id = int(work.job.parameters["model"])
    row = reading(work.engine, lambda c: model_row(c, work.job.project_id, model_id))
    project = reading(work.engine, lambda c: project_row(c, work.job.project_id))
    logs, judged_by_model, entries = {}, set(), 0
    for judged in judged_queries(work.engine, project, only_done=False):
        logs[judged.query.name] = judged.state.mode.log
        judged_by_model |= {
            _unit(judged.query.name, judged.items, entry)
            for entry in judged.standing
            if entry.purpose is Purpose.MODEL and entry.user == row.user_id
        }
        entries += len(judged.log)
        work.progress(0.5)
    # A judgment that a manager discarded is none, whatever the model answered.
    answers = [
        answer
        for answer in all_answers(work.engine, row.id)
        if (answer.query_id, *sorted(answer.items)) in judged_by_model
    ]
    content = _content(answers, human_labels(logs))
    names = reading(work.engine, lambda c: _names(c, content))

    def keep(connection: Connection) -> None:
        connection.execute(
            delete(Report).where(Report.project_id == project.id, Report.kind == _kind(row.id))
        )
        connection.execute(
            insert(Report).values(
                project_id=project.id,
                kind=_kind(row.id),
                content=content | {"names": names},
                entries=entries,
                made_at=time.time(),
            )
        )
        work.finish(connection, {"units": content["units"]})

    in_transaction(work.engine, keep)


def _kind(model_id: int) -> str:
    return f"audit-{model_id}"


def _unit(query: str, items: list[str], entry: QueryLogEntry) -> Unit:
    positions = [at for at in (entry.left, entry.right) if at is not None]
    return (query, *sorted(items[at] for at in positions))


def _content(answers: list[ModelAnswer], votes: HumanLabels) -> JsonObject:
    """An audit as JSON."""
    judged = {(answer.query_id, *sorted(answer.items)) for answer in answers if answer.label}
    shared = {unit for units in votes.values() for unit in units if unit in judged}
    if not shared:
        return {"units": 0}
    return _as_json(audit(answers, votes, draws=_DRAWS), len(shared))


def _as_json(result: Audit, units: int) -> JsonObject:
    tests = [] if result.test is None else [asdict(each) for each in result.test.tests]
    return {
        "units": units,
        "queries": len({unit[0] for unit in result.sample.units}),
        "people": list(result.sample.people),
        "conclusion": asdict(result.conclusion),
        "figures": {
            name: [_number(end) for end in (each.value, each.low, each.high)]
            for name, each in result.figures.items()
        },
        "tests": [
            {name: _number(value) for name, value in test.items() if name != "person"}
            | {"person": test["person"]}
            for test in tests
        ],
    }


def _number(value: float) -> float | None:
    """A number for JSON, which has no not-a-number."""
    return None if math.isnan(value) else float(value)


def _names(connection: Connection, content: JsonObject) -> dict[str, str]:
    people = [int(person) for person in content.get("people", [])]
    rows = connection.execute(select(User.id, User.name).where(User.id.in_(people)))
    return {str(row.id): row.name for row in rows}
