"""Projects: settings, and adding queries."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import Connection, func, insert, select

from podium import data
from podium.data import CandidateList
from podium.errors import DataError
from podium.judging.algorithms import ALGORITHMS, CAREFUL
from podium.studio.accounts.identity import record
from podium.studio.errors import RefusedError
from podium.studio.judging.modes import new_mode
from podium.studio.judging.scales import (
    MOST_QUESTIONS,
    AssessorQuestion,
    ScaleGrade,
    check_questions,
    check_scale,
)
from podium.studio.projects.display import DisplayField, check_display
from podium.studio.store.database import storable
from podium.studio.store.dialects import transaction_number
from podium.studio.store.enums import Mode, Role
from podium.studio.store.metadata import storable_metadata
from podium.studio.store.rows import ProjectRow, fetch_one
from podium.studio.store.sanitizing import sanitized
from podium.studio.store.tables import Membership, Project, ProjectQuery, QueryCandidate, Ranking

MAX_PROJECTS = 1_000
"""How many projects a server holds."""
MAX_QUERIES = 200_000
"""How many queries a project holds."""
_MAX_CANDIDATES = 10_000
_MAX_NAME_LENGTH = 400


_Items = TypeVar("_Items")


def _checked(check: Callable[[_Items], None]) -> Callable[[_Items], _Items]:
    """A validator that refuses a list or leaves it as it is."""

    def validate(items: _Items) -> _Items:
        check(items)
        return items

    return validate


class ProjectSettings(BaseModel):
    """How a project is judged.

    Example:
        >>> ProjectSettings(name="Shoes", k=5).algorithm
        'adaptive'
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """The name."""

    mode: Mode = Mode.PAIRS
    """The judging mode: pairs, grades or rankings."""

    k: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many documents to put in order."""

    algorithm: str = "adaptive"
    """How pairs are chosen: by a name in ``podium.judging.ALGORITHMS``, or ``careful``."""

    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed for the order of documents and the sides."""

    budget: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """How many judgments ``careful`` may ask for in a query; None is three for each document."""

    overlap_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of pairs that several people judge."""

    overlap_assessors: Annotated[int, Field(ge=1, le=100)] = 2
    """How many people judge each of those."""

    assigned_only: bool = False
    """Whether people judge only the queries that were assigned to them."""

    guidelines: Annotated[str, Field(max_length=100_000)] = ""
    """Markdown that everyone who judges can read."""

    lease_seconds: Annotated[float, Field(ge=5, le=86400)] = 900.0
    """How long someone may hold a task before others get it."""

    repeat_rate: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """The share of pairs that the same person is asked again, with sides swapped."""

    gold_rate: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """The share of gold pairs mixed in."""

    display: Annotated[list[DisplayField], AfterValidator(_checked(check_display))] = []
    """The fields of a document that assessors see, in order; empty is title, address and text."""

    scale: Annotated[list[ScaleGrade], AfterValidator(_checked(check_scale))] = []
    """Two to ten grades, worst first; empty is bad, fair, good, excellent and perfect."""

    questions: Annotated[
        list[AssessorQuestion],
        Field(max_length=MOST_QUESTIONS),
        AfterValidator(_checked(check_questions)),
    ] = []
    """What assessors are asked besides the verdict."""

    @field_validator("algorithm")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ALGORITHMS and name != CAREFUL:
            raise ValueError(f"known algorithms are {', '.join([*ALGORITHMS, CAREFUL])}")
        return name

    @field_validator("name", "guidelines", mode="before")  # a blank name is too short
    @classmethod
    def _storable(cls, text: object) -> object:
        return storable(text).strip() if isinstance(text, str) else text


def create_project(connection: Connection, owner_id: int, settings: ProjectSettings) -> int:
    """Create a project with an owner, and return its id."""
    count = connection.scalar(select(func.count()).select_from(Project))
    if (count or 0) >= MAX_PROJECTS:
        raise RefusedError(
            429,
            "There are %(count)s projects, the most a server allows. Delete one first.",
            count=int(count or 0),
        )
    project_id = connection.execute(
        insert(Project)
        .values(
            **settings.model_dump(mode="json"),
            paused=False,
            archived=False,
            created_at=time.time(),
            incarnation=random.SystemRandom().getrandbits(62),
        )
        .returning(Project.id)
    ).scalar_one()
    connection.execute(
        insert(Membership).values(project_id=project_id, user_id=owner_id, role=Role.OWNER.value)
    )
    record(connection, owner_id, project_id, "created the project", name=settings.name)
    return int(project_id)


def project_row(connection: Connection, project_id: int, *, for_change: bool = False) -> ProjectRow:
    """A project's row, locked if it is to be changed."""
    statement = select(Project.__table__).where(Project.id == project_id)
    if for_change:
        statement = statement.with_for_update(key_share=True)
    row = fetch_one(connection, statement, ProjectRow)
    if row is None:
        raise RefusedError(404, "The project does not exist.")
    return row


JUDGING = ("k", "algorithm", "seed", "budget", "overlap_share", "overlap_assessors")
"""Settings that decide which pairs are asked: fixed once there are answers."""


def check_unchanged(connection: Connection, project: ProjectRow) -> None:
    """Refuse an import if settings that matter to it have changed since it began; lock them."""
    now = connection.execute(
        select(Project.__table__).where(Project.id == project.id).with_for_update(read=True)
    ).one_or_none()
    names = ("mode", "archived", *JUDGING)
    if now is None or any(getattr(now, name) != getattr(project, name) for name in names):
        raise DataError(
            "the project's settings were changed during the import", hint="Import it again."
        )


def add_query(
    connection: Connection,
    project: ProjectRow,
    entry: CandidateList,
    rankings: Mapping[str, Sequence[str]] | None = None,
    go_on: Callable[[], object] = lambda: None,
) -> int:
    """Add a query with its candidates to a project, and return its id.

    Args:
        connection: A transaction.
        project: The project's row.
        entry: The query. If all candidates have scores, they are sorted by score, which saves
            judgments.
        rankings: Whole rankings to compare, by name, each a list of document ids.
        go_on: Called before each document that has to be sanitised; it may raise.
    """
    items = [candidate.document_id for candidate in entry.candidates]
    _check(entry, items)
    if project.mode == Mode.RANKINGS and len(rankings or {}) < 2:
        raise DataError(
            f"query {entry.query_id!r} has {len(rankings or {})} rankings",
            hint="Give at least two to compare.",
        )
    ordered = all(candidate.score is not None for candidate in entry.candidates)
    candidates = sorted(entry.candidates, key=lambda each: -(each.score or 0.0) if ordered else 0)
    items = [candidate.document_id for candidate in candidates]
    mode = new_mode(project, ordered, items, list(rankings or {}))
    query_id = connection.execute(
        insert(ProjectQuery)
        .values(
            project_id=project.id,
            name=entry.query_id,
            text=storable(entry.query),
            description=storable(entry.description),
            ordered=ordered,
            entries=0,
            free=len(mode.tasks(None)),
            available=bool(mode.tasks(None)),
            changed=transaction_number(),
            judgments=0,
            done=not mode.tasks(None),
            expected_left=mode.expected_left(),
            withdrawn=False,
        )
        .returning(ProjectQuery.id)
    ).scalar_one()
    references = random.SystemRandom().sample(range(2**31), len(candidates))
    connection.execute(
        insert(QueryCandidate),
        [
            {
                "query_id": query_id,
                "position": position,
                "reference": reference,
                "item": candidate.document_id,
                "title": storable(candidate.title),
                "text": storable(candidate.text),
                "html": _sanitized(candidate, entry, go_on),
                "url": storable(candidate.url),
                "score": candidate.score,
                "extra": storable_metadata(candidate.metadata, candidate.document_id),
            }
            for position, (candidate, reference) in enumerate(
                zip(candidates, references, strict=True)
            )
        ],
    )
    if rankings:
        _add_rankings(connection, query_id, entry.query_id, items, rankings)
    return int(query_id)


def add_queries(
    connection: Connection,
    project: ProjectRow,
    entries: Iterable[CandidateList],
    rankings: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> int:
    """Add the queries that a project does not have yet, and return how many."""
    known = set(
        connection.scalars(select(ProjectQuery.name).where(ProjectQuery.project_id == project.id))
    )
    count = 0
    for entry in entries:
        if entry.query_id not in known:
            known.add(entry.query_id)
            add_query(connection, project, entry, (rankings or {}).get(entry.query_id))
            count += 1
    return count


def _sanitized(candidate: data.Candidate, entry: CandidateList, go_on: Callable[[], object]) -> str:
    if candidate.html:
        go_on()
    try:
        return storable(sanitized(candidate.html))
    except DataError as error:
        raise DataError(
            f"document {candidate.document_id!r} of query {entry.query_id!r}: {error.problem}",
            hint=error.hint,
        ) from error


def _check(entry: CandidateList, items: Sequence[str]) -> None:
    for name in (entry.query_id, *items):
        if not 0 < len(name) <= _MAX_NAME_LENGTH or storable(name) != name:
            raise DataError(
                f"{name[:50]!r} is not a valid id", hint=f"Give 1 to {_MAX_NAME_LENGTH} characters."
            )
    if len(set(items)) < len(items):
        raise DataError(
            f"query {entry.query_id!r} has a duplicate document", hint="List each document once."
        )
    if not 2 <= len(items) <= _MAX_CANDIDATES:
        raise DataError(
            f"query {entry.query_id!r} has {len(items)} documents",
            hint=f"Give 2 to {_MAX_CANDIDATES}.",
        )


def _add_rankings(
    connection: Connection,
    query_id: int,
    name: str,
    items: Sequence[str],
    rankings: Mapping[str, Sequence[str]],
) -> None:
    positions = {item: position for position, item in enumerate(items)}
    for ranking, ranked in rankings.items():
        missing = [item for item in ranked if item not in positions]
        if missing:
            raise DataError(
                f"ranking {ranking!r} of query {name!r} has {missing[0]!r}, which is not among its "
                "candidates",
                hint="Give the texts of all ranked documents.",
            )
    connection.execute(
        insert(Ranking),
        [
            {
                "query_id": query_id,
                "position": position,
                "name": ranking[:_MAX_NAME_LENGTH],
                "items": [positions[item] for item in ranked],
            }
            for position, (ranking, ranked) in enumerate(rankings.items())
        ],
    )
