"""Records of UBI, made for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BEGIN = 1_700_000_000_000


def query(search: str, text: str, hits: list[str] | None = None, **more: Any) -> dict[str, Any]:
    record = {"query_id": search, "user_query": text, "timestamp": BEGIN, "client_id": "c", **more}
    return record if hits is None else record | {"query_response_hit_ids": hits}


def event(
    search: str,
    action: str,
    document: str,
    ordinal: int | None = None,
    after: float = 1,
    **more: Any,
) -> dict[str, Any]:
    attributes: dict[str, Any] = {"object": {"object_id": document, "object_id_field": "sku"}}
    if ordinal is not None:
        attributes["position"] = {"ordinal": ordinal}
    return {
        "query_id": search,
        "action_name": action,
        "timestamp": BEGIN + round(1000 * after),
        "client_id": "c",
        "event_attributes": attributes,
        **more,
    }


def write(path: Path, records: list[Any]) -> Path:
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
