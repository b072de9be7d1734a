"""Webhooks of a project: adding and removing them, and what became of their deliveries."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.settings import Settings, listed_entry
from podium.studio.store.rows import fetch_all
from podium.studio.store.tables import Delivery, Webhook
from podium.studio.store.tokens import new_secret

MOST_WEBHOOKS = 10
"""How many webhooks a project has at most."""
_SHOWN = 50


@dataclass(frozen=True)
class WebhookRow:
    """A webhook, without its secret."""

    id: int
    url: str
    created_at: float


@dataclass(frozen=True)
class DeliveryRow:
    """Something that was sent to a webhook, or waits to be."""

    id: int
    webhook: int
    event: str
    state: str
    """``waiting``, ``sent`` or ``failed``."""
    attempts: int
    next_at: float
    error: str | None
    created_at: float


def add_webhook(
    connection: Connection, who: Member, settings: Settings, url: str
) -> tuple[int, str]:
    """Add a webhook; returns its number, and the secret that signs, which is shown once."""
    check_not_archived(who.project)
    if listed_entry(url, settings.webhooks) is None:
        raise RefusedError(
            422,
            "This server may not call that URL. Its administrator lists the allowed ones in "
            "PODIUM_STUDIO_WEBHOOKS.",
        )
    count = connection.scalar(select(func.count()).where(Webhook.project_id == who.project.id))
    if (count or 0) >= MOST_WEBHOOKS:
        raise RefusedError(429, "A project has at most %(most)s webhooks.", most=MOST_WEBHOOKS)
    secret = new_secret()
    number = connection.execute(
        insert(Webhook)
        .values(project_id=who.project.id, url=url, secret=secret, created_at=time.time())
        .returning(Webhook.id)
    ).scalar_one()
    record(connection, who.person.id, who.project.id, "added a webhook", url=url)
    return int(number), secret


def remove_webhook(connection: Connection, who: Member, webhook_id: int) -> None:
    """Remove a webhook, with what waits for it."""
    gone = connection.execute(
        delete(Webhook).where(Webhook.id == webhook_id, Webhook.project_id == who.project.id)
    )
    if gone.rowcount == 0:
        raise RefusedError(404, "The webhook does not exist.")
    record(connection, who.person.id, who.project.id, "removed a webhook")


def webhooks_of(connection: Connection, project_id: int) -> list[WebhookRow]:
    """The webhooks of a project."""
    statement = select(Webhook.id, Webhook.url, Webhook.created_at).where(
        Webhook.project_id == project_id
    )
    return fetch_all(connection, statement.order_by(Webhook.id), WebhookRow)


def deliveries_of(connection: Connection, project_id: int) -> list[DeliveryRow]:
    """The latest deliveries to a project's webhooks, newest first."""
    rows = connection.execute(
        select(Delivery.__table__)
        .join(Webhook, Webhook.id == Delivery.webhook_id)
        .where(Webhook.project_id == project_id)
        .order_by(Delivery.id.desc())
        .limit(_SHOWN)
    )
    return [
        DeliveryRow(
            row.id, row.webhook_id, row.content["event"], row.state, row.attempts, row.next_at,
            row.error, row.created_at,
        )
        for row in rows
    ]  # fmt: skip
