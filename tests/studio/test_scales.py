"""A project's own grades, and its own questions beside the verdict."""

from __future__ import annotations

import csv
import io
import json

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from podium.studio.errors import RefusedError
from podium.studio.judging.judged import judged_queries
from podium.studio.judging.scales import checked_replies
from podium.studio.judging.service import AnswerChange
from podium.studio.projects.changes import change_project
from podium.studio.projects.service import ProjectSettings
from podium.studio.reporting.log_rows import log_rows
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import LogEntry
from podium.studio.store.tokens import new_token
from podium.studio.transfer.writers import EXPORT_FORMATS
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of

TEN = [{"name": f"level {n}", "colour": "red" if n < 5 else "green"} for n in range(10)]
QUESTIONS = [
    {"name": "why", "text": "Why?", "options": ["price", "brand"], "required": True},
    {"name": "note", "text": "Anything odd?"},
]


def change(engine, project, **changes):
    return in_transaction(engine, lambda c: change_project(c, 1, project, changes))


def exported(engine, project, content, form):
    stream = io.BytesIO()
    row = row_of(engine, project)
    EXPORT_FORMATS[content][form].write(
        stream, engine, judged_queries(engine, row, only_done=False), False
    )
    return stream.getvalue().decode()


def test_ten_grades_are_integers_in_exports(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, mode="grades", scale=TEN)
    for name in ("level 9", "level 0", "level 6"):
        given = service.next(project, ann, "t")
        service.answer(project, ann, given.token, name, seconds=1, tab="t", more=False)
    labels = {line.split()[3] for line in exported(engine, project, "grades", "qrels").splitlines()}
    assert labels == {"9", "0", "6"}
    rows = reading(engine, lambda c: log_rows(c, row_of(engine, project), limit=9))
    assert {row.relation for row in rows} == {"level 9", "level 0", "level 6"}


def test_answers_are_those_of_the_scale(engine, service):
    (ann,) = make_people(engine, 1)
    scale = [{"name": "no"}, {"name": "yes"}]
    project = make_project(engine, [ann], queries=1, items=3, mode="grades", scale=scale)
    given = service.next(project, ann, "t")
    with pytest.raises(RefusedError, match="'perfect' is not a valid answer"):
        service.answer(project, ann, given.token, "perfect", seconds=1, tab="t")
    service.answer(project, ann, given.token, "yes", seconds=1, tab="t")
    assert reading(engine, lambda c: c.scalars(select(LogEntry.value)).all()) == [1]
    with pytest.raises(RefusedError, match="number of grades"):
        change(engine, project, scale=[*scale, {"name": "perhaps"}])
    change(engine, project, scale=[{"name": "Off topic"}, {"name": "On topic"}])
    rows = reading(engine, lambda c: log_rows(c, row_of(engine, project), limit=9))
    assert [row.relation for row in rows] == ["On topic"]


@pytest.mark.parametrize(
    ("scale", "problem"),
    [
        ([{"name": "one"}], "2 to 10 grades"),
        ([*TEN, {"name": "eleven"}], "2 to 10 grades"),
        ([{"name": "a"}, {"name": "A"}], "missing or repeated"),
        ([{"name": "a"}, {"name": " "}], "missing or repeated"),
        ([{"name": "a"}, {"name": "Skip"}], "cannot be called 'skip'"),
        ([{"name": "a"}, {"name": "b", "colour": "url(x)"}], "colour"),
    ],
)
def test_what_is_no_scale_is_refused(scale, problem):
    with pytest.raises(ValidationError, match=problem):
        ProjectSettings(name="x", scale=scale)


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ({"name": "Why", "text": "?"}, "pattern"),
        ({"name": "why", "text": " "}, "no text"),
        ({"name": "why", "text": "?", "options": ["a"]}, "no choice"),
        ({"name": "why", "text": "?", "options": ["a", "a"]}, "empty or repeated"),
    ],
)
def test_what_is_no_question_is_refused(question, problem):
    with pytest.raises(ValidationError, match=problem):
        ProjectSettings(name="x", questions=[question])
    with pytest.raises(ValidationError, match="same name"):
        ProjectSettings(name="x", questions=[QUESTIONS[1], QUESTIONS[1]])


def test_replies_are_checked_against_the_questions():
    asked = [
        ProjectSettings(name="x", questions=[each]).questions[0].model_dump() for each in QUESTIONS
    ]
    assert checked_replies(asked, {"why": "price", "gone": "x"}, skipped=False) == {"why": "price"}
    assert checked_replies(asked, {}, skipped=True) is None
    with pytest.raises(RefusedError, match="“Why\\?” is missing"):
        checked_replies(asked, {"note": "x"}, skipped=False)
    with pytest.raises(RefusedError, match="“cheap” is not a valid reply"):
        checked_replies(asked, {"why": "cheap"}, skipped=False)


def test_replies_are_stored_shown_exported_and_survive_a_change(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, questions=QUESTIONS)
    given = service.next(project, ann, "t")
    with pytest.raises(RefusedError, match="is missing"):
        service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    replies = {"why": "brand", "note": "=1+1"}
    service.answer(
        project, ann, given.token, "bad-both", seconds=1, tab="t", replies=replies, more=False
    )
    stored = reading(
        engine, lambda c: c.scalars(select(LogEntry.replies).order_by(LogEntry.id)).all()
    )
    assert stored == [replies, None]  # with the first of two entries
    rows = reading(engine, lambda c: log_rows(c, row_of(engine, project), limit=9))
    assert rows[-1].replies == {"Why?": "brand", "Anything odd?": "=1+1"}
    first = json.loads(exported(engine, project, "log", "jsonl").splitlines()[0])
    assert first["replies"] == replies
    table = list(csv.DictReader(io.StringIO(exported(engine, project, "log", "csv"))))
    assert json.loads(table[0]["replies"]) == replies
    wish = AnswerChange(new_token(), "left", "on reflection")
    service.change(project, ann, given.token, wish)
    last = reading(
        engine,
        lambda c: c.execute(
            select(LogEntry.kind, LogEntry.replies).order_by(LogEntry.id.desc())
        ).first(),
    )
    assert tuple(last) == ("verdict", replies)
