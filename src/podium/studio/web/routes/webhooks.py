"""Webhooks: the URLs that are called when queries and the project are done."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from podium.studio.projects import webhooks
from podium.studio.web.access import Number, RequiresManager
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.pages import render_project

routes = Routes(
    "webhooks",
    api="/projects/{project}/webhooks",
    pages="/projects/{project}/settings/webhooks",
)


class WebhookIn(BaseModel):
    """A webhook to add."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, AfterValidator(str.strip)] = Field(min_length=1, max_length=2000)


class NewWebhookOut(BaseModel):
    """A new webhook. The secret that signs is shown once."""

    id: int
    secret: str


@routes.page("")
def webhooks_page(request: Request, who: RequiresManager) -> Response:
    """All webhooks, and what was sent to them."""
    values = {
        "webhooks": list_webhooks(request, who),
        "deliveries": list_deliveries(request, who),
        "allowed": bool(request.app.state.settings.webhooks),
    }
    return render_project(request, who, "webhooks.html", values)


@routes.action("GET", "")
def list_webhooks(request: Request, who: RequiresManager) -> list[webhooks.WebhookRow]:
    """The URLs that are called when queries and the project are done."""
    return read(request, lambda c: webhooks.webhooks_of(c, who.project.id))


@routes.action("POST", "", form="", page=webhooks_page, status_code=201)
def add_webhook(request: Request, who: RequiresManager, body: WebhookIn) -> NewWebhookOut:
    """Add a URL; it must begin as the server's settings list."""
    settings = request.app.state.settings
    number, secret = write(request, lambda c: webhooks.add_webhook(c, who, settings, body.url))
    return NewWebhookOut(id=number, secret=secret)


@routes.action(
    "DELETE",
    "/{webhook}",
    form="/{webhook}/remove",
    to="/projects/{project}/settings/webhooks",
    status_code=204,
)
def remove_webhook(request: Request, who: RequiresManager, webhook: Number) -> None:
    """Remove a webhook, with what waits for it."""
    write(request, lambda c: webhooks.remove_webhook(c, who, webhook))


@routes.action("GET", "/deliveries")
def list_deliveries(request: Request, who: RequiresManager) -> list[webhooks.DeliveryRow]:
    """What was sent to webhooks lately, newest first."""
    return read(request, lambda c: webhooks.deliveries_of(c, who.project.id))
