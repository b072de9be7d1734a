"""Queries with their texts and columns, from a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from podium.data.files import plain_suffix, source_name
from podium.data.json_lines import json_lines
from podium.data.pool import ID_FIELDS, TEXT_FIELDS, tabbed_lines
from podium.errors import DataError
from podium.features.search_query import SearchQuery

_LONGEST_ID = 1_000
_LONGEST_TEXT = 10_000


def read_queries(source: str | os.PathLike[str]) -> Iterator[SearchQuery]:
    r"""Yield the queries of a file: JSON lines, or lines of an id, a tab and a text.

    Of a JSON line, keys other than those of the id and the text are columns.

    Raises:
        DataError: If a line is malformed, or an id is repeated.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "queries.jsonl"
        >>> _ = file.write_text('{"id": 7, "text": "shoes", "country": "at"}\n')
        >>> list(read_queries(file))
        [SearchQuery(id='7', text='shoes', columns={'country': 'at'})]
    """
    name = source_name(source)
    seen: set[str] = set()
    for query in _queries(source):
        if query.id in seen:
            raise DataError(f"has two queries {query.id!r}", path=name, hint="Give each an own id.")
        seen.add(query.id)
        yield query
    if not seen:
        raise DataError("has no query", path=name, hint="Write one per line.")


def _queries(source: str | os.PathLike[str]) -> Iterator[SearchQuery]:
    if plain_suffix(source) in (".jsonl", ".json"):
        yield from json_lines(source, _parsed)
        return
    name = source_name(source)
    for number, identity, text in tabbed_lines(source):
        try:
            yield _checked(SearchQuery(identity, text))
        except DataError as error:
            raise error.at(name, number) from error


def _parsed(content: dict[str, Any]) -> SearchQuery:
    id_key = next((key for key in ID_FIELDS if key in content), None)
    text_key = next((key for key in TEXT_FIELDS if key in content), None)
    if id_key is None or text_key is None:
        raise DataError("has no id or no text", hint="Write {'id': ..., 'text': ...}.")
    identity, text = content.pop(id_key), content.pop(text_key)
    if type(identity) not in (str, int) or not isinstance(text, str):
        raise DataError("has an id or a text that is not a string", hint="Write strings.")
    return _checked(SearchQuery(str(identity), text, _columns(content)))


def _columns(content: dict[str, Any]) -> dict[str, str]:
    columns = {}
    for name, value in content.items():
        if value is None:
            continue
        if not isinstance(value, str | int | float):
            raise DataError(f"has a column {name!r} that is not a value", hint="Leave it out.")
        columns[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return columns


def _checked(query: SearchQuery) -> SearchQuery:
    if not 0 < len(query.id) <= _LONGEST_ID:
        raise DataError(f"has an id of {len(query.id)} characters", hint="Give a short one.")
    for text in (query.id, query.text, *query.columns, *query.columns.values()):
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise DataError("is not valid Unicode", hint="Remove lone surrogates.")
        if len(text) > _LONGEST_TEXT:
            raise DataError(f"has more than {_LONGEST_TEXT} characters", hint="Shorten it.")
    return query
