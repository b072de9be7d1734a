"""A model's answers in the database, as `podium.judging.AnswerLog` keeps them, and their replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlalchemy import Connection, Engine, select

from podium.judging import AnswerLog
from podium.judging.models.answer_log import ModelAnswer, answer_from_json, answer_to_json
from podium.studio.jobs.queue import JobContext
from podium.studio.judging.judged import JudgedQuery
from podium.studio.judging.modes import NO_ITEM, QueryLogEntry
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.dialects import INSERTS
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.tables import ModelAnswerRecord

_PAGE = 2000


class StoredAnswers(AnswerLog):
    """The answers of a model on one query. An answer is in the database before it counts.

    Args:
        work: The job in which the model judges.
        assessor_id: The model assessor.
        query_id: The query's number.
        positions: The position of each document.
    """

    def __init__(
        self, work: JobContext, assessor_id: int, query_id: int, positions: Mapping[str, int]
    ) -> None:
        super().__init__()
        self._engine = work.engine
        self._assessor_id = assessor_id
        self._query_id = query_id
        self._positions = positions
        self._remember(answers_on_query(self._engine, query_id, assessor_id))

    def _keep(self, answer: ModelAnswer) -> None:
        sides = [self._positions[item] for item in answer.items]
        values = {
            "assessor_id": self._assessor_id,
            "query_id": self._query_id,
            "question": answer.question,
            "left": sides[0],
            "right": sides[1] if len(sides) > 1 else NO_ITEM,
            "usable": bool(answer.label),
            "requests": answer.requests,
            "prompt_tokens": answer.prompt_tokens,
            "answer_tokens": answer.answer_tokens,
            "content": answer_to_json(answer),
            "at": answer.at,
        }

        def insert(connection: Connection) -> None:
            # A run that was stopped may end its last request while the next run asks the same.
            statement = INSERTS[connection.dialect.name](ModelAnswerRecord).values(values)
            connection.execute(statement.on_conflict_do_nothing())

        in_transaction(self._engine, insert)


def answers_on_query(
    engine: Engine, query_id: int, assessor_id: int | None = None
) -> list[ModelAnswer]:
    """The answers of a model, or of all, on one query, oldest first."""
    statement = select(ModelAnswerRecord.content).where(ModelAnswerRecord.query_id == query_id)
    if assessor_id is not None:
        statement = statement.where(ModelAnswerRecord.assessor_id == assessor_id)
    statement = statement.order_by(ModelAnswerRecord.id)
    contents = reading(engine, lambda c: c.scalars(statement).all())
    return [answer_from_json(content) for content in contents]


def all_answers(engine: Engine, assessor_id: int) -> Iterator[ModelAnswer]:
    """The answers of a model on all queries, a page at a time."""
    after = 0
    while True:
        statement = (
            select(ModelAnswerRecord.id, ModelAnswerRecord.content)
            .where(ModelAnswerRecord.assessor_id == assessor_id, ModelAnswerRecord.id > after)
            .order_by(ModelAnswerRecord.id)
            .limit(_PAGE)
        )
        rows = reading(engine, lambda c, statement=statement: c.execute(statement).all())  # type: ignore[misc]
        if not rows:
            return
        for row in rows:
            yield answer_from_json(row.content)
        after = rows[-1].id


def model_view(judged: JudgedQuery, user_id: int) -> JudgedQuery:
    """A query as if a model alone had judged it.

    What was withdrawn is withdrawn for the model too. There is no overlap: a model judges once.

    Args:
        judged: The query with its whole log.
        user_id: The account of the model.
    """
    log: list[QueryLogEntry] = []
    position_of: dict[int, int] = {}
    for entry in judged.log:
        is_of_model = entry.user == user_id and entry.purpose is Purpose.MODEL
        is_withdrawal = entry.kind is Kind.WITHDRAW or (
            entry.undoes is not None and judged.log[entry.undoes].kind is Kind.WITHDRAW
        )
        if is_of_model or is_withdrawal:
            undoes = None if entry.undoes is None else position_of[entry.undoes]
            position_of[entry.position] = len(log)
            log.append(entry._replace(position=len(log), undoes=undoes, purpose=Purpose.MAIN))
    return replace(judged, project=judged.project._replace(overlap_share=0.0), log=log)
