"""What judging a project costs, by how sure its results are to be: simulated in a job, and kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from sqlalchemy import Connection, delete, exists, func, insert, select

from podium.judging import Overlap
from podium.judging.algorithms import CAREFUL
from podium.judging.assessors.simulated import PAIR_SECONDS
from podium.judging.workload import Workload, estimate_grading_workload, estimate_workload
from podium.studio.accounts.identity import Member
from podium.studio.jobs.queue import UNDER_WAY, JobContext, enqueue
from podium.studio.json_types import JsonObject
from podium.studio.projects.service import project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import Job, ProjectQuery, QueryCandidate, Ranking, Report

KIND = "workload"
Effort = Literal["fast", "balanced", "careful"]
_FEW_QUERIES, _FEW_DOCUMENTS = 100, 50
"""What is simulated before the import: as many as `podium simulate` has by default."""
_RUNS = 50
_SIMULATED_DOCUMENTS = 5_000
"""Large queries are simulated fewer times: their judgments vary little."""
_BUDGET = 3
"""Judgments for each document that the careful algorithm asks for."""


def effort_settings(mode: str, effort: Effort) -> dict[str, object]:
    """The settings of a project that decide how sure its results are.

    Example:
        >>> effort_settings("grades", "balanced")["overlap_share"]
        0.2
    """
    settings: dict[str, object] = {"algorithm": "adaptive", "budget": None, "overlap_share": 0.0}
    if effort == "balanced":
        settings |= {"overlap_share": 0.2, "overlap_assessors": 2}
    elif effort == "careful" and mode == Mode.PAIRS:
        settings |= {"algorithm": CAREFUL}
    elif effort == "careful":
        settings |= {"overlap_share": 1.0, "overlap_assessors": 3}
    return settings


def effort_of(project: Mapping[str, object]) -> Effort | None:
    """Which of them a project's settings are; None if they are others.

    Example:
        >>> effort_of({"mode": "grades"} | effort_settings("grades", "careful"))
        'careful'
    """
    efforts: tuple[Effort, ...] = ("fast", "balanced", "careful")
    for effort in efforts:
        settings = effort_settings(str(project["mode"]), effort)
        if all(project[name] == value for name, value in settings.items()):
            return effort
    return None


@dataclass(frozen=True)
class Extent:
    """What there is to judge.

    Attributes:
        mode: How it is judged.
        queries: How many queries there are.
        documents: How many documents a query has on average, or rankings side by side.
        k: How many documents are put in order.
        assumed: Whether queries and documents are a guess, because nothing is imported yet.
    """

    mode: str
    queries: int
    documents: int
    k: int
    assumed: bool


def extent_of(connection: Connection, project: ProjectRow, k: int) -> Extent:
    """What there is to judge in a project, if the best k are put in order."""
    judged = (ProjectQuery.project_id == project.id, ProjectQuery.withdrawn.is_(False))
    of_query = Ranking if project.mode == Mode.RANKINGS else QueryCandidate
    queries = connection.scalar(select(func.count()).select_from(ProjectQuery).where(*judged)) or 0
    documents = connection.scalar(
        select(func.count())
        .select_from(of_query)
        .join(ProjectQuery, ProjectQuery.id == of_query.query_id)
        .where(*judged)
    )
    if not queries:
        few = 2 if project.mode == Mode.RANKINGS else _FEW_DOCUMENTS
        return Extent(project.mode, _FEW_QUERIES, few, k, True)
    mean = max(round((documents or 0) / queries), 1)
    return Extent(project.mode, queries, mean, k, False)


def workload_of(connection: Connection, project: ProjectRow, k: int) -> JsonObject | None:
    """What each effort costs for what is in a project now; None if it is not known yet."""
    content = connection.scalar(
        select(Report.content).where(Report.project_id == project.id, Report.kind == KIND)
    )
    extent = asdict(extent_of(connection, project, k))
    return content if content is not None and content["extent"] == extent else None


def request_workload(connection: Connection, who: Member, k: int) -> bool:
    """Queue the simulation unless it is under way; returns whether it was queued."""
    under_way = exists().where(
        Job.project_id == who.project.id, Job.kind == KIND, Job.state.in_(UNDER_WAY)
    )
    if connection.scalar(select(under_way)):
        return False
    enqueue(connection, who.project.id, who.person.id, KIND, {"k": k})
    return True


def run_workload(work: JobContext) -> None:
    """Run a job that simulates what each effort costs."""
    project = reading(work.engine, lambda c: project_row(c, work.job.project_id))
    k = int(work.job.parameters["k"])
    extent = reading(work.engine, lambda c: extent_of(c, project, k))
    content = {"extent": asdict(extent), "costs": costs(extent)}

    def keep(connection: Connection) -> None:
        old = (Report.project_id == project.id, Report.kind == KIND)
        connection.execute(delete(Report).where(*old))
        connection.execute(
            insert(Report).values(
                project_id=project.id, kind=KIND, content=content, entries=0, made_at=time.time()
            )
        )
        work.finish(connection, {})
        connection.execute(delete(Job).where(Job.id == work.job.id))

    in_transaction(work.engine, keep)


def costs(extent: Extent) -> dict[str, dict[str, float]]:
    """The judgments and hours that each effort takes, as ``podium simulate`` computes them.

    Example:
        >>> costs(Extent("grades", 10, 20, 5, False))["careful"]["judgments"]
        600.0
    """
    once = _judged_once(extent)
    result = {}
    for effort in ("fast", "balanced", "careful"):
        settings = effort_settings(extent.mode, effort)
        judgments, overlap = once.judgments, None
        if settings["algorithm"] == CAREFUL:
            judgments = np.full_like(judgments, _BUDGET * extent.documents)
        elif settings["overlap_share"]:
            overlap = Overlap(settings["overlap_share"], settings["overlap_assessors"])  # type: ignore[arg-type]
        taken = Workload(
            effort, extent.queries, judgments, once.rounds, once.quality, overlap, once.seconds
        )
        result[effort] = {"judgments": taken.total, "hours": taken.hours}
    return result


def _judged_once(extent: Extent) -> Workload:
    """The work if one person judges everything."""
    queries, documents, k = extent.queries, extent.documents, extent.k
    runs = min(max(_SIMULATED_DOCUMENTS // documents, 2), _RUNS)
    if extent.mode == Mode.PAIRS:
        return estimate_workload(queries, documents, min(k, documents), runs=runs)
    if extent.mode == Mode.GRADES:
        return estimate_grading_workload(queries, documents, min(k, documents), runs=2)
    each = np.full(2, documents * (documents - 1) // 2)
    return Workload("rankings", queries, each, each, np.ones(2), None, PAIR_SECONDS)
