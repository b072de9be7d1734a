"""What all tables share: their types, and names for their constraints."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import JSON, BigInteger, Double, Integer, MetaData, Uuid
from sqlalchemy.orm import DeclarativeBase

from podium.studio.json_types import JsonObject

_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only in an INTEGER


class Base(DeclarativeBase):
    """All tables, with names for their constraints, which migrations need."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {int: _ID, float: Double, UUID: Uuid, JsonObject: JSON}  # noqa: RUF012
