"""Writes a project's results, query by query, in the formats of `podium.data`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, Engine, select

from podium.data import (
    Candidate,
    CandidateList,
    Judgments,
    PreferenceLevels,
    write_jsonl,
    write_pairs,
    write_prefs,
    write_qrels,
)
from podium.data.formats.parquet import parquet_writer, table_schema, write_row_groups
from podium.data.json_lines import json_line
from podium.data.query_rows import QueryRows
from podium.judging import side_by_side_totals
from podium.judging.entries import entry_to_json
from podium.studio.json_types import JsonObject
from podium.studio.judging.judged import JudgedQuery
from podium.studio.store.database import reading
from podium.studio.store.enums import Kind, Mode
from podium.studio.store.tables import Candidate as CandidateRow


@dataclass(frozen=True)
class ExportFormat:
    """An export file format.

    Attributes:
        suffix: The file name suffix.
        write: Writes records to a stream, and returns the number of rows.
    """

    suffix: str
    write: Callable[[IO[bytes], Iterable[Any]], int]


def _text_writer(
    write: Callable[[Any, Any], None],
) -> Callable[[IO[bytes], Iterable[QueryRows]], int]:
    def write_all(stream: IO[bytes], records: Iterable[QueryRows]) -> int:
        count = 0
        for record in records:
            write(record, stream)
            count += record.rows
        return count

    return write_all


def _write_parquet(stream: IO[bytes], records: Iterable[QueryRows]) -> int:
    count = 0
    writer: Any = None
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


_LEVELS = _text_writer(write_prefs)
_LABEL_FORMATS = {
    "qrels": ExportFormat(".qrels", _text_writer(write_qrels)),
    "qrels-parquet": ExportFormat(".parquet", _write_parquet),
    "prefs": ExportFormat(".prefs", lambda s, records: _LEVELS(s, map(as_levels, records))),
    "prefs-parquet": ExportFormat(
        ".parquet", lambda s, records: _write_parquet(s, map(as_levels, records))
    ),
    "jsonl": ExportFormat(".jsonl", _write_candidates),
}
EXPORT_FORMATS: dict[str, dict[str, ExportFormat]] = {
    "labels": _LABEL_FORMATS,
    "grades": _LABEL_FORMATS,
    "preferences": {
        "pairs": ExportFormat(".pairs", _text_writer(write_pairs)),
        "pairs-parquet": ExportFormat(".parquet", _write_parquet),
    },
    "totals": {"jsonl": ExportFormat(".jsonl", _write_lines)},
    "log": {"jsonl": ExportFormat(".jsonl", _write_lines)},
}
"""The formats of each kind of content."""

EXPORT_CONTENTS: dict[Mode, tuple[str, ...]] = {
    Mode.PAIRS: ("labels", "preferences", "log"),
    Mode.GRADES: ("grades", "preferences", "log"),
    Mode.RANKINGS: ("totals", "log"),
}
"""The content that each judging mode can export."""


def export_records(
    engine: Engine, queries: Iterable[JudgedQuery], content: str, form: str, *, ties: bool
) -> Iterator[Any]:
    """The records of an export, query by query; only the log includes queries without judgments."""
    for each in queries:
        if content == "log":
            yield from log_lines(each)
        elif not each.is_judged:
            continue
        elif content == "totals":
            yield from _totals(each)
        elif content == "preferences":
            preferences = each.preferences()
            if preferences is not None:
                yield preferences
        elif form == "jsonl":
            yield reading(engine, lambda c, each=each: _with_texts(c, each, ties))  # type: ignore[misc]
        else:
            yield each.labels(ties=ties)


def log_lines(each: JudgedQuery) -> Iterator[JsonObject]:
    """The whole log of a query: what counts as `podium.judging` writes it, and the rest too."""
    for entry in each.log:
        line: JsonObject = {"query_id": each.query.name}
        if entry.kind in (Kind.UNDO, Kind.SKIP):
            line |= {"kind": entry.kind.value, "assessor": str(entry.user), "at": entry.at}
            if entry.kind is Kind.UNDO:
                line["entry"] = entry.undoes
        else:
            line |= entry_to_json(each.state.mode.entry(entry))
        line |= {"purpose": entry.purpose.value, "counts": entry.counts, "seconds": entry.seconds}
        yield line


def _totals(each: JudgedQuery) -> Iterator[JsonObject]:
    names = ("first_much_better", "first_better", "same", "second_better", "second_much_better")
    for (first, second), counts in side_by_side_totals(each.state.mode.log).items():
        yield {
            "query_id": each.query.name,
            "first": first,
            "second": second,
            **dict(zip(names, counts, strict=True)),
        }


def _with_texts(connection: Connection, each: JudgedQuery, ties: bool) -> CandidateList:
    labels = each.labels(ties=ties)
    label_of = dict(zip(labels.document_ids.to_pylist(), labels.labels.tolist(), strict=True))
    rows = connection.execute(
        select(CandidateRow.__table__)
        .where(CandidateRow.query_id == each.query.id)
        .order_by(CandidateRow.place)
    ).all()
    candidates = tuple(
        Candidate(
            row.item, title=row.title, text=row.text, html=row.html, url=row.url,
            score=row.score, label=label_of.get(row.item),
        )
        for row in rows
    )  # fmt: skip
    return CandidateList(each.query.name, each.query.text, candidates, each.query.description)
