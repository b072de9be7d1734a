"""JSONL for queries and candidates with text, one query per line.

    {"query_id": "q1", "query": "red shoes", "description": "…", "candidates": [
        {"document_id": "d1", "title": "…", "text": "…", "html": "…", "url": "…",
         "score": 7.5, "label": 2, "metadata": {…}}, …]}

``query_id``, ``query``, ``candidates`` and each ``document_id`` are required, the rest is optional.
Unknown keys are errors, so that a misspelt one is noticed: put custom data into ``metadata``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from podium.data.candidates import Candidate, CandidateList
from podium.data.files import Reporter, Source, open_write
from podium.data.json_lines import json_line, json_lines
from podium.errors import DataError

_STRING_KEYS = ("document_id", "title", "text", "html", "url")
_NUMBER_KEYS = ("score", "label")
_CANDIDATE_KEYS = {field.name for field in fields(Candidate)}
_LIST_KEYS = {field.name for field in fields(CandidateList)}
_REQUIRED_KEYS = {"query_id", "query", "candidates", "document_id"}


def read_jsonl(source: Source, *, progress: Reporter | None = None) -> Iterator[CandidateList]:
    r"""Stream queries with their candidates.

    Example:
        >>> import io
        >>> line = b'{"query_id": "q", "query": "shoes", "candidates": [{"document_id": "d"}]}\n'
        >>> [entry.query for entry in read_jsonl(io.BytesIO(line))]
        ['shoes']
    """
    seen: set[str] = set()

    def parse(content: dict[str, Any]) -> CandidateList:
        _check_writable(content)
        entry = _query(content)
        if entry.query_id in seen:
            raise DataError(
                f"query {entry.query_id!r} is listed twice", hint="Write one line per query."
            )
        seen.add(entry.query_id)
        return entry

    return json_lines(source, parse, progress=progress)


def write_jsonl(lists: Iterable[CandidateList], target: Source) -> None:
    r"""Write queries with their candidates; empty fields are left out.

    Example:
        >>> import io
        >>> write_jsonl([CandidateList("q", "shoes", (Candidate("d"),))], out := io.BytesIO())
        >>> out.getvalue()
        b'{"query_id": "q", "query": "shoes", "candidates": [{"document_id": "d"}]}\n'
    """
    with open_write(target) as write:
        for entry in lists:
            content = _filled(entry)
            content["candidates"] = [_filled(candidate) for candidate in entry.candidates]
            try:
                line = json_line(content)
            except (ValueError, TypeError, RecursionError) as error:
                raise DataError(
                    f"query {entry.query_id!r} cannot be written as JSON ({error})",
                    hint="Give finite numbers, valid Unicode, and metadata that JSON allows.",
                ) from error
            write(line)


def _filled(entry: CandidateList | Candidate) -> dict[str, Any]:
    """The required fields and those that are not empty."""
    content = {field.name: getattr(entry, field.name) for field in fields(entry)}
    return {
        key: value
        for key, value in content.items()
        if key in _REQUIRED_KEYS or value not in ("", None, {})
    }


def _check_writable(content: dict[str, Any]) -> None:
    """Reject what could not be written back: NaN, 1e999, a lone surrogate."""
    try:
        json_line(content)
    except UnicodeError as error:
        raise DataError(f"is not UTF-8 text ({error})", hint="Convert the file first.") from error
    except ValueError as error:
        raise DataError(
            "has a number that is not valid JSON, or too large", hint="Leave it out."
        ) from error


def _query(content: Any) -> CandidateList:
    _check_keys(content, "a query", _LIST_KEYS, _LIST_KEYS & _REQUIRED_KEYS)
    _check_strings(content, ("query_id", "query", "description"))
    if not content["query_id"]:
        raise DataError("query_id is empty", hint="Give each query an id.")
    if not isinstance(content["candidates"], list):
        raise DataError("candidates is not a list", hint="Give a list of objects.")
    candidates = tuple(map(_candidate, content["candidates"]))
    ids = [candidate.document_id for candidate in candidates]
    if len(set(ids)) != len(ids):
        raise DataError("a document is listed twice among the candidates", hint="Keep one of them.")
    return CandidateList(**{**content, "candidates": candidates})


def _candidate(content: Any) -> Candidate:
    _check_keys(content, "a candidate", _CANDIDATE_KEYS, _CANDIDATE_KEYS & _REQUIRED_KEYS)
    _check_strings(content, _STRING_KEYS)
    if not content["document_id"]:
        raise DataError("document_id is empty", hint="Give each candidate an id.")
    for key in _NUMBER_KEYS:
        value = content.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and abs(value) <= sys.float_info.max):
            raise DataError(f"{key} is not a number", hint="Give a number, or leave it out.")
    if not isinstance(content.get("metadata", {}), dict):
        raise DataError("metadata is not an object", hint="Give an object, or leave it out.")
    return Candidate(**content)


def _check_keys(content: Any, name: str, known: set[str], required: set[str]) -> None:
    if not isinstance(content, dict):
        raise DataError(f"{name} is not a JSON object", hint="See the format's description.")
    for key in sorted(required - content.keys()):
        raise DataError(f"{name} lacks {key!r}", hint="Add it.")
    for key in sorted(content.keys() - known):
        raise DataError(f"{name} has an unknown key {key!r}", hint="Put it into 'metadata'.")


def _check_strings(content: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        if not isinstance(content.get(key, ""), str):
            raise DataError(f"{key!r} is not a string", hint="Put it into quotes.")
