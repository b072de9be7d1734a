"""API routes for training: set it up, see how people do, answer examples."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, File, Form, Request, UploadFile
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts.identity import Member
from podium.studio.judging import training
from podium.studio.judging.judged import load_judged_query
from podium.studio.judging.modes import NO_ITEM, JudgingTask
from podium.studio.judging.scales import LONGEST_GRADE, grade_names
from podium.studio.projects.display import FieldRole, shows
from podium.studio.reporting.log_rows import named_documents, relation
from podium.studio.reporting.query_results import query_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Kind, Mode
from podium.studio.web.access import AManager, AnyMember, UploadRoute
from podium.studio.web.routes.adjudication import decision_choices
from podium.studio.web.routes.judging import Number, Side, side_of

_PREFIX = "/api/v1/projects/{project}/training"
router = APIRouter(prefix=_PREFIX, tags=["training"])
uploads = APIRouter(prefix=_PREFIX, tags=["training"], route_class=UploadRoute)


class TraineeOut(BaseModel):
    """An assessor, and what came of their training."""

    user: int
    name: str
    state: str | None
    """``passed``, ``failed`` or ``allowed``; null before the end."""
    correct: int
    answered: int


class TrainingOut(BaseModel):
    """A project's training."""

    examples: int
    pass_mark: float
    """The share of right answers that qualifies."""
    people: list[TraineeOut]


class ExampleOut(BaseModel):
    """An example to answer."""

    id: int
    query_id: int
    query: str
    description: str
    sides: list[Side]
    choices: list[str]


class OwnTrainingOut(BaseModel):
    """How far one is oneself, and the next example."""

    total: int
    answered: int
    correct: int
    pass_mark: float
    state: str | None
    may_judge: bool
    example: ExampleOut | None


class ExampleAnswerIn(BaseModel):
    """An answer to an example."""

    model_config = ConfigDict(extra="forbid")

    choice: str = Field(max_length=LONGEST_GRADE)


class ExampleAnswerOut(BaseModel):
    """Whether an answer is right, what is, and why."""

    correct: bool
    documents: list[str]
    """The titles of the documents, left first; empty where the project hides titles."""
    answer: str
    """How left compares with right, or the grade."""
    explanation: str


@router.get("", operation_id="get_training")
def get_training(request: Request, who: AManager) -> TrainingOut:
    """The project's training, and how its assessors did."""
    return reading(request.app.state.engine, lambda c: _out(c, who))


@uploads.post("", status_code=201, operation_id="set_training")
def set_training(
    request: Request,
    who: AManager,
    examples: Annotated[UploadFile, File(description="CSV or JSONL, one example per line.")],
    pass_mark: Annotated[float, Form(ge=0, le=1, description="Share of right answers.")] = 0.8,
) -> TrainingOut:
    """Replace the project's examples. Who has qualified stays qualified; others begin anew."""
    read = training.read_examples(
        examples.file, Mode(who.project.mode), grade_names(who.project.scale)
    )

    def work(connection: Connection) -> TrainingOut:
        training.set_training(connection, who, read, pass_mark)
        return _out(connection, who)

    return in_transaction(request.app.state.engine, work)


@router.delete("", operation_id="end_training")
def end_training(request: Request, who: AManager) -> TrainingOut:
    """Let everyone judge without training."""

    def work(connection: Connection) -> TrainingOut:
        training.end_training(connection, who)
        return _out(connection, who)

    return in_transaction(request.app.state.engine, work)


@router.post("/people/{user}/allow", operation_id="allow_to_judge")
def allow(request: Request, who: AManager, user: Number) -> TrainingOut:
    """Let someone judge, whatever came of their training."""

    def work(connection: Connection) -> TrainingOut:
        training.allow(connection, who, user)
        return _out(connection, who)

    return in_transaction(request.app.state.engine, work)


@router.post("/people/{user}/again", operation_id="train_again")
def begin_again(request: Request, who: AManager, user: Number) -> TrainingOut:
    """Let someone take the training again."""

    def work(connection: Connection) -> TrainingOut:
        training.begin_again(connection, who, user)
        return _out(connection, who)

    return in_transaction(request.app.state.engine, work)


@router.get("/mine", operation_id="get_own_training")
def get_own(request: Request, who: AnyMember) -> OwnTrainingOut:
    """How far one is oneself, and the next example."""

    def work(connection: Connection) -> OwnTrainingOut:
        state = training.training_state(connection, who.project.id, who.person.id)
        row = training.next_example(connection, who.project.id, who.person.id)
        return OwnTrainingOut(
            total=state.total,
            answered=state.answered,
            correct=state.correct,
            pass_mark=state.pass_mark,
            state=state.state,
            may_judge=state.may_judge,
            example=None if row is None else _example(connection, who, row),
        )

    return reading(request.app.state.engine, work)


@router.post("/examples/{example}/answer", operation_id="answer_example")
def answer(
    request: Request, who: AnyMember, example: Number, body: ExampleAnswerIn
) -> ExampleAnswerOut:
    """Answer an example; the first answer counts, and one is told at once what is right."""

    def work(connection: Connection) -> ExampleAnswerOut:
        correct = training.answer_example(
            connection, who.project, who.person.id, example, body.choice
        )
        row = training.example_row(connection, who.project.id, example)
        return _answer(connection, who, row, correct)

    return in_transaction(request.app.state.engine, work)


def _out(connection: Connection, who: Member) -> TrainingOut:
    state = training.training_state(connection, who.project.id, who.person.id)
    people = training.trainees(connection, who.project.id)
    return TrainingOut(
        examples=state.total,
        pass_mark=state.pass_mark,
        people=[
            TraineeOut(
                user=each.id,
                name=each.name,
                state=each.state,
                correct=each.correct,
                answered=each.answered,
            )
            for each in people
        ],
    )


def _example(connection: Connection, who: Member, row: training.ExampleRow) -> ExampleOut:
    query = query_row(connection, who.project.id, row.query_id)
    state = load_judged_query(connection, who.project, query).state
    sides = state.documents_shown(JudgingTask(row.left, row.right))
    return ExampleOut(
        id=row.id,
        query_id=query.id,
        query=query.text,
        description=query.description,
        sides=[side_of(who.project, side) for side in sides],
        choices=decision_choices(who.project),
    )


def _answer(
    connection: Connection, who: Member, row: training.ExampleRow, correct: bool
) -> ExampleAnswerOut:
    kind = Kind.GRADE if who.project.mode == Mode.GRADES else Kind.VERDICT
    positions = [side for side in (row.left, row.right) if side != NO_ITEM]
    names = named_documents(connection, [(row.query_id, position) for position in positions])
    titles = [names[row.query_id, position].title for position in positions]
    if not shows(who.project.display, "title", FieldRole.TITLE):
        titles = [""] * len(positions)
    return ExampleAnswerOut(
        correct=correct,
        documents=titles,
        answer=relation(kind, row.value, grade_names(who.project.scale)),
        explanation=row.explanation,
    )
