"""The page of a project's webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError, first_problem
from podium.studio.web.access import AManager
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes import webhooks
from podium.studio.web.routes.judging import Number
from podium.studio.web.routes.project_pages import render_project

router = APIRouter(
    prefix="/projects/{project}/settings/webhooks",
    dependencies=[Depends(read_csrf)],
    include_in_schema=False,
)


@router.get("")
def webhooks_page(request: Request, who: AManager) -> Response:
    """All webhooks, and what they were told."""
    return _page(request, who)


@router.post("")
def add(request: Request, who: AManager, form: FormValues) -> Response:
    """Add a webhook; its secret is shown on the page that answers, and never again."""
    try:
        body = webhooks.WebhookIn.model_validate({"url": form.get("url", "").strip()})
        added = webhooks.add_webhook(request, who, body)
    except (ValidationError, RefusedError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error.problem
        return _page(request, who, problem=problem)
    return _page(request, who, secret=added.secret)


@router.post("/{webhook}/remove")
def remove(request: Request, who: AManager, webhook: Number) -> Response:
    """Remove a webhook."""
    webhooks.remove_webhook(request, who, webhook)
    return RedirectResponse(f"/projects/{who.project.id}/settings/webhooks", 303)


def _page(request: Request, who: Member, *, problem: str = "", secret: str = "") -> Response:
    values = {
        "problem": problem,
        "secret": secret,
        "webhooks": webhooks.list_webhooks(request, who),
        "deliveries": webhooks.list_deliveries(request, who),
        "allowed": bool(request.app.state.settings.webhooks),
    }
    return render_project(request, who, "webhooks.html", values, status=422 if problem else 200)
