"""API routes for webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from podium.studio.projects import webhooks
from podium.studio.store.database import in_transaction, reading
from podium.studio.web.access import AManager
from podium.studio.web.routes.judging import Number

router = APIRouter(prefix="/api/v1/projects/{project}/webhooks", tags=["webhooks"])


class WebhookIn(BaseModel):
    """A webhook to add."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(min_length=1, max_length=2000)


class NewWebhookOut(BaseModel):
    """A new webhook. The secret that signs is told once."""

    id: int
    secret: str


class WebhookOut(BaseModel):
    """A webhook."""

    id: int
    url: str
    created_at: float


class DeliveryOut(BaseModel):
    """Something that a webhook was told, or is to be."""

    id: int
    webhook: int
    event: str
    state: str
    """``waiting``, ``sent`` or ``failed``."""
    attempts: int
    next_at: float
    error: str | None
    created_at: float


@router.get("", operation_id="list_webhooks")
def list_webhooks(request: Request, who: AManager) -> list[WebhookOut]:
    """The URLs that are told when queries and the project are done."""
    rows = reading(request.app.state.engine, lambda c: webhooks.webhooks_of(c, who.project.id))
    return [WebhookOut(**row._asdict()) for row in rows]


@router.post("", status_code=201, operation_id="add_webhook")
def add_webhook(request: Request, who: AManager, body: WebhookIn) -> NewWebhookOut:
    """Add a URL that is told; it must begin as the server's settings list."""
    settings = request.app.state.settings
    number, secret = in_transaction(
        request.app.state.engine, lambda c: webhooks.add_webhook(c, who, settings, body.url)
    )
    return NewWebhookOut(id=number, secret=secret)


@router.delete("/{webhook}", status_code=204, operation_id="remove_webhook")
def remove_webhook(request: Request, who: AManager, webhook: Number) -> None:
    """Remove a webhook, with what waits for it."""
    in_transaction(request.app.state.engine, lambda c: webhooks.remove_webhook(c, who, webhook))


@router.get("/deliveries", operation_id="list_deliveries")
def list_deliveries(request: Request, who: AManager) -> list[DeliveryOut]:
    """What webhooks were told lately, newest first."""
    rows = reading(request.app.state.engine, lambda c: webhooks.deliveries_of(c, who.project.id))
    return [
        DeliveryOut(
            id=row.id,
            webhook=row.webhook_id,
            event=row.event,
            state=row.state,
            attempts=row.attempts,
            next_at=row.next_at,
            error=row.error,
            created_at=row.created_at,
        )
        for row in rows
    ]
