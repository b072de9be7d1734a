"""The job in which a model judges: query by query, until all is judged or its budget is spent.

An assessor with the labels of a file judges in the same way; it looks them up.

Each judgment is in the log before the next batch of questions is asked, and every answer that it
rests on is in the table of answers before that. So a run that was stopped, or whose process died,
goes on where it was, and nothing is asked and paid twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TypeAlias, TypeVar

from sqlalchemy import Connection, insert, select, update

from podium.judging import (
    AnswerLog,
    Endpoint,
    EndpointAssessor,
    Grade,
    Pair,
    Session,
    Verdict,
)
from podium.judging.models.budget import BudgetError
from podium.judging.models.rubric import Rubric, parse_rubric
from podium.studio.accounts.identity import record
from podium.studio.jobs.queue import JobContext, JobLostError
from podium.studio.json_types import JsonObject
from podium.studio.judging.judged import JudgedQuery, load_judged_query
from podium.studio.judging.judgment_counts import count_judgment
from podium.studio.judging.modes import GradesMode, PairsMode, QueryLogEntry
from podium.studio.models.answers import StoredAnswers, model_view
from podium.studio.models.assessors import (
    ModelRow,
    StoredSpending,
    endpoint_key,
    file_labels,
    model_row,
)
from podium.studio.models.labels import FileLabels, LabelAssessor
from podium.studio.projects.display import (
    CONTENT_COLUMNS,
    DocumentContent,
    plain_document,
    shown_document,
)
from podium.studio.projects.service import project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import LogEntry, ProjectQuery, QueryCandidate
from podium.studio.store.tokens import new_token

Assessor: TypeAlias = EndpointAssessor | LabelAssessor

_Value = TypeVar("_Value")
_NAMES = 500
"""How many queries a statement names."""
_LOOK_EVERY = 0.5
"""How often a run that waits for a busy endpoint looks whether it was stopped, in seconds."""


def run_model(work: JobContext) -> None:
    """Run a job in which a model judges."""
    model_id = int(work.job.parameters["model"])
    work.end = inf  # it may take hours, within its own budget
    row = reading(work.engine, lambda c: model_row(c, work.job.project_id, model_id))
    project = reading(work.engine, lambda c: project_row(c, work.job.project_id))
    labels = None
    if row.endpoint:
        with _endpoint(work, row) as endpoint:
            rubric = with_guidelines(parse_rubric(row.rubric), project.guidelines)
            run = ModelRun(work, project, row, partial(_asked, row, rubric, endpoint))
            stopped = run.judge_all()
    else:
        labels = file_labels(row.rubric, project)
        known = set(labels.labels)
        labels.count_unknown(reading(work.engine, lambda c: _items_of(c, project.id, known)))
        run = ModelRun(work, project, row, partial(_looked_up, row, labels))
        stopped = run.judge_all()
    result: JsonObject = {
        "queries": run.queries,
        "judgments": run.judgments,
        "unusable": run.unusable,
    }
    if stopped:
        result["stopped"] = stopped
    if labels is not None:
        result["left_out"] = dict(labels.left_out)

    def finish(connection: Connection) -> None:
        record(
            connection, work.job.user_id, project.id, "a model judged",
            model=row.model, job=work.job.id, **result,
        )  # fmt: skip
        work.finish(connection, result)

    in_transaction(work.engine, finish)


def with_guidelines(rubric: Rubric, guidelines: str) -> Rubric:
    """A rubric whose instructions end with the project's guidelines, which people follow too."""
    if not guidelines.strip():
        return rubric
    added = f"Follow these guidelines, which people were given too:\n{guidelines.strip()}"
    return replace(rubric, instructions=f"{rubric.instructions.strip()}\n\n{added}")


def _asked(
    row: ModelRow, rubric: Rubric, endpoint: Endpoint,
    query: ProjectQueryRow, texts: Mapping[str, str], log: AnswerLog,
) -> EndpointAssessor:  # fmt: skip
    return EndpointAssessor(
        endpoint, query=query.text, texts=texts, rubric=rubric, log=log, query_id=query.name,
        description=query.description, repeats=row.repeats, name=str(row.user_id),
    )  # fmt: skip


def _looked_up(
    row: ModelRow, labels: FileLabels,
    query: ProjectQueryRow, texts: Mapping[str, str], log: AnswerLog,
) -> LabelAssessor:  # fmt: skip
    return LabelAssessor(
        labels, query_id=query.name, texts=texts, log=log, model=row.model, name=str(row.user_id)
    )


def _items_of(
    connection: Connection, project_id: int, queries: Collection[str]
) -> dict[str, set[str]]:
    """The documents of those of some queries that the project has."""
    items: dict[str, set[str]] = {}
    for names in _batches(sorted(queries), _NAMES):
        statement = (
            select(ProjectQuery.name, QueryCandidate.item)
            .join(QueryCandidate, QueryCandidate.query_id == ProjectQuery.id)
            .where(
                ProjectQuery.project_id == project_id,
                ProjectQuery.withdrawn.is_(False),
                ProjectQuery.name.in_(names),
            )
        )
        for row in connection.execute(statement):
            items.setdefault(row.name, set()).add(row.item)
    return items


@contextmanager
def _endpoint(work: JobContext, row: ModelRow) -> Iterator[Endpoint]:
    """The model's endpoint; what other runs spent counts."""
    with Endpoint(
        f"{row.endpoint}#{row.model}",
        key=endpoint_key(row.endpoint, work.settings.models),
        connections=row.connections,
        sleep=lambda seconds: _sleep(work, seconds),
    ) as endpoint:
        endpoint.spending = StoredSpending(work, row)
        yield endpoint


def _sleep(work: JobContext, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if work.lost:
            raise JobLostError
        time.sleep(min(left, _LOOK_EVERY))


@dataclass
class ModelRun:
    """A model at work.

    Attributes:
        work: The job.
        project: The project's row.
        row: The model's row.
        assessor: Makes it an assessor of a query, from the texts and earlier answers.
        queries: In how many queries it has judged something.
        judgments: How many judgments it made.
        unusable: How often no answer could be used.
    """

    work: JobContext
    project: ProjectRow
    row: ModelRow
    assessor: Callable[[ProjectQueryRow, Mapping[str, str], AnswerLog], Assessor]
    queries: int = 0
    judgments: int = 0
    unusable: int = 0

    def judge_all(self) -> str:
        """Judge every query; returns why it stopped early, if it did."""
        ids = reading(self.work.engine, self._query_ids)
        with ThreadPoolExecutor(self.row.connections) as pool:
            for number, query_id in enumerate(ids, start=1):
                before = self.judgments
                try:
                    self._judge_query(pool, query_id)
                except BudgetError as error:
                    return error.problem
                finally:
                    self.queries += self.judgments > before
                self.work.progress(number / len(ids))
        return ""

    def _query_ids(self, connection: Connection) -> list[int]:
        statement = select(ProjectQuery.id).where(
            ProjectQuery.project_id == self.project.id, ProjectQuery.withdrawn.is_(False)
        )
        if self.row.scope == "judged":
            statement = statement.where(ProjectQuery.judgments > 0)
        return list(connection.scalars(statement.order_by(ProjectQuery.id)))

    def _judge_query(self, pool: ThreadPoolExecutor, query_id: int) -> None:
        judged, texts = reading(self.work.engine, lambda c: self._load(c, query_id))
        if judged is None:
            return
        view = model_view(judged, self.row.user_id)
        at = {item: position for position, item in enumerate(judged.items)}
        log = StoredAnswers(self.work, self.row.id, query_id, at)
        assessor = self.assessor(judged.query, texts, log)
        mode = view.state.mode
        if isinstance(mode, GradesMode):
            self._grade(pool, assessor, self._items_to_grade(judged, view), query_id, at)
        elif isinstance(mode, PairsMode):
            pairs = self._pairs_of_people(judged, view)
            self._compare(pool, assessor, mode.session, pairs, query_id, at)
            if self.row.scope == "all":
                discarded = {
                    frozenset(
                        judged.items[position] for position in (entry.left or 0, entry.right or 0)
                    )
                    for entry in _judgments(view)
                    if not view.state.stands(entry.position)
                }
                self._finish(pool, assessor, mode.session, discarded, query_id, at)

    def _load(
        self, connection: Connection, query_id: int
    ) -> tuple[JudgedQuery | None, dict[str, str]]:
        statement = select(ProjectQuery.__table__).where(ProjectQuery.id == query_id)
        query = fetch_one(connection, statement, ProjectQueryRow)
        if query is None or query.withdrawn:
            return None, {}
        rows = connection.execute(
            select(*CONTENT_COLUMNS).where(QueryCandidate.query_id == query_id)
        )
        display = self.project.display
        texts = {
            row.item: plain_document(shown_document(display, DocumentContent(*row))) for row in rows
        }
        return load_judged_query(connection, self.project, query), texts

    def _items_to_grade(self, judged: JudgedQuery, view: JudgedQuery) -> list[str]:
        people = {entry.left for entry in _votes(judged, Kind.GRADE)}
        mine = {entry.left for entry in _judgments(view)}
        return [
            item
            for position, item in enumerate(judged.items)
            if position not in mine
            and position not in judged.state.withdrawn_documents
            and (self.row.scope == "all" or position in people)
        ]

    def _pairs_of_people(self, judged: JudgedQuery, view: JudgedQuery) -> list[Pair[str]]:
        """The pairs that people judged and the model has not, in the order of the log."""
        mine = {frozenset((entry.left, entry.right)) for entry in _judgments(view)}
        pairs: dict[frozenset[int | None], Pair[str]] = {}
        for entry in _votes(judged, Kind.VERDICT):
            sides = frozenset((entry.left, entry.right))
            if sides not in mine and sides.isdisjoint(judged.state.withdrawn_documents):
                pair = Pair(judged.items[entry.left or 0], judged.items[entry.right or 0])
                pairs.setdefault(sides, pair)
        return list(pairs.values())

    def _grade(
        self,
        pool: ThreadPoolExecutor,
        assessor: Assessor,
        items: list[str],
        query_id: int,
        at: dict[str, int],
    ) -> None:
        for batch in _batches(items, self.row.connections):
            for grade in pool.map(assessor.grade, batch):
                if grade is None:
                    self.unusable += 1
                else:
                    self._append(query_id, assessor, at, grade)
            self.work.progress(self.work.share)

    def _compare(
        self,
        pool: ThreadPoolExecutor,
        assessor: Assessor,
        session: Session,
        pairs: list[Pair[str]],
        query_id: int,
        at: dict[str, int],
    ) -> list[Pair[str]]:
        """Judge pairs; returns those on which no answer could be used."""
        unusable = []
        for batch in _batches(pairs, self.row.connections):
            for pair, verdict in zip(batch, pool.map(assessor.verdict, batch), strict=True):
                if verdict is None:
                    self.unusable += 1
                    unusable.append(pair)
                else:
                    self._append(query_id, assessor, at, verdict)
                    session.add(verdict)
            self.work.progress(self.work.share)
        return unusable

    def _finish(
        self,
        pool: ThreadPoolExecutor,
        assessor: Assessor,
        session: Session,
        passed: set[frozenset[str]],
        query_id: int,
        at: dict[str, int],
    ) -> None:
        """Judge what the selection algorithm asks for, until the top k is in order.

        What a manager discarded is not judged again, for the answer would be the same.
        """
        while True:
            open_pairs = [
                pair for pair in session.open_pairs(assessor.name) if frozenset(pair) not in passed
            ]
            if not open_pairs:
                return
            batch = open_pairs[: self.row.connections]
            unusable = self._compare(pool, assessor, session, batch, query_id, at)
            passed |= {frozenset(pair) for pair in unusable}

    def _append(
        self,
        query_id: int,
        assessor: Assessor,
        at: dict[str, int],
        judgment: Verdict | Grade,
    ) -> None:
        """Append a judgment to the query's log. People's state of the query does not change."""
        if isinstance(judgment, Grade):
            items: tuple[str, ...] = (judgment.item,)
            kind, value = Kind.GRADE, judgment.grade
        else:
            items = (judgment.left, judgment.right)
            kind, value = Kind.VERDICT, int(judgment.outcome)
        reason = next(
            (each.reason for each in assessor.log.answers if each.items == items and each.reason),
            None,
        )

        def work(connection: Connection) -> None:
            self.work.check(connection)
            statement = select(ProjectQuery.__table__).where(ProjectQuery.id == query_id)
            query = fetch_one(connection, statement.with_for_update(), ProjectQueryRow)
            if query is None:
                raise JobLostError
            now = time.time()
            connection.execute(
                insert(LogEntry).values(
                    query_id=query_id, position=query.entries, user_id=self.row.user_id,
                    kind=kind.value, left=at[items[0]],
                    right=at[items[1]] if len(items) > 1 else None, value=value, undoes=None,
                    purpose=Purpose.MODEL.value, counts=True, late=False, token=new_token(),
                    part=0, reason=reason, at=now, seconds=judgment.seconds, manager_id=None,
                )
            )  # fmt: skip
            connection.execute(
                update(ProjectQuery)
                .where(ProjectQuery.id == query_id)
                .values(entries=query.entries + 1)
            )
            count_judgment(
                connection, query, self.row.user_id,
                judgments=1, seconds=judgment.seconds, last_at=now,
            )  # fmt: skip

        in_transaction(self.work.engine, work)
        self.judgments += 1


def _judgments(view: JudgedQuery) -> list[QueryLogEntry]:
    """What the model judged, whether it stands or was discarded."""
    return [entry for entry in view.log if entry.kind in (Kind.VERDICT, Kind.GRADE)]


def _votes(judged: JudgedQuery, kind: Kind) -> Iterator[QueryLogEntry]:
    """What people said."""
    return (
        entry
        for entry in judged.standing
        if entry.kind is kind and entry.purpose is Purpose.MAIN and entry.counts
    )


def _batches(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
