"""INSERT … ON CONFLICT of both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy.dialects import postgresql, sqlite

from podium.studio.store.table_base import Base

Insert: TypeAlias = Callable[[type[Base]], postgresql.Insert | sqlite.Insert]
"""A dialect's ``insert``."""

INSERTS: dict[str, Insert] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
"""``insert`` with ``on_conflict_do_update``, by the dialect's name."""
