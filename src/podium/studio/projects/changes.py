"""Changes to a project that is there: its settings, pausing it, ending it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError
from sqlalchemy import Connection, delete, exists, func, select, update

from podium.data.json_lines import json_line
from podium.studio.accounts.identity import check_not_archived, record
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.judging.blocked import check_assignments
from podium.studio.judging.modes import new_mode
from podium.studio.judging.next_task import reopen_queries
from podium.studio.judging.scales import scale_of
from podium.studio.projects.progress import outdate_report
from podium.studio.projects.service import JUDGING, ProjectSettings, project_row
from podium.studio.store.dialects import transaction_number
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import Lease, Project, ProjectQuery, QueryCandidate, Ranking

_LOWERED = ("budget", "overlap_share", "overlap_assessors")
"""Settings that may be lowered later, so that a project that lacks people can be finished."""


class ProjectChange(ProjectSettings):
    """What to change of a project; what is left out stays.

    Example:
        >>> ProjectChange(k=5).model_dump(exclude_unset=True)
        {'k': 5}
    """

    name: Annotated[str, Field(min_length=1, max_length=200)] = ""
    paused: bool = False
    archived: bool = False
    """An archived project is paused, cannot be changed, and is listed separately."""


def settings_of(project: ProjectRow) -> ProjectSettings:
    """A project's settings, from its row."""
    values = {name: getattr(project, name) for name in ProjectSettings.model_fields}
    return ProjectSettings(**values)


def has_answers(connection: Connection, project_id: int) -> bool:
    """Whether anyone has answered anything."""
    return bool(
        connection.scalar(
            select(exists().where(ProjectQuery.project_id == project_id, ProjectQuery.entries > 0))
        )
    )


def change_project(
    connection: Connection, user_id: int, project_id: int, changes: JsonObject
) -> ProjectRow:
    """Change a project's settings, and return its row as it is then.

    Args:
        connection: A transaction.
        user_id: Who changes it.
        project_id: The project.
        changes: Some of the fields of `ProjectChange`, checked.
    """
    # An import refers to the project's row until it ends: a stronger lock would wait for it.
    project = project_row(connection, project_id, for_change=True)
    before = {
        **settings_of(project).model_dump(mode="json"),
        "paused": project.paused,
        "archived": project.archived,
    }
    changed = {name: value for name, value in changes.items() if before[name] != value}
    if not changed:
        return project
    if changed.get("archived", True):  # restoring it is the one change that it takes
        check_not_archived(project)
    archived = changed.get("archived", project.archived)
    paused = archived or changed.get("paused", project.paused)
    # Checked as a whole, as a new project's are.
    updated = {**before, **changed}
    del updated["paused"], updated["archived"]
    try:
        values = ProjectSettings(**updated).model_dump(mode="json")
    except ValidationError as error:
        raise RefusedError(422, first_problem(error)) from error
    fixed = [name for name in JUDGING if name in changed]
    answered = bool(fixed) and has_answers(connection, project_id)
    if "mode" in changed and connection.scalar(
        select(exists().where(ProjectQuery.project_id == project_id))
    ):
        raise RefusedError(409, "The judging mode cannot be changed once the project has queries.")
    if len(scale_of(updated["scale"])) != len(scale_of(before["scale"])) and has_answers(
        connection, project_id
    ):
        raise RefusedError(
            409,
            "There are judgments: the number of grades cannot be changed any more, only their "
            "names, descriptions and colours.",
        )
    raised = []
    if answered:
        if before["budget"] is None:
            before["budget"] = _smallest_budget(connection, project_id)
        raised = [
            name
            for name in fixed
            if name not in _LOWERED or not _is_lower(before[name], changed[name])
        ]
    if raised:
        raise RefusedError(
            409,
            "There are judgments: %(settings)s cannot be changed any more, except that fewer "
            "people may judge a pair, a smaller share of pairs, or a lower budget.",
            settings=", ".join(raised),
        )
    connection.execute(
        update(Project)
        .where(Project.id == project_id)
        .values(**values, paused=paused, archived=archived)
    )
    values_then = {name: [_short(before[name]), _short(changed[name])] for name in sorted(changed)}
    record(connection, user_id, project_id, "changed the settings", **values_then)
    project = project_row(connection, project_id)
    if answered:
        # What was settled stays settled; the next request works out what is left.
        reopen_queries(connection, ProjectQuery.project_id == project_id)
        outdate_report(connection, project_id)
    elif fixed:
        _start_over(connection, project)
    check_assignments(connection, project)
    return project


def _short(value: object) -> object:
    """A value for the audit log; guidelines and lists are long."""
    if isinstance(value, list):
        value = json_line(value).decode().strip()
    return f"{value[:100]}…" if isinstance(value, str) and len(value) > 100 else value


def _is_lower(before: float, after: float | None) -> bool:
    """Whether no more is asked than before."""
    return after is not None and after <= before


def _smallest_budget(connection: Connection, project_id: int) -> int:
    """The lowest budget that any query has by default, which goes by its documents."""
    sizes = (
        select(func.count().label("documents"))
        .select_from(QueryCandidate)
        .join(ProjectQuery, ProjectQuery.id == QueryCandidate.query_id)
        .where(ProjectQuery.project_id == project_id)
        .group_by(QueryCandidate.query_id)
        .subquery()
    )
    return 3 * int(connection.scalar(select(func.min(sizes.c.documents))) or 0)


def delete_project(connection: Connection, user_id: int, project: ProjectRow, name: str) -> None:
    """End a project for good, if the person who asks can name it."""
    if name.strip() != project.name:
        raise RefusedError(409, "Type the project's name to delete it with all its judgments.")
    connection.execute(delete(Project).where(Project.id == project.id))
    record(connection, user_id, project.id, "deleted the project", name=project.name)


def _start_over(connection: Connection, project: ProjectRow) -> None:
    """Work out anew what can be asked, where nothing has been answered."""
    connection.execute(
        delete(Lease).where(
            Lease.query_id.in_(select(ProjectQuery.id).where(ProjectQuery.project_id == project.id))
        )
    )
    rankings = (
        select(func.count())
        .where(Ranking.query_id == ProjectQuery.id)
        .correlate(ProjectQuery)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(ProjectQuery.id, ProjectQuery.ordered, func.count(), rankings)
        .join(QueryCandidate, QueryCandidate.query_id == ProjectQuery.id)
        .where(ProjectQuery.project_id == project.id)
        .group_by(ProjectQuery.id, ProjectQuery.ordered)
    ).all()
    sizes: dict[tuple[bool, int, int], list[int]] = {}
    for query_id, *size in rows:
        sizes.setdefault((size[0], size[1], size[2]), []).append(query_id)
    for (ordered, *counts), queries in sizes.items():
        # Queries of one size are alike before anything is known of them.
        items, ranked = ([str(number) for number in range(count)] for count in counts)
        mode = new_mode(project, ordered, items, ranked)
        state = {
            "free": len(mode.tasks(None)),
            "available": bool(mode.tasks(None)),
            "changed": transaction_number(),
            "lease_expiry": None,
            "expected_left": mode.expected_left(),
        }
        for begin in range(0, len(queries), 500):
            some = queries[begin : begin + 500]
            connection.execute(
                update(ProjectQuery).where(ProjectQuery.id.in_(some)).values(**state)
            )
