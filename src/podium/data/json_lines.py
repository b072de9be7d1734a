"""JSON lines: the reader and writer behind every JSONL file of Podium.

Candidates, preferences between rankings, sessions and cached answers are all JSON lines. Each
format validates its own keys; JSON syntax and line numbers in errors are handled here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from podium.data.files import Reporter, Source, numbered_lines, source_name
from podium.errors import DataError

_Value = TypeVar("_Value")

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_ONE_PER_LINE = "Write one JSON object per line."


def json_lines(
    source: Source,
    parse: Callable[[dict[str, Any]], _Value],
    *,
    progress: Reporter | None = None,
) -> Iterator[_Value]:
    r"""Parse each line's object with ``parse``, skipping empty lines.

    A DataError from ``parse`` is raised again with the source's name and the line number.

    Example:
        >>> import io
        >>> list(json_lines(io.BytesIO(b'{"a": 1}\n\n{"a": 2}\n'), lambda content: content["a"]))
        [1, 2]
    """
    name = source_name(source)
    for number, line in numbered_lines(source, progress=progress):
        if line.strip():
            try:
                value = parse(parse_object(line))
            except DataError as error:
                raise error.at(name, number) from error
            yield value


def parse_log(
    content: bytes, parse: Callable[[dict[str, Any]], _Value], name: object
) -> tuple[list[_Value], int]:
    r"""Parse the complete lines of a log; also return how many bytes they take.

    A log is written line by line, so an unfinished last line left by a crash is ignored.

    Example:
        >>> parse_log(b'{"a": 1}\n{"a"', lambda content: content["a"], "answers.jsonl")
        ([1], 9)
    """
    complete = content.rfind(b"\n") + 1
    values = []
    for number, line in enumerate(content[:complete].split(b"\n")[:-1], 1):
        try:
            values.append(parse(parse_object(line)))
        except DataError as error:
            raise error.at(name, number) from error
    return values, complete


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object; anything else, or a duplicate key, is a DataError."""
    content = parse_json(line)
    if not isinstance(content, dict):
        raise DataError("is not a JSON object", hint=_ONE_PER_LINE)
    return content


def parse_json(text: bytes) -> Any:
    """Parse untrusted JSON text; a DataError if it is not valid."""
    try:
        return json.loads(text.decode(), object_pairs_hook=_unique_keys)
    except UnicodeError as error:
        raise DataError(f"is not UTF-8 text ({error})", hint="Convert the file first.") from error
    except RecursionError as error:
        raise DataError("is not JSON (nested too deeply)", hint="Make it flatter.") from error
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"is not JSON ({error})", hint=_ONE_PER_LINE) from error


def json_line(content: Any) -> bytes:
    r"""Serialize a value as a line; ValueError or TypeError if JSON cannot represent it.

    Example:
        >>> json_line({"title": "Größe"}).decode()
        '{"title": "Größe"}\n'
    """
    return _ENCODER.encode(content).encode() + b"\n"


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise DataError("duplicate key in an object", hint="Keep one of them.")
    return content
