"""Quality: training before people judge, and adjudication where they disagree."""

from __future__ import annotations

from typing import Annotated

from fastapi import File, Request, UploadFile
from fastapi import Form as FormField
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts.identity import Member
from podium.studio.accounts.members import members_of
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.judging import adjudication, gold, training
from podium.studio.judging.answer_choices import choice_of
from podium.studio.judging.judged import load_judged_query
from podium.studio.judging.modes import NO_ITEM, JudgingTask, QueryLogEntry
from podium.studio.judging.scales import LONGEST_GRADE, grade_names
from podium.studio.messages import Message
from podium.studio.reporting.log_rows import named_documents, relation
from podium.studio.reporting.query_results import query_row
from podium.studio.store.database import storable
from podium.studio.store.enums import Kind, Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.transfer.readers import limited
from podium.studio.web.access import Number, RequiresManager, RequiresMember
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render_project
from podium.studio.web.routes.dashboard import present
from podium.studio.web.routes.judging import Side, decision_choices, judging_surface, side_of

routes = Routes("quality", api="/projects/{project}", pages="/projects/{project}")

RowId = Annotated[int, Field(ge=1, lt=2**62)]
_QUALITY = "/projects/{project}/quality"
_GOLD = "/projects/{project}/gold"
_JUDGMENT = "/queries/{query}/log/{position}"
_GOLD_SHOWN = 200
_AGREED = Message("The managers of this project judge so.")
_MOST_BYTES = 16 << 20
"""The size of a file of examples once it is decompressed."""


class AdjudicationOut(BaseModel):
    """Who decides, and how much waits for them."""

    adjudicator: int | None
    disputes: int
    """Disagreements without a decision, as of the last report."""


class AdjudicatorIn(BaseModel):
    """Who is to decide; null for nobody."""

    model_config = ConfigDict(extra="forbid")

    user: RowId | None


class VoteOut(BaseModel):
    """An earlier answer; its author is not named."""

    answer: str
    """How left compares with right, or the grade."""
    choice: str
    """The same as one of the choices."""
    reason: str | None


class DisputeOut(BaseModel):
    """What people disagree on."""

    query_id: int
    query: str
    description: str
    left: int
    right: int
    """The positions of the documents, to be sent back; the second is -1 if there is one alone."""
    sides: list[Side]
    votes: list[VoteOut]
    choices: list[str]


class NextDisputeOut(BaseModel):
    """A disagreement, if one waits."""

    dispute: DisputeOut | None
    left: int
    """How many wait, as of the last report."""
    checking: bool
    """Whether there are answers since the last report: more may be found."""


class DecisionIn(BaseModel):
    """A decision."""

    model_config = ConfigDict(extra="forbid")

    query_id: RowId
    left: Annotated[int, Field(ge=0, lt=2**31)]
    right: Annotated[int, Field(ge=NO_ITEM, lt=2**31)] = NO_ITEM
    choice: str = Field(max_length=LONGEST_GRADE)
    reason: Annotated[str, AfterValidator(storable)] | None = Field(default=None, max_length=2000)


class TraineeOut(BaseModel):
    """An assessor, and what came of their training."""

    user: int = Field(validation_alias="id")
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


class ExampleIn(BaseModel):
    """Why the answer to an example is right; if it is empty, that the managers judge so."""

    model_config = ConfigDict(extra="forbid")

    explanation: Annotated[str, AfterValidator(storable)] = Field(default="", max_length=5000)


class GoldOut(BaseModel):
    """How many gold pairs a project has, and the share of tasks that are checks by them."""

    pairs: int
    share: float


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
    answer: str
    """How left compares with right, or the grade, as it is right."""
    choice: str
    """The same as one of the choices."""
    explanation: str


@routes.page("/quality")
def quality_page(request: Request, who: RequiresManager) -> Response:
    """How people are trained, who decides where they disagree, and what came of it."""
    _, report = present(request, who)
    values = {
        "training": get_training(request, who),
        "rankings": who.project.mode == Mode.RANKINGS,
        "adjudication": get_adjudication(request, who),
        "members": read(request, lambda c: members_of(c, who.project.id)),
        "agreement": (report.content if report is not None else {}).get("agreement"),
    }
    return render_project(request, who, "quality.html", values)


@routes.page("/gold")
def gold_page(request: Request, who: RequiresManager) -> Response:
    """The pairs whose answer is known, which are asked as checks."""

    def work(connection: Connection) -> JsonObject:
        rows, count = gold.gold_of(connection, who.project.id, _GOLD_SHOWN)
        keys = {(row.query_id, position) for row in rows for position in (row.left, row.right)}
        names = named_documents(connection, keys) if keys else {}
        return {"rows": rows, "count": count, "names": names}

    return render_project(request, who, "gold.html", read(request, work))


@routes.action("POST", _JUDGMENT + "/gold", form=_JUDGMENT + "/gold", to=_GOLD)
def add_gold_pair(request: Request, who: RequiresManager, query: Number, position: int) -> GoldOut:
    """Make a judged pair gold, by the `position` of its judgment in the query's log."""
    write(request, lambda c: gold.add_judged_pair(c, who, query, position))
    return _gold(request, who)


@routes.action("DELETE", "/gold/{pair}", form="/gold/{pair}/remove", to=_GOLD)
def remove_gold_pair(request: Request, who: RequiresManager, pair: Number) -> GoldOut:
    """Ask a gold pair no more; judgments of it are kept."""
    write(request, lambda c: gold.remove_gold(c, who, pair))
    return _gold(request, who)


@routes.action("POST", _JUDGMENT + "/example", form=_JUDGMENT + "/example", to=_QUALITY)
def add_training_example(
    request: Request, who: RequiresManager, query: Number, position: int, body: ExampleIn
) -> TrainingOut:
    """Make a training example of a judgment, by its `position` in the query's log."""
    explanation = body.explanation.strip() or language_of(request).translate(_AGREED)

    def work(connection: Connection) -> TrainingOut:
        training.add_judged_example(connection, who, query, position, explanation)
        return _training(connection, who)

    return write(request, work)


@routes.page("/adjudicate")
def adjudicate_page(request: Request, who: RequiresMember) -> Response:
    """The judging page with disagreements, which its script asks for."""
    read(request, lambda c: _check_adjudicator(c, who))
    return judging_surface(request, who, "adjudication")


@routes.page("/training")
def training_page(request: Request, who: RequiresMember) -> Response:
    """The judging page with examples, which its script asks for."""
    return judging_surface(request, who, "training")


@routes.action("GET", "/adjudication")
def get_adjudication(request: Request, who: RequiresManager) -> AdjudicationOut:
    """Who decides where people disagree, and how much waits for them."""
    return read(request, lambda c: _adjudication(c, who.project.id))


@routes.action(
    "PUT",
    "/adjudication/adjudicator",
    form="/quality/adjudicator",
    page=quality_page,
    to=_QUALITY,
)
def set_adjudicator(request: Request, who: RequiresManager, body: AdjudicatorIn) -> AdjudicationOut:
    """Choose who decides where people disagree."""

    def work(connection: Connection) -> AdjudicationOut:
        adjudication.set_adjudicator(connection, who, body.user)
        return _adjudication(connection, who.project.id)

    return write(request, work)


@routes.action("GET", "/adjudication/next")
def next_dispute(request: Request, who: RequiresMember) -> NextDisputeOut:
    """The next disagreement, with the earlier answers; for the adjudicator alone."""
    progress, report = present(request, who)
    checking = report is None or report.entries != progress.entries

    def work(connection: Connection) -> NextDisputeOut:
        _check_adjudicator(connection, who)
        dispute = adjudication.next_dispute(connection, who.project)
        left = adjudication.count_disputes(connection, who.project.id)
        shown = None if dispute is None else _dispute(who, dispute)
        return NextDisputeOut(dispute=shown, left=left, checking=checking)

    return read(request, work)


@routes.action("POST", "/adjudication/decisions", status_code=201)
def decide(request: Request, who: RequiresMember, body: DecisionIn) -> AdjudicationOut:
    """Decide a disagreement; the decision replaces the answers."""

    def work(connection: Connection) -> AdjudicationOut:
        adjudication.decide(
            connection, who, body.query_id, (body.left, body.right), body.choice, body.reason
        )
        return _adjudication(connection, who.project.id)

    return write(request, work)


@routes.action("GET", "/training")
def get_training(request: Request, who: RequiresManager) -> TrainingOut:
    """The project's training, and how its assessors did."""
    return read(request, lambda c: _training(c, who))


@routes.action("POST", "/training", uploads=True, status_code=201)
def set_training(
    request: Request,
    who: RequiresManager,
    examples: Annotated[UploadFile, File(description="CSV or JSONL, one example per line.")],
    pass_mark: Annotated[float, FormField(ge=0, le=1, description="Share of right answers.")] = (
        training.PASS_MARK
    ),
) -> TrainingOut:
    """Replace the project's examples. Who has qualified stays qualified; others begin anew."""
    sent = limited(examples.file, examples.filename or "examples", _MOST_BYTES)
    parsed = training.read_examples(sent, Mode(who.project.mode), grade_names(who.project.scale))

    def work(connection: Connection) -> TrainingOut:
        training.set_training(connection, who, parsed, pass_mark)
        return _training(connection, who)

    return write(request, work)


@routes.action("POST", None, form="/quality/training", page=quality_page, to=_QUALITY, uploads=True)
def set_training_in_percent(
    request: Request,
    who: RequiresManager,
    examples: Annotated[UploadFile | None, File()] = None,
    pass_mark: Annotated[str, FormField()] = "",
) -> None:
    """Replace the examples: people give the pass mark in percent."""
    if examples is None or not examples.filename:
        raise RefusedError(422, "Choose a file of examples.")
    is_number = pass_mark.isascii() and pass_mark.isdigit() and len(pass_mark) < 4
    if not is_number or int(pass_mark) > 100:
        raise RefusedError(422, "Give a pass mark of 0 to 100 percent.")
    set_training(request, who, examples, int(pass_mark) / 100)


@routes.action("DELETE", "/training", form="/quality/training/remove", to=_QUALITY)
def end_training(request: Request, who: RequiresManager) -> TrainingOut:
    """Let everyone judge without training."""

    def work(connection: Connection) -> TrainingOut:
        training.end_training(connection, who)
        return _training(connection, who)

    return write(request, work)


@routes.action(
    "POST", "/training/people/{user}/allow", form="/quality/people/{user}/allow", to=_QUALITY
)
def allow_to_judge(request: Request, who: RequiresManager, user: Number) -> TrainingOut:
    """Let someone judge, whatever came of their training."""

    def work(connection: Connection) -> TrainingOut:
        training.allow(connection, who, user)
        return _training(connection, who)

    return write(request, work)


@routes.action(
    "POST", "/training/people/{user}/again", form="/quality/people/{user}/again", to=_QUALITY
)
def train_again(request: Request, who: RequiresManager, user: Number) -> TrainingOut:
    """Let someone take the training again."""

    def work(connection: Connection) -> TrainingOut:
        training.begin_again(connection, who, user)
        return _training(connection, who)

    return write(request, work)


@routes.action("GET", "/training/mine")
def get_own_training(request: Request, who: RequiresMember) -> OwnTrainingOut:
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

    return read(request, work)


@routes.action("POST", "/training/examples/{example}/answer")
def answer_example(
    request: Request, who: RequiresMember, example: Number, body: ExampleAnswerIn
) -> ExampleAnswerOut:
    """Answer an example; the first answer counts, and the right one is returned at once."""

    def work(connection: Connection) -> ExampleAnswerOut:
        correct = training.answer_example(
            connection, who.project, who.person.id, example, body.choice
        )
        row = training.example_row(connection, who.project.id, example)
        return _answer(who, row, correct)

    return write(request, work)


def _gold(request: Request, who: Member) -> GoldOut:
    _, count = read(request, lambda c: gold.gold_of(c, who.project.id, 1))
    return GoldOut(pairs=count, share=who.project.gold_rate)


def _check_adjudicator(connection: Connection, who: Member) -> None:
    if adjudication.adjudicator_of(connection, who.project.id) != who.person.id:
        raise RefusedError(403, "Only the project's adjudicator may do this.")


def _adjudication(connection: Connection, project_id: int) -> AdjudicationOut:
    return AdjudicationOut(
        adjudicator=adjudication.adjudicator_of(connection, project_id),
        disputes=adjudication.count_disputes(connection, project_id),
    )


def _dispute(who: Member, dispute: adjudication.Dispute) -> DisputeOut:
    query, task = dispute.judged.query, dispute.task
    return DisputeOut(
        query_id=query.id,
        query=query.text,
        description=query.description,
        left=task.left,
        right=task.right,
        sides=[side_of(who.project, side) for side in dispute.judged.state.documents_shown(task)],
        votes=[_vote(who.project, vote, task.left) for vote in dispute.votes],
        choices=decision_choices(who.project),
    )


def _vote(project: ProjectRow, vote: QueryLogEntry, left: int) -> VoteOut:
    """An earlier answer, with the sides as the first of them saw the pair."""
    grades = grade_names(project.scale)
    value = (vote.value or 0) if vote.left == left else -(vote.value or 0)
    return VoteOut(
        answer=relation(vote.kind, value, grades),
        choice=choice_of(vote.kind, value, grades),
        reason=vote.reason,
    )


def _training(connection: Connection, who: Member) -> TrainingOut:
    state = training.training_state(connection, who.project.id, who.person.id)
    people = training.trainees(connection, who.project.id)
    return TrainingOut(
        examples=state.total,
        pass_mark=state.pass_mark,
        people=[TraineeOut.model_validate(each, from_attributes=True) for each in people],
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


def _answer(who: Member, row: training.ExampleRow, correct: bool) -> ExampleAnswerOut:
    kind = Kind.GRADE if who.project.mode == Mode.GRADES else Kind.VERDICT
    grades = grade_names(who.project.scale)
    return ExampleAnswerOut(
        correct=correct,
        answer=relation(kind, row.value, grades),
        choice=choice_of(kind, row.value, grades),
        explanation=row.explanation,
    )
