"""JSON, a value a line: the one reader and the one writer behind every JSONL file of Podium.

Candidates, preferences between rankings, sessions and kept answers are all JSON lines. What an
object must hold is its own format's business; that it is JSON, where it stands and what to do if it
is not is said here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from podium.data.files import Reporter, Source, numbered_lines, source_name
from podium.errors import DataError

_Value = TypeVar("_Value")

_ONE_A_LINE = "Write one JSON object a line."


def json_lines(
    source: Source,
    parse: Callable[[dict[str, Any]], _Value],
    *,
    progress: Reporter | None = None,
) -> Iterator[_Value]:
    r"""Stream what ``parse`` makes of each line's object; empty lines are passed over.

    A DataError that ``parse`` raises is raised with the source's name and the line's number.

    Example:
        >>> import io
        >>> list(json_lines(io.BytesIO(b'{"a": 1}\n\n{"a": 2}\n'), lambda content: content["a"]))
        [1, 2]
    """
    name = source_name(source)
    for number, line in numbered_lines(source, progress=progress):
        if line.strip():
            try:
                found = parse(parse_object(line))
            except DataError as error:
                raise error.at(name, number) from error
            yield found


def log_lines(
    content: bytes, parse: Callable[[dict[str, Any]], _Value], name: object
) -> tuple[list[_Value], int]:
    r"""What ``parse`` makes of each line of a log, and how many bytes of it are whole lines.

    A log is written a line at a time, so a line that a crash left unfinished never counted.

    Example:
        >>> log_lines(b'{"a": 1}\n{"a"', lambda content: content["a"], "answers.jsonl")
        ([1], 9)
    """
    whole = content.rfind(b"\n") + 1
    found = []
    for number, line in enumerate(content[:whole].split(b"\n")[:-1], 1):
        try:
            found.append(parse(parse_object(line)))
        except DataError as error:
            raise error.at(name, number) from error
    return found, whole


def parse_object(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; anything else is a DataError, as is a key that comes twice."""
    content = parse_json(line)
    if not isinstance(content, dict):
        raise DataError("is no JSON object", hint=_ONE_A_LINE)
    return content


def parse_json(text: bytes) -> Any:
    """The value of a JSON text that anyone may have written; a DataError if it is none."""
    try:
        return json.loads(text.decode(), object_pairs_hook=_unique)
    except UnicodeError as error:
        raise DataError(f"is not UTF-8 text ({error})", hint="Convert the file first.") from error
    except RecursionError as error:
        raise DataError("is not JSON (nested too deeply)", hint="Make it flatter.") from error
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"is not JSON ({error})", hint=_ONE_A_LINE) from error


def json_line(content: Any) -> bytes:
    r"""A value as a line; ValueError or TypeError if JSON does not know it.

    Example:
        >>> json_line({"title": "Größe"}).decode()
        '{"title": "Größe"}\n'
    """
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DataError("a key comes twice in one object", hint="Keep one of them.")
    return found
