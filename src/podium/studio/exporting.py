"""What a project came to, query by query, in the formats of `podium.data`."""

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
    Preferences,
    write_jsonl,
    write_pairs,
    write_prefs,
    write_qrels,
)
from podium.data.formats.parquet import parquet_writer, table_schema, write_row_groups
from podium.data.json_lines import json_line
from podium.data.query_rows import QueryRows
from podium.judging import log_preferences, side_by_side_totals, standing
from podium.judging.agreement import inferred_verdicts
from podium.judging.entries import entry_to_json
from podium.studio.boards import Board
from podium.studio.database import reading
from podium.studio.kinds import Kind, Mode
from podium.studio.panels import GradesPanel, PairsPanel, Said
from podium.studio.shelf import log_of, new_board
from podium.studio.tables import Candidate as CandidateRow
from podium.studio.tables import Query

_PAGE = 50
"""How many queries are in memory at once."""


@dataclass(frozen=True)
class Judged:
    """A query with all that was said of it.

    Attributes:
        query: The query's row.
        items: Its documents by id.
        log: What was said, with the row's number of the person.
        board: What it came to.
    """

    query: Any
    items: list[str]
    log: list[Said]
    board: Board

    @property
    def is_judged(self) -> bool:
        """Whether any judgment stands, checks left out.

        If all were skipped or taken back, the top k is the prior ranking's, and nobody's judgment.
        """
        return bool(standing(self.board.panel.log))

    def labels(self, *, ties: bool) -> Judgments:
        """The top k as labels, or the mean grades of the documents that have any."""
        panel = self.board.panel
        items = self.items
        if isinstance(panel, GradesPanel):
            graded = panel.session.grades()
            means = zip(items, panel.session.labels(), strict=True)
            pairs = [(item, mean) for item, mean in means if graded[item]]
            items, values = [item for item, _ in pairs], np.array([mean for _, mean in pairs])
        else:
            assert isinstance(panel, PairsPanel)
            values = panel.session.result().labels(items, ties=ties)
        return Judgments.from_columns([self.query.name] * len(items), items, values)

    def preferences(self) -> Preferences | None:
        """The verdicts that stand, or those that grades imply; None if there is none."""
        log = self.board.panel.log
        if isinstance(self.board.panel, GradesPanel):
            log = tuple(inferred_verdicts(log))
        if not any(said.kind in (Kind.VERDICT, Kind.GRADE) for said in self.log) or not log:
            return None
        try:
            return log_preferences({self.query.name: log})
        except ValueError:  # all were taken back
            return None


def judged_queries(engine: Engine, project: Any, *, only_done: bool) -> Iterator[Judged]:
    """The queries of a project that anything was said of, a few at a time."""
    after = 0
    while True:
        page = reading(engine, lambda c, after=after: _page(c, project, after, only_done))  # type: ignore[misc]
        if not page:
            return
        yield from page
        after = page[-1].query.id


def _page(connection: Connection, project: Any, after: int, only_done: bool) -> list[Judged]:
    statement = (
        select(Query.__table__)
        .where(Query.project_id == project.id, Query.id > after, Query.entries > 0)
        .order_by(Query.id)
        .limit(_PAGE)
    )
    if only_done:
        statement = statement.where(Query.done)
    return [judged(connection, project, row) for row in connection.execute(statement).all()]


def judged(connection: Connection, project: Any, query: Any) -> Judged:
    """A query with all that was said of it."""
    board = new_board(connection, project, query)
    log = list(log_of(connection, query.id))
    for said in log:
        board.take(said)
    items = [document.item for document in board.documents]
    return Judged(query, items, log, board)


@dataclass(frozen=True)
class Way:
    """A way to write something.

    Attributes:
        ending: Of the file's name.
        write: Writes what it is given a part at a time, and returns how many rows that were.
    """

    ending: str
    write: Callable[[IO[bytes], Iterable[Any]], int]


def _texts(write: Callable[[Any, Any], None]) -> Callable[[IO[bytes], Iterable[QueryRows]], int]:
    def write_all(stream: IO[bytes], parts: Iterable[QueryRows]) -> int:
        count = 0
        for part in parts:
            write(part, stream)
            count += part.rows
        return count

    return write_all


def _parquet(stream: IO[bytes], parts: Iterable[QueryRows]) -> int:
    count = 0
    writer: Any = None
    for part in parts:
        schema = table_schema(part)
        writer = writer or parquet_writer(pa.PythonFile(stream, mode="w"), schema)
        write_row_groups(writer, part, schema)
        count += part.rows
    if writer is not None:
        writer.close()
    return count


def _lines(stream: IO[bytes], parts: Iterable[dict[str, Any]]) -> int:
    count = 0
    for part in parts:
        stream.write(json_line(part))
        count += 1
    return count


def _candidates(stream: IO[bytes], parts: Iterable[CandidateList]) -> int:
    count = 0
    for part in parts:
        write_jsonl([part], stream)
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


_LEVELS = _texts(write_prefs)
_LABEL_WAYS = {
    "qrels": Way(".qrels", _texts(write_qrels)),
    "qrels-parquet": Way(".parquet", _parquet),
    "prefs": Way(".prefs", lambda s, parts: _LEVELS(s, map(as_levels, parts))),
    "prefs-parquet": Way(".parquet", lambda s, parts: _parquet(s, map(as_levels, parts))),
    "jsonl": Way(".jsonl", _candidates),
}
WAYS: dict[str, dict[str, Way]] = {
    "labels": _LABEL_WAYS,
    "grades": _LABEL_WAYS,
    "preferences": {
        "pairs": Way(".pairs", _texts(write_pairs)),
        "pairs-parquet": Way(".parquet", _parquet),
    },
    "totals": {"jsonl": Way(".jsonl", _lines)},
    "log": {"jsonl": Way(".jsonl", _lines)},
}
"""To each content the formats it can be written in."""

FITS: dict[Mode, tuple[str, ...]] = {
    Mode.PAIRS: ("labels", "preferences", "log"),
    Mode.GRADES: ("grades", "preferences", "log"),
    Mode.RANKINGS: ("totals", "log"),
}
"""What can be exported of a project of each mode."""


def parts_of(
    engine: Engine, queries: Iterable[Judged], content: str, form: str, *, ties: bool
) -> Iterator[Any]:
    """What an export writes, query by query: the whole log, or queries with judgments alone."""
    for each in queries:
        if content == "log":
            yield from log_lines(each)
        elif not each.is_judged:
            continue
        elif content == "totals":
            yield from _totals(each)
        elif content == "preferences":
            found = each.preferences()
            if found is not None:
                yield found
        elif form == "jsonl":
            yield reading(engine, lambda c, each=each: _with_texts(c, each, ties))  # type: ignore[misc]
        else:
            yield each.labels(ties=ties)


def log_lines(each: Judged) -> Iterator[dict[str, Any]]:
    """The whole log of a query: what counts as `podium.judging` writes it, and the rest too."""
    for said in each.log:
        line: dict[str, Any] = {"query_id": each.query.name}
        if said.kind in (Kind.UNDO, Kind.SKIP):
            line |= {"kind": said.kind.value, "assessor": str(said.user), "at": said.at}
            if said.kind is Kind.UNDO:
                line["entry"] = said.undoes
        else:
            line |= entry_to_json(each.board.panel.entry(said))
        line |= {"purpose": said.purpose.value, "counts": said.counts, "seconds": said.seconds}
        yield line


def _totals(each: Judged) -> Iterator[dict[str, Any]]:
    names = ("first_much_better", "first_better", "same", "second_better", "second_much_better")
    for (first, second), counts in side_by_side_totals(each.board.panel.log).items():
        yield {
            "query_id": each.query.name,
            "first": first,
            "second": second,
            **dict(zip(names, counts, strict=True)),
        }


def _with_texts(connection: Connection, each: Judged, ties: bool) -> CandidateList:
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
