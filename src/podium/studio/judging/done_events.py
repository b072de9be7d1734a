"""What webhooks are told: that a query is done, and that all of a project are."""

from __future__ import annotations

import time

from sqlalchemy import Connection, select

from podium.studio.jobs.outbox import enqueue_delivery
from podium.studio.json_types import JsonObject
from podium.studio.store.rows import ProjectQueryRow
from podium.studio.store.tables import ProjectQuery, Webhook


def announce_done(connection: Connection, query: ProjectQueryRow, *, withdrawn: bool) -> None:
    """Queue what a project's webhooks are told, in the transaction in which a query gets done.

    Args:
        connection: The transaction; the query's row says already that it is done.
        query: The query's row, as it was before.
        withdrawn: Whether it is done because it was withdrawn, which only the project is told of.
    """
    # Two that finish the last two queries at once: the second waits here, and sees the first's.
    webhooks = connection.scalars(
        select(Webhook.id)
        .where(Webhook.project_id == query.project_id)
        .order_by(Webhook.id)
        .with_for_update(key_share=True)
    ).all()
    if not webhooks:
        return
    base: JsonObject = {"project": query.project_id, "at": time.time()}
    events = []
    if not withdrawn:
        events.append(base | {"event": "query.done", "query": query.id, "query_id": query.name})
    left = select(ProjectQuery.id).where(
        ProjectQuery.project_id == query.project_id, ProjectQuery.done.is_(False)
    )
    if connection.scalar(left.limit(1)) is None:
        events.append(base | {"event": "project.done"})
    for webhook_id in webhooks:
        for event in events:
            enqueue_delivery(connection, event, webhook_id)
