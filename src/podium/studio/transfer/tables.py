"""Reads queries and candidates from tables: CSV, TSV, and the JSON that Label Studio exports.

One row per document of a query; the importer chooses which column is what, from a guess by the
columns' names. All other columns are kept with the document by their names. Exports of
Quepid (ratings, snapshots) are such tables.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from podium.data import Candidate, CandidateList
from podium.errors import DataError
from podium.studio.json_types import JsonObject
from podium.studio.store.metadata import plain_fields
from podium.studio.transfer.readers import (
    MAX_BYTES,
    MAX_QUERIES,
    ImportedQuery,
    Upload,
    open_upload,
)

_Row = dict[str, str]
"""The cells of a row by the names of their columns."""

PREVIEW_ROWS = 5
_SAMPLE = 500
_SAMPLED_TEXT = 4 << 20
"""How many rows, and how much text, are looked at to guess what columns hold."""
_MAX_COLUMNS = 200
_LONGEST_FIELD = 4 << 20
_LONGEST_ROW = 8 << 20
"""In characters. A row is read as a whole, which takes up to 30 times its size."""
_DELIMITERS = (",", "\t", ";")
_LISTED_PROBLEMS = 5
"""How many broken rows an error lists."""
_CHUNK = 1 << 16
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_ZIP = b"PK\x03\x04"
"""How workbooks of spreadsheets begin."""
_SAVE_AS_CSV = "In a spreadsheet, save it as CSV UTF-8."
_NAMES: dict[str, tuple[str, ...]] = {
    "query_id": ("query_id", "qid", "query-id", "topic", "topic_id"),
    "query": (
        *("query", "query text", "query_text", "question", "prompt", "keywords", "text_query"),
        *("search_term", "search term"),
    ),
    "description": ("description", "information_need", "information need", "narrative"),
    "document_id": (
        *("document_id", "doc_id", "docid", "doc id", "docno", "item_id", "product_id", "sku"),
        "id",
    ),
    "title": ("title", "name", "headline", "product_title", "product_name"),
    "text": (
        *("text", "body", "content", "passage", "document", "snippet"),
        *("product_description", "abstract", "summary"),
    ),
    "html": ("html",),
    "url": ("url", "link", "source"),
    "score": ("score",),
    "rank": ("rank", "position", "doc position", "doc_position"),
}
"""What columns are often called, in lower case."""
_TAG = re.compile(
    r"</?(?:p|br|div|span|ul|ol|li|b|i|strong|em|h[1-6]|table|tr|td|a|img)\b[^<>]*>", re.I
)


class TableColumns(BaseModel):
    """Which column of a table is what; an empty name is none.

    Example:
        >>> TableColumns(query="Query Text", document_id="Doc ID").title
        ''
    """

    model_config = ConfigDict(extra="forbid")

    query_id: str = Field(default="", max_length=500)
    """Without it, the query's text is its id."""
    query: str = Field(default="", max_length=500)
    description: str = Field(default="", max_length=500)
    document_id: str = Field(default="", max_length=500)
    """Without it, the document's URL is its id."""
    title: str = Field(default="", max_length=500)
    text: str = Field(default="", max_length=500)
    html: str = Field(default="", max_length=500)
    url: str = Field(default="", max_length=500)
    score: str = Field(default="", max_length=500)
    rank: str = Field(default="", max_length=500)
    """The rank in a prior ranking, from 1; it stands for a score."""

    def check(self, columns: list[str]) -> None:
        """Refuse names that the table does not have, and choices that name no query."""
        for what, name in self.model_dump().items():
            if name and name not in columns:
                raise DataError(
                    f"there is no column {name!r} for {what}",
                    hint=f"Its columns are {', '.join(columns[:12])}.",
                )
        if not (self.query_id or self.query):
            raise DataError("no column has the query", hint="Choose one for query or query_id.")
        if not (self.document_id or self.url):
            raise DataError(
                "no column has the document's id", hint="Choose one for document_id or url."
            )


@dataclass
class _Query:
    text: str
    description: str
    candidates: dict[str, Candidate] = field(default_factory=dict)

    def entry(self, name: str) -> CandidateList:
        return CandidateList(name, self.text, tuple(self.candidates.values()), self.description)


@dataclass(frozen=True)
class TablePreview:
    """The beginning of a table, and what its columns are.

    Attributes:
        columns: Their names.
        rows: The first rows.
        guess: What the columns are taken for.
        example: A query of the first rows as it would be imported, if they hold one.
    """

    columns: list[str]
    rows: list[list[str]]
    guess: TableColumns
    example: CandidateList | None


def preview_table(upload: Upload, chosen: TableColumns | None = None) -> TablePreview:
    """Read the beginning of a table.

    Args:
        upload: The file.
        chosen: Which column is what; by default this is guessed.
    """
    with closing(_rows(upload)) as rows:
        first, columns = _beginning(rows, upload.name)
    guess = chosen or guess_columns(columns, first)
    shown = [[row.get(name, "")[:200] for name in columns] for row in first[:PREVIEW_ROWS]]
    queries: dict[str, _Query] = {}
    # What is wrong with the columns or rows is said when the table is imported.
    with suppress(DataError):
        guess.check(columns)
        for row in first:
            _add_row(queries, row, guess)
    most = max(queries.items(), key=lambda each: len(each[1].candidates), default=None)
    return TablePreview(columns, shown, guess, most[1].entry(most[0]) if most else None)


def names_columns(columns: Iterable[str]) -> bool:
    """Whether columns are called like a query and a document of it.

    Example:
        >>> names_columns(["keywords", "sku", "price"]), names_columns(["q1", "red shoes"])
        (True, False)
    """
    named = guess_columns(list(columns))
    return bool((named.query or named.query_id) and (named.document_id or named.url))


def guess_columns(columns: list[str], rows: Sequence[_Row] = ()) -> TableColumns:
    """Guess which column is what by their names, and by what the first rows hold.

    A description that differs between documents of a query is the documents' text, and text that
    has tags is HTML.

    Example:
        >>> guess_columns(["Query Text", "Doc ID", "Doc Position", "title"]).rank
        'Doc Position'
        >>> rows = [{"query": "tea", "description": each} for each in ("<p>Green</p>", "Black")]
        >>> guess_columns(["query", "description"], rows).html
        'description'
    """
    lower = {name.strip().lower(): name for name in reversed(columns)}
    guess = {
        what: next((lower[name] for name in names if name in lower), "")
        for what, names in _NAMES.items()
    }
    query, description = guess["query_id"] or guess["query"], guess["description"]
    if rows and description:
        described = [(row.get(query), row[description]) for row in rows if row.get(description)]
        queries, pairs = {name for name, _ in described}, set(described)
        unclear = len(queries) == len(described) and not guess["text"]
        if len(queries) < len(pairs) or unclear:
            guess["description"] = ""
            guess["text"] = guess["text"] or description
    values = [row.get(guess["text"]) for row in rows]
    filled = [value for value in values if value]
    if not guess["html"] and 2 * sum(bool(_TAG.search(each)) for each in filled) > len(filled):
        guess["html"], guess["text"] = guess["text"], ""
    return TableColumns(**guess)


def read_table(upload: Upload, columns: TableColumns | None = None) -> Iterator[ImportedQuery]:
    """Queries with their candidates; rows of a query need not be together.

    Args:
        upload: The file.
        columns: Which column is what; by default as `guess_columns` guesses.
    """
    rows = _rows(upload)
    first, names = _beginning(rows, upload.name)
    columns = columns or guess_columns(names, first)
    columns.check(names)
    queries: dict[str, _Query] = {}
    size = 0
    broken: list[DataError] = []
    for number, row in enumerate(chain(first, rows), start=1):
        size += sum(map(len, row.values()))
        if size > MAX_BYTES:
            raise DataError(f"the texts are longer than {MAX_BYTES >> 20} MiB", hint="Split them.")
        try:
            _add_row(queries, row, columns)
        except DataError as error:
            broken.append(DataError(f"row {number}: {error.problem}", hint=error.hint))
            if len(broken) == _LISTED_PROBLEMS:
                break
        if len(queries) > MAX_QUERIES:
            raise DataError(
                f"row {number}: there are more than {MAX_QUERIES} queries", hint="Split them."
            )
    if broken:
        listed = "; ".join(error.problem for error in broken)
        more = "; later rows were not read" if len(broken) == _LISTED_PROBLEMS else ""
        raise DataError(listed + more, path=upload.name, hint=broken[0].hint)
    for name, query in queries.items():
        yield ImportedQuery(query.entry(name), in_words=bool(columns.query))


def _beginning(rows: Iterator[_Row], name: str) -> tuple[list[_Row], list[str]]:
    """The first rows, and the columns that any of them has."""
    first, size = [], 0
    for row in islice(rows, _SAMPLE):
        first.append(row)
        size += sum(map(len, row.values()))
        if len(first) >= PREVIEW_ROWS and size > _SAMPLED_TEXT:
            break
    if not first:
        raise DataError("has no rows", path=name, hint="Is it the right file?")
    columns = list(dict.fromkeys(column for row in first for column in row))
    _check_width(columns, name)
    return first, columns


def _check_width(columns: Sequence[str], name: str) -> None:
    if len(columns) > _MAX_COLUMNS:
        raise DataError(f"has {len(columns)} columns", path=name, hint=f"Keep {_MAX_COLUMNS}.")


def _add_row(queries: dict[str, _Query], row: Mapping[str, str], columns: TableColumns) -> None:
    cells = {
        what: row.get(name, "").strip() if name else ""
        for what, name in columns.model_dump().items()
    }
    query_id = cells["query_id"] or cells["query"]
    document_id = cells["document_id"] or cells["url"]
    if not query_id or not document_id:
        raise DataError(
            f"has no {'document' if query_id else 'query'} ({', '.join(row.values())[:60]}…)",
            hint="Fill the cell, or remove the row.",
        )
    query = queries.setdefault(query_id, _Query(cells["query"] or query_id, cells["description"]))
    if document_id in query.candidates:
        raise DataError(
            f"document {document_id!r} of query {query_id!r} is listed twice",
            hint="Keep one of its rows.",
        )
    query.candidates[document_id] = Candidate(
        document_id,
        title=cells["title"],
        text=cells["text"],
        html=cells["html"],
        url=cells["url"],
        score=_score(cells["score"], cells["rank"]),
        metadata=plain_fields(row, {name for name in columns.model_dump().values() if name}),
    )


def _score(score: str, rank: str) -> float | None:
    try:
        value = float(score) if score else -float(rank) if rank else None
    except ValueError as error:
        raise DataError(
            f"{score or rank!r} is not a number", hint="Choose another column for score or rank."
        ) from error
    if value is not None and not abs(value) < 1e300:
        raise DataError(f"{score or rank!r} is not a finite number", hint="Correct it.")
    return value


def _rows(upload: Upload) -> Generator[_Row]:
    """The rows of a table by the names of their columns."""
    with open_upload(upload) as stream:
        head = stream.peek(1 << 16)  # type: ignore[attr-defined]
        if head.startswith(_ZIP):
            raise DataError(
                "is a workbook or an archive, not a table", path=upload.name, hint=_SAVE_AS_CSV
            )
        text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        try:
            if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"[", b"{")):
                yield from _json_rows(text, upload.name)
                return
            # Longer cells than Python's module takes by default: documents are.
            csv.field_size_limit(_LONGEST_FIELD)
            yield from _separated_rows(text, _delimiter(head, upload.name), upload.name)
        except DataError:
            raise
        except UnicodeError as error:
            raise DataError("is not UTF-8 text", path=upload.name, hint=_SAVE_AS_CSV) from error
        except csv.Error as error:
            raise DataError(f"is not a valid table: {error}", path=upload.name) from error
        except (ValueError, RecursionError) as error:
            raise DataError(
                "is not a JSON array of objects", path=upload.name, hint="Export it as JSON."
            ) from error


def _delimiter(head: bytes, name: str) -> str:
    """What separates columns: of the candidates, the one that the first line has most often."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    if name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    return max(_DELIMITERS, key=line.count)


def _separated_rows(text: io.TextIOWrapper, delimiter: str, name: str) -> Iterator[_Row]:
    lines = _RowLines(text, name)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = next(reader, [])
    columns = [column.strip() for column in header]
    if len(set(columns)) < len(columns) or not all(columns):
        raise DataError(
            "two columns have the same name, or one has none", path=name, line=1,
            hint="Give each column its own name in the first line.",
        )  # fmt: skip
    _check_width(columns, name)
    for cells in reader:
        lines.begin_row()
        if len(cells) > len(columns):
            raise DataError(
                f"has {len(cells)} cells, and the first line {len(columns)} names",
                path=name,
                line=reader.line_num,
                hint="Quote cells that contain the separator.",
            )
        if any(cells):
            yield dict(zip_longest(columns, cells, fillvalue=""))


class _RowLines:
    """Lines of a table, as long as one row of it is not too long."""

    def __init__(self, text: io.TextIOWrapper, name: str) -> None:
        self._text = text
        self._name = name
        self._left = _LONGEST_ROW

    def begin_row(self) -> None:
        """The lines so far were of earlier rows."""
        self._left = _LONGEST_ROW

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise _long_row(self._name)
        if not line:
            raise StopIteration
        return line


def _long_row(name: str) -> DataError:
    return DataError(
        f"has a row of more than {_LONGEST_ROW >> 20} MiB", path=name, hint="Is it a table?"
    )


def _json_objects(text: io.TextIOWrapper, name: str) -> Iterator[JsonObject]:
    """The objects of a JSON array, one at a time; ValueError if it is not one."""
    decode = json.JSONDecoder().raw_decode
    buffer, at, expected = "", 0, "["
    while True:
        at = _JSON_SPACE.match(buffer, at).end()  # type: ignore[union-attr]
        if at == len(buffer):
            buffer, at = text.read(_CHUNK), 0
            if not buffer:
                raise ValueError("it is cut short")
        elif buffer[at] == expected:
            at, expected = at + 1, ""
        elif buffer[at] == "]" and expected != "[":
            if (buffer[at + 1 :] + text.read(_CHUNK)).strip():
                raise ValueError("it goes on after its end")
            return
        elif expected or buffer[at] != "{":
            raise ValueError("it is not an array of objects")
        else:
            try:
                value, at = decode(buffer, at)
            except ValueError:
                size = len(buffer) - at
                if size > _LONGEST_ROW:
                    raise _long_row(name) from None
                more = text.read(max(size, _CHUNK))
                if not more:
                    raise
                buffer, at = buffer[at:] + more, 0
                continue
            expected = ","
            yield value


def _json_rows(text: io.TextIOWrapper, name: str) -> Iterator[_Row]:
    """The rows of a JSON array: objects, or Label Studio's tasks, whose ``data`` are the row.

    A list of objects in a row (the items of Label Studio's lists) is a row for each of them.
    """
    for task in _json_objects(text, name):
        row = task["data"] if isinstance(task.get("data"), dict) else task
        plain = {str(key): _text(value) for key, value in row.items() if _is_plain(value)}
        items = [value for value in row.values() if _is_items(value)]
        if not items:
            yield plain
        for item in (each for value in items for each in value):
            # The row's own id names the task, the item's its document.
            kept = {key: value for key, value in plain.items() if key not in item}
            yield kept | {str(key): _text(value) for key, value in item.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _is_items(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _text(value: object) -> str:
    return "" if value is None else str(value)
