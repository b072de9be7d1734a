"""What is kept of a document besides its title, text and address: within limits, and storable."""

from __future__ import annotations

from collections.abc import Mapping

from podium.data.json_lines import json_line
from podium.errors import DataError
from podium.studio.json_types import JsonObject
from podium.studio.store.database import storable

LARGEST = 64 << 10
"""The most bytes of JSON of one document."""
_MOST_VALUES = 50
_LONGEST_VALUE = 8 << 10
_DEEPEST = 4


def storable_metadata(metadata: Mapping[str, object], document_id: str) -> JsonObject:
    """Metadata as the database can keep it; a DataError if it is too large or nested too deep.

    Example:
        >>> storable_metadata({"brand": "A" + chr(0)}, "d1")
        {'brand': 'A'}
    """
    kept = _storable(dict(metadata), 0, document_id)
    assert isinstance(kept, dict)
    if len(json_line(kept)) > LARGEST:
        raise DataError(
            f"the metadata of document {document_id!r} is longer than {LARGEST >> 10} KiB",
            hint="Leave out what assessors do not see.",
        )
    return kept


def plain_fields(document: Mapping[str, object], without: set[str]) -> JsonObject:
    """Those fields of a record that people can read: no vectors, no long texts.

    Example:
        >>> plain_fields({"id": "1", "brand": "A", "vector": [0.1] * 768}, {"id"})
        {'brand': 'A'}
    """
    kept: JsonObject = {}
    size = 0
    for name, value in document.items():
        if name in without or value in (None, "") or not _is_plain(value, 0):
            continue
        stored = _storable({str(name): value}, 0, "")
        assert isinstance(stored, dict)
        size += len(json_line(stored))
        if size > LARGEST:
            break
        kept |= stored
    return kept


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, dict):
        return (
            depth < _DEEPEST - 1
            and len(value) <= _MOST_VALUES
            and all(_is_plain(each, depth + 1) for each in value.values())
        )
    if isinstance(value, list):
        return len(value) <= _MOST_VALUES and all(
            not isinstance(each, list) and _is_plain(each, depth + 1) for each in value
        )
    if isinstance(value, str):
        return len(value) <= _LONGEST_VALUE
    if isinstance(value, float):
        return abs(value) < float("inf")
    return value is None or isinstance(value, int)


def _storable(value: object, depth: int, document_id: str) -> object:
    if depth > 2 * _DEEPEST:
        raise DataError(
            f"the metadata of document {document_id!r} is nested too deep", hint="Flatten it."
        )
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {
            storable(str(key)): _storable(each, depth + 1, document_id)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_storable(each, depth + 1, document_id) for each in value]
    return value
