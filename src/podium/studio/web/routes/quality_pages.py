"""Pages on quality: adjudication and training, for managers and for those who do them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, UploadFile
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.errors import PodiumError
from podium.studio.accounts.identity import Member
from podium.studio.accounts.members import members_of
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.projects.guidelines import guidelines_html
from podium.studio.reporting.reports import report_of
from podium.studio.store.database import reading
from podium.studio.store.enums import Mode
from podium.studio.web.access import AManager, AnyMember, UploadRoute
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes import adjudication, training
from podium.studio.web.routes.judging import DocumentOut, Number, document_out, document_row
from podium.studio.web.routes.judging_pages import Button, answer_buttons
from podium.studio.web.routes.project_pages import render_project

_PLACE: JsonObject = {
    "prefix": "/projects/{project}",
    "dependencies": [Depends(read_csrf)],
    "include_in_schema": False,
}
router = APIRouter(**_PLACE)
uploads = APIRouter(**_PLACE, route_class=UploadRoute)


@router.get("/quality")
def quality_page(request: Request, who: AManager) -> Response:
    """Who decides where people disagree, and what came of it."""
    return _quality_page(request, who)


@router.post("/quality/adjudicator")
def set_adjudicator(request: Request, who: AManager, form: FormValues) -> Response:
    """Choose who decides."""
    try:
        body = adjudication.AdjudicatorIn.model_validate({"user": form.get("user") or None})
        adjudication.set_adjudicator(request, who, body)
    except (ValidationError, RefusedError) as error:
        return _quality_page(request, who, _problem(error))
    return RedirectResponse(f"/projects/{who.project.id}/quality", 303)


@router.get("/adjudicate")
def adjudicate_page(request: Request, who: AnyMember) -> Response:
    """The next disagreement, with the earlier answers."""
    return _adjudicate_page(request, who)


@router.post("/adjudicate")
def decide(request: Request, who: AnyMember, form: FormValues) -> Response:
    """Decide a disagreement."""
    values = {**form, "reason": form.get("reason", "").strip() or None}
    try:
        adjudication.decide(request, who, adjudication.DecisionIn.model_validate(values))
    except (ValidationError, RefusedError) as error:
        return _adjudicate_page(request, who, _problem(error))
    return RedirectResponse(f"/projects/{who.project.id}/adjudicate", 303)


@uploads.post("/quality/training")
def set_training(
    request: Request, who: AManager, form: FormValues, examples: UploadFile | None = None
) -> Response:
    """Replace the examples."""
    if examples is None or not examples.filename:
        return _quality_page(request, who, Message("Choose a file of examples."))
    percent = form.get("pass_mark", "")
    if not (percent.isascii() and percent.isdigit() and len(percent) < 4 and int(percent) <= 100):
        return _quality_page(request, who, Message("Give a pass mark of 0 to 100 percent."))
    try:
        training.set_training(request, who, examples, int(percent) / 100)
    except PodiumError as error:
        return _quality_page(request, who, error.problem)
    return RedirectResponse(f"/projects/{who.project.id}/quality", 303)


@router.post("/quality/training/remove")
def end_training(request: Request, who: AManager) -> Response:
    """Let everyone judge without training."""
    training.end_training(request, who)
    return RedirectResponse(f"/projects/{who.project.id}/quality", 303)


@router.post("/quality/people/{user}/allow")
def allow(request: Request, who: AManager, user: Number) -> Response:
    """Let someone judge."""
    training.allow(request, who, user)
    return RedirectResponse(f"/projects/{who.project.id}/quality", 303)


@router.post("/quality/people/{user}/again")
def train_again(request: Request, who: AManager, user: Number) -> Response:
    """Let someone take the training again."""
    training.begin_again(request, who, user)
    return RedirectResponse(f"/projects/{who.project.id}/quality", 303)


@router.get("/training")
def training_page(request: Request, who: AnyMember) -> Response:
    """The next example, or what came of the training."""
    return _training_page(request, who, None)


@router.post("/training/{example}")
def answer_example(request: Request, who: AnyMember, example: Number, form: FormValues) -> Response:
    """Answer an example; the page that answers explains it."""
    try:
        body = training.ExampleAnswerIn(choice=form.get("choice", ""))
    except ValidationError as error:
        raise RefusedError(422, first_problem(error)) from error
    return _training_page(request, who, training.answer(request, who, example, body))


def _problem(error: ValidationError | RefusedError) -> str:
    return first_problem(error) if isinstance(error, ValidationError) else error.problem


def _quality_page(request: Request, who: Member, problem: str = "") -> Response:
    adjudication.refresh(request, who)
    engine = request.app.state.engine
    report = reading(engine, lambda c: report_of(c, who.project.id))
    values = {
        "problem": problem,
        "training": training.get_training(request, who),
        "rankings": who.project.mode == Mode.RANKINGS,
        "adjudication": adjudication.get_adjudication(request, who),
        "members": reading(engine, lambda c: members_of(c, who.project.id)),
        "agreement": (report.content if report is not None else {}).get("agreement"),
    }
    return render_project(request, who, "quality.html", values, status=422 if problem else 200)


def _adjudicate_page(request: Request, who: Member, problem: str = "") -> Response:
    upcoming = adjudication.next_dispute(request, who)
    values = {
        "problem": problem,
        "dispute": upcoming.dispute,
        "texts": _texts(request, who, upcoming.dispute),
        "waiting": upcoming.left,
        "checking": upcoming.checking,
        "answers": _answers(who),
    }
    return render_project(request, who, "adjudicate.html", values, status=409 if problem else 200)


def _training_page(
    request: Request, who: Member, feedback: training.ExampleAnswerOut | None
) -> Response:
    own = training.get_own(request, who)
    values = {
        "own": own,
        "feedback": feedback,
        "example": own.example,
        "texts": _texts(request, who, own.example),
        "answers": _answers(who),
        "guidelines": guidelines_html(who.project.guidelines),
    }
    return render_project(request, who, "training.html", values)


def _answers(who: Member) -> list[Button]:
    choices = adjudication.decision_choices(who.project)
    return [each for each in answer_buttons(who.project) if each.name in choices]


def _texts(
    request: Request,
    who: Member,
    shown: adjudication.DisputeOut | training.ExampleOut | None,
) -> dict[int, DocumentOut]:
    """The documents that a page shows, as the project shows them."""
    if shown is None:
        return {}
    return {
        document.reference: document_out(
            request,
            who,
            shown.query_id,
            document_row(request, who, shown.query_id, document.reference),
        )
        for side in shown.sides
        for document in side.documents
    }
