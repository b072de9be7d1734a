"""Writes a project's results, query by query, in the formats of `podium.data`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import Connection, Engine, select

from podium.data import Candidate, CandidateList, Judgments, write_jsonl, write_pairs, write_qrels
from podium.data.csv_cells import harmless_cell
from podium.data.formats.parquet import parquet_writer, table_schema, write_row_groups
from podium.data.formats.trec import write_prefs
from podium.data.grouping import Strings
from podium.data.json_lines import json_line
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import QueryRows
from podium.errors import DataError
from podium.judging import log_preferences
from podium.judging.entries import entry_to_json
from podium.judging.grading import side_by_side_totals
from podium.judging.models.answer_log import answer_to_json
from podium.studio.json_types import JsonObject
from podium.studio.judging.judged import JudgedQuery
from podium.studio.judging.modes import QueryLogEntry
from podium.studio.messages import Message
from podium.studio.models.answers import answers_on_query
from podium.studio.store.database import reading
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.tables import QueryCandidate

"""What a spreadsheet takes a cell for a formula by."""
_SPACE = r"[\s\x00-\x20]"
"""What separates columns where IDs are words."""
_QUERIES_OF_TABLE = 50
_Record = TypeVar("_Record")
_Rows = TypeVar("_Rows", bound=QueryRows)


@dataclass(frozen=True)
class ExportFormat:
    """A file format of one kind of content.

    Attributes:
        suffix: The file name suffix.
        write: Writes queries of a database to a stream and returns the number of rows. The last
            argument is whether documents that were judged equal get equal labels.
        underscored: The same with white space in IDs written as ``_``, if the format has none in
            IDs; None if it writes any ID.
    """

    suffix: str
    write: Callable[[IO[bytes], Engine, Iterable[JudgedQuery], bool], int]
    underscored: ExportFormat | None = None


def _export_format(
    suffix: str,
    records: Callable[[Engine, JudgedQuery, bool], Iterator[_Record]],
    write: Callable[[IO[bytes], Iterable[_Record]], int],
) -> ExportFormat:
    """A format that writes the records of one query after the other."""

    def write_queries(
        stream: IO[bytes], engine: Engine, queries: Iterable[JudgedQuery], ties: bool
    ) -> int:
        return write(stream, (row for each in queries for row in records(engine, each, ties)))

    return ExportFormat(suffix, write_queries)


def _table_format(
    suffix: str,
    table: Callable[[Sequence[JudgedQuery], bool], _Rows | None],
    write: Callable[[IO[bytes], Iterable[_Rows]], int],
) -> ExportFormat:
    """A format that writes tables of some queries each: each table costs as much as many rows."""

    def write_queries(
        stream: IO[bytes], _engine: Engine, queries: Iterable[JudgedQuery], ties: bool
    ) -> int:
        rest = iter(queries)
        pages = iter(lambda: list(islice(rest, _QUERIES_OF_TABLE)), [])
        tables = (table(page, ties) for page in pages)
        return write(stream, (rows for rows in tables if rows is not None))

    return ExportFormat(suffix, write_queries)


def _trec_format(
    suffix: str,
    table: Callable[[Sequence[JudgedQuery], bool], _Rows | None],
    write: Callable[[_Rows, IO[bytes]], None],
) -> ExportFormat:
    """A format of TREC's tools, which separate columns by white space."""

    def checked(stream: IO[bytes], rows: Iterable[_Rows]) -> int:
        return write_all(stream, map(_check_ids, rows))

    def underscored(stream: IO[bytes], rows: Iterable[_Rows]) -> int:
        return write_all(stream, _with_underscores(rows))

    write_all = _text_writer(write)
    return replace(
        _table_format(suffix, table, checked),
        underscored=_table_format(suffix, table, underscored),
    )


def _id_columns(rows: QueryRows) -> dict[str, Strings]:
    """The columns of IDs, by their names."""
    names = ("document_ids", "left", "right")
    columns = {name: getattr(rows, name) for name in names if name in rows.ROW_FIELDS}
    return {"query_ids": rows.query_ids, **columns}


def _check_ids(rows: _Rows) -> _Rows:
    """Refuse white space in IDs, and say what to do about it."""
    for ids in _id_columns(rows).values():
        split = ids.filter(pc.match_substring_regex(ids, _SPACE))
        if len(split):
            raise DataError(
                f"the ID {split[0].as_py()!r} contains white space, which TREC files cannot",
                hint="Choose CSV, JSONL or Parquet, or have spaces in IDs written as _.",
            )
    return rows


def _with_underscores(records: Iterable[_Rows]) -> Iterator[_Rows]:
    """Write white space in IDs as ``_``; two IDs that become the same are an error."""
    queries: dict[tuple[str, ...], str] = {}
    for rows in records:
        documents: dict[tuple[str, ...], str] = {}
        query_of_row = rows.query_id_of_row().to_pylist()
        columns = _id_columns(rows)
        written = {
            name: pc.replace_substring_regex(ids, _SPACE, "_") for name, ids in columns.items()
        }
        for name, ids in columns.items():
            known = queries if name == "query_ids" else documents
            names = zip(ids.to_pylist(), written[name].to_pylist(), strict=True)
            for row, (old, new) in enumerate(names):
                key = (new,) if name == "query_ids" else (query_of_row[row], new)
                if known.setdefault(key, old) != old:
                    raise DataError(
                        f"the IDs {known[key]!r} and {old!r} would both be {new!r}",
                        hint="Choose CSV, JSONL or Parquet.",
                    )
        yield replace(rows, **written)


def _text_writer(
    write: Callable[[_Rows, IO[bytes]], None],
) -> Callable[[IO[bytes], Iterable[_Rows]], int]:
    def write_all(stream: IO[bytes], records: Iterable[_Rows]) -> int:
        count = 0
        for record in records:
            write(record, stream)
            count += record.rows
        return count

    return write_all


def _write_parquet(stream: IO[bytes], records: Iterable[QueryRows]) -> int:
    count = 0
    writer: pq.ParquetWriter | None = None
    for record in records:
        schema = table_schema(record)
        writer = writer or parquet_writer(pa.PythonFile(stream, mode="w"), schema)
        write_row_groups(writer, record, schema)
        count += record.rows
    if writer is not None:
        writer.close()
    return count


def _write_lines(stream: IO[bytes], records: Iterable[JsonObject]) -> int:
    count = 0
    for record in records:
        stream.write(json_line(record))
        count += 1
    return count


def _write_candidates(stream: IO[bytes], records: Iterable[CandidateList]) -> int:
    count = 0
    for record in records:
        write_jsonl([record], stream)
        count += 1
    return count


def as_levels(labels: Judgments) -> PreferenceLevels:
    """Labels as trec_eval's preferences: one group, in which larger is better."""
    rows = labels.rows
    return PreferenceLevels.from_columns(
        labels.query_id_of_row(),
        ["podium"] * rows,
        ["0"] * rows,
        labels.document_ids,
        labels.labels.astype(np.float64),
    )


def log_lines(each: JudgedQuery) -> Iterator[JsonObject]:
    """The whole log of a query: what counts as `podium.judging` writes it, and the rest too."""
    mode = each.content.mode(each.project, each.query)
    for entry in each.log:
        line: JsonObject = {"query_id": each.query.name}
        if entry.kind in (Kind.UNDO, Kind.SKIP, Kind.WITHDRAW):
            line |= {"kind": entry.kind.value, "assessor": str(entry.user), "at": entry.at}
            if entry.kind is Kind.UNDO:
                line["entry"] = entry.undoes
            elif entry.kind is Kind.WITHDRAW and entry.left is not None:
                line["document_id"] = each.items[entry.left]
        else:
            line |= entry_to_json(mode.entry(entry))
        line |= {"purpose": entry.purpose.value, "counts": entry.counts, "seconds": entry.seconds}
        line["by"] = _kind_of_assessor(entry)
        if entry.reason:
            line["reason"] = entry.reason
        if entry.replies:
            line["replies"] = entry.replies
        if entry.manager is not None:
            line["manager"] = str(entry.manager)
        yield line


def _kind_of_assessor(entry: QueryLogEntry) -> str:
    return "model" if entry.purpose is Purpose.MODEL else "person"


def _qrels(queries: Sequence[JudgedQuery], ties: bool) -> Judgments | None:
    """Labels as TREC's tools take them: mean grades are rounded, halves up."""
    labels = _labels(queries, ties)
    return labels and replace(labels, labels=np.floor(labels.labels + 0.5))


def _label_cells(engine: Engine, each: JudgedQuery, ties: bool) -> Iterator[list[object]]:
    """The rows of a table of labels."""
    if not each.is_judged:
        return
    for candidate in next(_candidates(engine, each, ties)).candidates:
        if candidate.label is not None:
            yield [
                each.query.name, harmless_cell(each.query.text), candidate.document_id,
                harmless_cell(candidate.title), f"{candidate.label:.6g}",
            ]  # fmt: skip


def _log_cells(_engine: Engine, each: JudgedQuery, _ties: bool) -> Iterator[list[object]]:
    """The rows of a table of all answers, for spreadsheets."""
    query_text = harmless_cell(each.query.text)
    for entry in each.log:
        if entry.kind is not Kind.UNDO:
            yield [
                each.query.name, query_text, f"{entry.at:.3f}", entry.user,
                _kind_of_assessor(entry), entry.kind.value, *_names(each, entry),
                "" if entry.value is None else entry.value,
                entry.purpose.value, entry.counts, entry.position in each.standing_positions,
                f"{entry.seconds:.1f}", harmless_cell(entry.reason or ""),
                json.dumps(entry.replies) if entry.replies else "",
            ]  # fmt: skip


def _names(each: JudgedQuery, entry: QueryLogEntry) -> list[str]:
    """What an entry has on the left and on the right."""
    names = each.items
    if each.content.rankings and entry.kind is not Kind.WITHDRAW:
        names = list(each.content.rankings)
    return ["" if at is None else names[at] for at in (entry.left, entry.right)]


def _csv_writer(header: list[str]) -> Callable[[IO[bytes], Iterable[list[object]]], int]:
    def write_all(stream: IO[bytes], records: Iterable[list[object]]) -> int:
        text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(header)
        count = 0
        for record in records:
            writer.writerow(record)
            count += 1
        text.detach()  # the caller closes the stream
        return count

    return write_all


def _labels(queries: Sequence[JudgedQuery], ties: bool) -> Judgments | None:
    """Labels of some queries; None if there are none."""
    rows = [
        (each.query.name, item, label)
        for each in queries
        if each.is_judged
        for item, label in each.labels(ties=ties).items()
    ]
    return Judgments.from_columns(*zip(*rows, strict=True)) if rows else None


def _levels(queries: Sequence[JudgedQuery], ties: bool) -> PreferenceLevels | None:
    labels = _labels(queries, ties)
    return None if labels is None else as_levels(labels)


def _candidates(engine: Engine, each: JudgedQuery, ties: bool) -> Iterator[CandidateList]:
    if each.is_judged:
        yield reading(engine, lambda connection: _with_texts(connection, each, ties))


def _preferences(queries: Sequence[JudgedQuery], _ties: bool) -> Preferences | None:
    verdicts = {each.query.name: each.verdicts() for each in queries}
    return log_preferences(verdicts) if any(verdicts.values()) else None


def _log(_engine: Engine, each: JudgedQuery, _ties: bool) -> Iterator[JsonObject]:
    """Whether a content includes queries without judgments: only the log does."""
    return log_lines(each)


def _answers(engine: Engine, each: JudgedQuery, _ties: bool) -> Iterator[JsonObject]:
    """All that models answered, as `podium audit` reads it."""
    return map(answer_to_json, answers_on_query(engine, each.query.id))


def _totals(_engine: Engine, each: JudgedQuery, _ties: bool) -> Iterator[JsonObject]:
    names = ("first_much_better", "first_better", "same", "second_better", "second_much_better")
    for (first, second), counts in side_by_side_totals(each.state.mode.log).items():
        yield {
            "query_id": each.query.name,
            "first": first,
            "second": second,
            **dict(zip(names, counts, strict=True)),
        }


def _with_texts(connection: Connection, each: JudgedQuery, ties: bool) -> CandidateList:
    label_of = each.labels(ties=ties)
    rows = connection.execute(
        select(QueryCandidate.__table__)
        .where(QueryCandidate.query_id == each.query.id)
        .order_by(QueryCandidate.position)
    ).all()
    candidates = tuple(
        Candidate(
            row.item, title=row.title, text=row.text, html=row.html, url=row.url,
            score=row.score, label=label_of.get(row.item), metadata=row.extra,
        )
        for row in rows
        if row.position not in each.state.withdrawn_documents
    )  # fmt: skip
    return CandidateList(each.query.name, each.query.text, candidates, each.query.description)


_LABEL_FORMATS = {
    "qrels": _trec_format(".qrels", _qrels, write_qrels),
    "csv": _export_format(
        ".csv",
        _label_cells,
        _csv_writer(["query_id", "query", "document_id", "title", "label"]),
    ),
    "qrels-parquet": _table_format(".parquet", _labels, _write_parquet),
    "prefs": _trec_format(".prefs", _levels, write_prefs),
    "prefs-parquet": _table_format(".parquet", _levels, _write_parquet),
    "jsonl": _export_format(".jsonl", _candidates, _write_candidates),
}
EXPORT_FORMATS: dict[str, dict[str, ExportFormat]] = {
    "labels": _LABEL_FORMATS,
    "grades": _LABEL_FORMATS,
    "preferences": {
        "pairs": _trec_format(".pairs", _preferences, write_pairs),
        "pairs-parquet": _table_format(".parquet", _preferences, _write_parquet),
    },
    "totals": {"jsonl": _export_format(".jsonl", _totals, _write_lines)},
    "log": {
        "jsonl": _export_format(".jsonl", _log, _write_lines),
        "csv": _export_format(
            ".csv",
            _log_cells,
            _csv_writer(
                [
                    *("query_id", "query", "at", "assessor", "by", "kind", "left", "right"),
                    *("value", "purpose", "counts", "stands", "seconds", "reason", "replies"),
                ]
            ),
        ),
    },
    "answers": {"jsonl": _export_format(".jsonl", _answers, _write_lines)},
}
"""The formats of each kind of content."""

DESCRIPTIONS: dict[tuple[str, str], Message] = {
    ("labels", "qrels"): Message(
        "The label of each document: k for the best down to 1, and 0 below the top k. TREC "
        "qrels, for podium evaluate, podium train and trec_eval."
    ),
    ("labels", "csv"): Message(
        "The label of each document: k for the best down to 1, and 0 below the top k. A table "
        "with the texts of queries, for spreadsheets and Podium."
    ),
    ("labels", "qrels-parquet"): Message(
        "The label of each document: k for the best down to 1, and 0 below the top k. A table, "
        "for podium evaluate, train and data tools."
    ),
    ("labels", "prefs"): Message(
        "The order of the documents as trec_eval's preferences (-R prefs)."
    ),
    ("labels", "prefs-parquet"): Message("The order of the documents as preferences, as a table."),
    ("labels", "jsonl"): Message(
        "The label of each document: k for the best down to 1, and 0 below the top k. With the "
        "texts of queries and documents, one query per line."
    ),
    ("grades", "qrels"): Message(
        "Mean grades rounded to integers: TREC qrels, for Podium and trec_eval."
    ),
    ("grades", "csv"): Message(
        "The mean grade of each document, from 0 (the worst) on. A table with the texts of "
        "queries, for spreadsheets and Podium."
    ),
    ("grades", "qrels-parquet"): Message(
        "The mean grade of each document, from 0 (the worst) on. A table, for podium evaluate, "
        "train and data tools."
    ),
    ("grades", "prefs"): Message(
        "Preferences that the mean grades imply, as trec_eval takes them."
    ),
    ("grades", "prefs-parquet"): Message("Preferences that the mean grades imply, as a table."),
    ("grades", "jsonl"): Message(
        "The mean grade of each document, from 0 (the worst) on. With the texts of queries and "
        "documents, one query per line."
    ),
    ("preferences", "pairs"): Message(
        "Every verdict that stands: query, two documents, which is better."
    ),
    ("preferences", "pairs-parquet"): Message("Every verdict that stands, as a table."),
    ("totals", "jsonl"): Message(
        "How often each answer was given on every two rankings of a query."
    ),
    ("log", "jsonl"): Message(
        "Every answer, undo, skip and comment, by whom (ID, person or model)."
    ),
    ("log", "csv"): Message(
        "Every answer with its comment and whether it stands, for spreadsheets."
    ),
    ("answers", "jsonl"): Message(
        "What models answered word by word, rubric and tokens: for podium audit."
    ),
}
"""What each file has, in a line."""

EXPORT_CONTENTS: dict[Mode, tuple[str, ...]] = {
    Mode.PAIRS: ("labels", "preferences", "log", "answers"),
    Mode.GRADES: ("grades", "preferences", "log", "answers"),
    Mode.RANKINGS: ("totals", "log"),
}
"""The content that each judging mode can export."""
