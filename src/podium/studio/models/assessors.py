"""Model assessors of a project: endpoints, adding one, its budget, and what it has spent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator
from sqlalchemy import Connection, Integer, cast, func, insert, select, update

from podium.errors import DataError
from podium.judging import Budget
from podium.judging.entries import GRADES
from podium.judging.models.budget import Spending
from podium.judging.models.rubric import Rubric, parse_rubric, rubric_text
from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.accounts.service import add_user
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import UNDER_WAY, JobContext, JobLostError, enqueue
from podium.studio.json_types import JsonObject
from podium.studio.judging.scales import grade_names
from podium.studio.models.labels import FILE, FileLabels
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, storable
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow, ProjectRow, fetch_all, fetch_one
from podium.studio.store.tables import Job, ModelAnswerRecord, ModelAssessor, User
from podium.studio.store.tokens import new_secret


def endpoint_choices(listed: Sequence[str]) -> list[str]:
    """What managers may choose among: the endpoints without their keys.

    Example:
        >>> endpoint_choices(["https://:secret@api.example.org/v1", "http://localhost:11434/v1"])
        ['https://api.example.org/v1', 'http://localhost:11434/v1']
    """
    return [_without_key(url) for url in listed]


def endpoint_key(chosen: str, listed: Sequence[str]) -> str:
    """The key of an endpoint, empty if it needs none; refused if it is not listed.

    Example:
        >>> endpoint_key("https://api.example.org/v1", ["https://:secret@api.example.org/v1"])
        'secret'
    """
    for url in listed:
        if _without_key(url) == chosen:
            parts = urlsplit(url)
            return unquote(parts.password or parts.username or "")
    raise RefusedError(
        422,
        "This server may not call that endpoint. Its administrator lists the allowed ones in "
        "PODIUM_STUDIO_MODELS.",
    )


def _without_key(url: str) -> str:
    parts = urlsplit(url.strip())
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


RUN = "model"
"""The kind of job in which a model judges."""
MOST_MODELS = 20
"""How many model assessors a project has at most."""
_TASKS = {Mode.PAIRS: "pair", Mode.GRADES: "grade"}
_Count = Annotated[int, Field(ge=1, lt=2**53)]
_Price = Annotated[float, Field(ge=0, le=1e9)]


class ModelBudget(BaseModel):
    """What a model may spend in all its runs together; None for no limit.

    Example:
        >>> ModelBudget(max_requests=100).budget.requests
        100
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    max_requests: _Count | None = None
    max_tokens: _Count | None = None
    max_money: Annotated[float, Field(gt=0, le=1e9)] | None = None
    prompt_price: _Price = 0.0
    """The price of a million tokens of prompts."""
    answer_price: _Price = 0.0
    """The price of a million tokens of answers."""

    @model_validator(mode="after")
    def _is_limited(self) -> ModelBudget:
        if self.max_requests is None and self.max_tokens is None and self.max_money is None:
            raise ValueError("Give a limit: requests, tokens or money.")
        if self.max_money is not None and not (self.prompt_price or self.answer_price):
            raise ValueError("A limit in money needs prices.")
        return self

    @property
    def budget(self) -> Budget:
        """As `podium.judging` takes it."""
        return Budget(
            self.max_requests, self.max_tokens, self.max_money, self.prompt_price, self.answer_price
        )


class ModelSettings(ModelBudget):
    """A model assessor to add."""

    endpoint: str = Field(max_length=500)
    """One of those that the server's settings list."""
    model: str = Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
    """The model's name at the endpoint."""
    rubric: str = Field(default="", max_length=2**20)
    """What it is asked, as TOML; empty for Podium's own."""
    scope: Literal["judged", "all"] = "judged"
    """Whether it judges what people judged, or every query as a whole."""
    repeats: int = Field(default=1, ge=1, le=10)
    """How often each question is asked, to see whether answers are the same."""
    connections: int = Field(default=4, ge=1, le=32)
    """The most requests at once."""


class LabelSettings(BaseModel):
    """An assessor to add whose labels are those of a file."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(default="clicks", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
    """What it is called."""
    labels: str = Field(min_length=1, max_length=2**20)
    """Lines of qrels; after them those of `podium clicks label --undecided`, if there are any."""
    scope: Literal["judged", "all"] = "judged"
    """Whether it judges what people judged, or every query as a whole."""


class ModelRow(NamedTuple):
    """A row of `podium.studio.store.tables.ModelAssessor`."""

    id: int
    project_id: int
    user_id: int
    endpoint: str
    model: str
    rubric: str
    rubric_name: str
    rubric_hash: str
    scope: str
    repeats: int
    connections: int
    max_requests: int | None
    max_tokens: int | None
    max_money: float | None
    prompt_price: float
    answer_price: float
    created_at: float
    requests: int
    prompt_tokens: int
    answer_tokens: int

    @property
    def budget(self) -> Budget:
        """What it may spend."""
        return Budget(
            self.max_requests, self.max_tokens, self.max_money, self.prompt_price, self.answer_price
        )


@dataclass(frozen=True)
class ModelSpending:
    """What a model took so far.

    Attributes:
        answers: How many answers there are.
        unusable: How many of them have no label.
        requests: Requests sent.
        prompt_tokens: Tokens of prompts.
        answer_tokens: Tokens of answers.
        money: What it cost, by the prices given.
    """

    answers: int
    unusable: int
    requests: int
    prompt_tokens: int
    answer_tokens: int
    money: float


def add_model(
    connection: Connection, who: Member, settings: Settings, addition: ModelSettings
) -> ModelRow:
    """Add a model assessor to a project, with an account that stands for it in the log."""
    task = _check_addition(connection, who)
    endpoint_key(addition.endpoint, settings.models)
    # Podium's own is copied: another version may have another.
    text = storable(addition.rubric).strip() or rubric_text("pairs" if task == "pair" else "grades")
    rubric = _check_rubric(text, task)
    _check_grades(rubric, who.project)
    values = addition.model_dump() | {
        "rubric": text,
        "rubric_name": f"{rubric.name}/{rubric.version}"[:200],
        "rubric_hash": rubric.hash,
    }
    return _added(connection, who, values)


def add_labels(connection: Connection, who: Member, addition: LabelSettings) -> ModelRow:
    """Add the labels of a file as a model assessor: it has labels in place of a rubric."""
    _check_addition(connection, who)
    text = storable(addition.labels)
    labels = file_labels(text, who.project)
    values = {
        "endpoint": "", "model": addition.model, "scope": addition.scope, "repeats": 1,
        "connections": 1, "prompt_price": 0.0, "answer_price": 0.0,
        "rubric": text, "rubric_name": FILE, "rubric_hash": labels.hash,
    }  # fmt: skip
    return _added(connection, who, values)


def file_labels(text: str, project: ProjectRow) -> FileLabels:
    """The labels of a file; refused if the project cannot take them."""
    try:
        labels = FileLabels(text)
        if Mode(project.mode) is Mode.GRADES:
            labels.check_grades(min(len(grade_names(project.scale)), len(GRADES)) - 1)
    except DataError as error:
        raise RefusedError(422, "The labels: %(problem)s", problem=str(error)) from error
    return labels


def _check_addition(connection: Connection, who: Member) -> str:
    """Return what models judge in the project; refused if there cannot be one more."""
    mode = Mode(who.project.mode)
    if mode not in _TASKS:
        raise RefusedError(409, "Models judge pairs or grades, not rankings side by side.")
    check_not_archived(who.project)
    count = connection.scalar(
        select(func.count()).where(ModelAssessor.project_id == who.project.id)
    )
    if (count or 0) >= MOST_MODELS:
        raise RefusedError(429, "A project has at most %(most)s models.", most=MOST_MODELS)
    return _TASKS[mode]


def _added(connection: Connection, who: Member, values: JsonObject) -> ModelRow:
    # Nobody can sign in with it: it has neither a password nor an address that gets mail.
    address = f"{new_secret()[:20]}@model.invalid"
    user_id = add_user(connection, address, f"{values['model'][:180]} (model)", None)
    connection.execute(update(User).where(User.id == user_id).values(disabled=True))
    own = {"project_id": who.project.id, "user_id": user_id, "created_at": time.time()}
    statement = insert(ModelAssessor).values(**values, **own).returning(ModelAssessor.id)
    row = model_row(connection, who.project.id, int(connection.execute(statement).scalar_one()))
    record(
        connection, who.person.id, who.project.id, "added a model",
        model=row.model, endpoint=row.endpoint, rubric=row.rubric_name, hash=row.rubric_hash,
    )  # fmt: skip
    return row


def change_budget(
    connection: Connection, who: Member, model_id: int, budget: ModelBudget
) -> ModelRow:
    """Give a model another budget, also for a run under way."""
    row = model_row(connection, who.project.id, model_id)
    values = budget.model_dump()
    connection.execute(update(ModelAssessor).where(ModelAssessor.id == row.id).values(**values))
    record(
        connection, who.person.id, who.project.id, "changed a model's budget",
        model=row.model, **values,
    )  # fmt: skip
    return model_row(connection, who.project.id, model_id)


def model_row(connection: Connection, project_id: int, model_id: int) -> ModelRow:
    """A model assessor of a project."""
    statement = select(ModelAssessor.__table__).where(
        ModelAssessor.id == model_id, ModelAssessor.project_id == project_id
    )
    row = fetch_one(connection, statement, ModelRow)
    if row is None:
        raise RefusedError(404, "The model does not exist.")
    return row


def models_of(connection: Connection, project_id: int) -> list[ModelRow]:
    """The model assessors of a project, oldest first."""
    statement = select(ModelAssessor.__table__).where(ModelAssessor.project_id == project_id)
    return fetch_all(connection, statement.order_by(ModelAssessor.id), ModelRow)


def spending_of(connection: Connection, row: ModelRow) -> ModelSpending:
    """What a model took so far."""
    answers, usable = connection.execute(
        select(
            func.count(), func.coalesce(func.sum(cast(ModelAnswerRecord.usable, Integer)), 0)
        ).where(ModelAnswerRecord.assessor_id == row.id)
    ).one()
    now = model_row(connection, row.project_id, row.id)
    return ModelSpending(
        answers,
        answers - int(usable),
        now.requests,
        now.prompt_tokens,
        now.answer_tokens,
        now.budget.cost(now.prompt_tokens, now.answer_tokens),
    )


class StoredSpending(Spending):
    """What a model spent, in the database before a request is sent: all runs share one budget.

    Args:
        work: The job in which the model judges.
        row: The model's row.
    """

    def __init__(self, work: JobContext, row: ModelRow) -> None:
        super().__init__(row.budget)
        self._work = work
        self._row = row

    def take_request(self, prompt_tokens: int) -> None:
        """Count a request that is about to be sent; BudgetError if the budget is spent."""

        def take(connection: Connection) -> None:
            self._work.check(connection)
            # Another run's request waits here, and sees this one.
            rows = select(ModelAssessor.__table__).where(ModelAssessor.id == self._row.id)
            now = fetch_one(connection, rows.with_for_update(), ModelRow)
            if now is None:
                raise JobLostError
            now.budget.check(now.requests, now.prompt_tokens, now.answer_tokens)
            self._add(connection, 1, prompt_tokens, 0)

        in_transaction(self._work.engine, take)

    def charge(self, prompt_tokens: int, answer_tokens: int, *, requests: int = 0) -> None:
        """Count tokens that were not counted before."""
        in_transaction(
            self._work.engine, lambda c: self._add(c, requests, prompt_tokens, answer_tokens)
        )

    def _add(
        self, connection: Connection, requests: int, prompt_tokens: int, answer_tokens: int
    ) -> None:
        connection.execute(
            update(ModelAssessor)
            .where(ModelAssessor.id == self._row.id)
            .values(
                requests=ModelAssessor.requests + requests,
                prompt_tokens=ModelAssessor.prompt_tokens + prompt_tokens,
                answer_tokens=ModelAssessor.answer_tokens + answer_tokens,
            )
        )


def start_run(connection: Connection, who: Member, settings: Settings, model_id: int) -> int:
    """Queue a run of a model; returns the job's number. There is one at a time."""
    row = model_row(connection, who.project.id, model_id)
    check_not_archived(who.project)
    if row.endpoint:
        endpoint_key(row.endpoint, settings.models)
        _check_grades(parse_rubric(row.rubric), who.project)  # it may have another scale now
    else:
        file_labels(row.rubric, who.project)
    # Two requests at the same time: the second waits here, and sees the first one's job.
    connection.execute(select(ModelAssessor.id).where(ModelAssessor.id == row.id).with_for_update())
    last = last_run(connection, row)
    if last is not None and last.state in UNDER_WAY:
        raise RefusedError(409, "The model is judging already.")
    number = enqueue(connection, who.project.id, who.person.id, RUN, {"model": row.id})
    record(connection, who.person.id, who.project.id, "started a model", model=row.model)
    return number


def last_run(connection: Connection, row: ModelRow) -> JobRow | None:
    """The last job in which a model judged, or None."""
    statement = (
        select(Job.__table__)
        .where(
            Job.project_id == row.project_id,
            Job.kind == RUN,
            Job.parameters["model"].as_integer() == row.id,
        )
        .order_by(Job.id.desc())
        .limit(1)
    )
    return fetch_one(connection, statement, JobRow)


def _check_rubric(text: str, task: str) -> Rubric:
    try:
        rubric = parse_rubric(text)
    except DataError as error:
        raise RefusedError(422, "The rubric: %(problem)s", problem=str(error)) from error
    if rubric.task != task:
        raise RefusedError(
            422, "The rubric is for “%(task)s”; this project needs “%(needed)s”.",
            task=rubric.task, needed=task,
        )  # fmt: skip
    return rubric


def _check_grades(rubric: Rubric, project: ProjectRow) -> None:
    """Refuse a rubric with grades that the project's scale does not have."""
    if rubric.task != "grade":
        return
    highest, most = max(map(int, rubric.labels)), len(grade_names(project.scale)) - 1
    if highest > most:
        raise RefusedError(
            422,
            "The rubric has grades up to %(highest)s, but the project's grades are 0 to %(most)s. "
            "Give a rubric with the project's grades.",
            highest=highest,
            most=most,
        )
