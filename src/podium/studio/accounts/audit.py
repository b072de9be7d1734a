"""The audit log."""

from __future__ import annotations

import time

from sqlalchemy import Connection, insert

from podium.studio.store.tables import AuditRecord


def record(
    connection: Connection,
    user_id: int | None,
    project_id: int | None,
    action: str,
    **details: object,
) -> None:
    """Record an action in the audit log, in the transaction that performs it."""
    connection.execute(
        insert(AuditRecord).values(
            at=time.time(),
            user_id=user_id,
            project_id=project_id,
            action=action,
            details=details,
        )
    )
