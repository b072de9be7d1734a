"""Files of small records (gold pairs, examples): JSON lines, or a table of the same keys."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, TypeVar

from podium.data.files import numbered_lines, source_name
from podium.data.json_lines import parse_object
from podium.errors import DataError
from podium.studio.json_types import JsonObject

_Record = TypeVar("_Record")
_DELIMITERS = (",", ";", "\t")
_LONGEST_RECORD = 1 << 20
"""In bytes. A record is read as a whole, which takes up to 30 times its size."""
_SAVE_AS_CSV = "In a spreadsheet, save it as CSV UTF-8."


def read_records(stream: IO[bytes], parse: Callable[[JsonObject], _Record]) -> Iterator[_Record]:
    r"""Parse each record with ``parse``.

    Spreadsheets write tables, programs JSON: a file whose first line is not an object is a table
    (CSV, TSV or with semicolons) whose first line names the keys. All of its values are strings.

    Example:
        >>> import io
        >>> list(read_records(io.BytesIO(b"left;right\na;b\n"), lambda record: record["right"]))
        ['b']
        >>> list(read_records(io.BytesIO(b'{"left": "a"}\n'), lambda record: record["left"]))
        ['a']
    """
    name = source_name(stream)
    lines = numbered_lines(stream)
    first = next((each for each in lines if each[1].strip()), None)
    if first is None:
        return
    read = _objects if first[1].lstrip().startswith(b"{") else _rows
    for number, record in read(chain([first], lines), name):
        try:
            value = parse(record)
        except DataError as error:
            raise error.at(name, number) from error
        yield value


def _objects(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[tuple[int, JsonObject]]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            _check_size(len(line))
            record = parse_object(line)
        except DataError as error:
            raise error.at(name, number) from error
        yield number, record


def _rows(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[tuple[int, JsonObject]]:
    """The rows of a table by the names in its first line, with the number of their last line."""
    numbers, sizes = [0], [0]

    def decoded() -> Iterator[str]:
        for number, line in lines:
            numbers[0] = number
            sizes[0] += len(line)
            try:
                _check_size(sizes[0])
                yield line.decode() + "\n"
            except DataError as error:
                raise error.at(name, number) from error
            except UnicodeError as error:
                raise problem("is not UTF-8 text", _SAVE_AS_CSV) from error

    def problem(text: str, hint: str) -> DataError:
        return DataError(text, path=name, line=numbers[0], hint=hint)

    text = decoded()
    header = next(text)
    delimiter = max(_DELIMITERS, key=header.count)
    try:
        rows = csv.reader(chain([header], text), delimiter=delimiter, strict=True)
        keys = [cell.strip() for cell in next(rows)]
        while keys and not keys[-1]:  # spreadsheets keep columns that were emptied
            keys.pop()
        if len(set(keys)) < len(keys):
            raise problem("two columns have the same name", "Keep one of them.")
        for cells in rows:
            sizes[0] = 0  # the lines so far were of earlier records
            if any(cells[len(keys) :]):
                raise problem(
                    f"has {len(cells)} cells, and the first line {len(keys)} names",
                    "Quote cells that contain the separator.",
                )
            if any(cells):
                yield numbers[0], dict(zip(keys, (cell.strip() for cell in cells), strict=False))
    except csv.Error as error:
        raise problem(f"is not a valid table: {error}", _SAVE_AS_CSV) from error


def _check_size(size: int) -> None:
    if size > _LONGEST_RECORD:
        raise DataError("a record is longer than 1 MiB", hint="Is it the right file?")
