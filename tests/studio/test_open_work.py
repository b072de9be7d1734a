"""What becomes free again reaches those who had found nothing, and waits have their lengths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from podium.studio.judging.next_task import NoTask, no_task_reason
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.changes import delete_project
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import JudgmentCount, ProjectQuery
from podium.studio.store.tokens import new_token
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges, pause, read_log

DATABASES = BOTH


def skip_all(service, row, user, tab):
    """Skip whatever is asked; returns why nothing is left."""
    given = service.next(row, user, tab)
    while isinstance(given, LeasedTask):
        _, given = service.answer(row, user, given.token, "skip", seconds=1, tab=tab)
    return given


def query_row(engine):
    return reading(engine, lambda c: c.execute(select(ProjectQuery.__table__)).one())


@pytest.fixture
def at_work(engine, clock):
    """Ann has a pair of a query; Bob has skipped all others, which are still free to Ann."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=12, k=4)
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a")
    assert skip_all(service, row, bob, "b").why == "wait"
    assert query_row(engine).available
    return SimpleNamespace(service=service, row=row, ann=ann, bob=bob, held=held)


def test_a_task_that_was_given_up_reaches_whoever_had_found_nothing(at_work):
    service, row, held = at_work.service, at_work.row, at_work.held
    assert service.release(row, at_work.ann, held.token)
    found = service.next(row, at_work.bob, "b")
    assert isinstance(found, LeasedTask)
    assert found.task.pair == held.task.pair


def test_so_it_does_after_a_project_with_later_changes_was_deleted(engine, at_work):
    service, row, held = at_work.service, at_work.row, at_work.held
    service.release(row, at_work.ann, held.token)
    assert service.next(row, at_work.ann, "a").task.pair == held.task.pair
    other = row_of(engine, make_project(engine, [at_work.ann], queries=3))
    assert (
        service.next(row, at_work.bob, "b").why == "wait"
    )  # the last change is the other project's
    in_transaction(engine, lambda c: delete_project(c, at_work.ann, other, other.name))
    assert service.release(row, at_work.ann, held.token)
    found = service.next(row, at_work.bob, "b")
    assert isinstance(found, LeasedTask)
    assert found.task.pair == held.task.pair


@pytest.mark.parametrize("more", [False, True])
def test_a_task_that_was_skipped_reaches_whoever_had_found_nothing(at_work, more):
    service, row, held = at_work.service, at_work.row, at_work.held
    service.answer(row, at_work.ann, held.token, "skip", seconds=1, tab="a", more=more)
    found = service.next(row, at_work.bob, "b")
    assert isinstance(found, LeasedTask)
    assert found.task.pair == held.task.pair


def test_what_was_taken_back_while_paused_reaches_others_after_that(engine, at_work):
    service, row, held = at_work.service, at_work.row, at_work.held
    service.answer(row, at_work.ann, held.token, "left", seconds=1, tab="a", more=False)
    skip_all(service, row, at_work.bob, "b")
    pause(engine)
    paused = row_of(engine, row.id)
    assert service.undo(paused, at_work.ann, new_token(), "a") == NoTask("paused")
    # The verdict, the skips of Bob, and the undo: what is written down is what there is.
    now = query_row(engine)
    assert (now.entries, now.judgments, now.done) == (len(read_log(engine, now.id)), 0, False)
    assert now.available
    pause(engine, False)
    found = service.next(row, at_work.bob, "b")
    assert isinstance(found, LeasedTask)
    assert found.task.pair == held.task.pair


def test_what_is_skipped_counts_neither_as_a_judgment_nor_as_time(engine, service, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=4)
    given = service.next(project, ann, "t")
    clock.now += 5
    _, given = service.answer(project, ann, given.token, "skip", seconds=4, tab="t")
    tally = select(JudgmentCount.judgments, JudgmentCount.seconds, JudgmentCount.last_at)
    assert tuple(reading(engine, lambda c: c.execute(tally).one())) == (0, 0.0, clock.now)
    assert [row.seconds for row in read_log(engine, given.query.id)] == [4]
    clock.now += 5
    service.answer(project, ann, given.token, "left", seconds=3, tab="t", more=False)
    assert tuple(reading(engine, lambda c: c.execute(tally).one())) == (1, 3.0, clock.now)


def test_a_pair_for_two_is_held_by_two_and_no_more(engine, clock):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(
        engine, [ann, bob, cat], queries=1, items=2, k=1, overlap_share=1, overlap_assessors=2
    )
    service, row = Judges(engine, clock), row_of(engine, project)
    first, second = service.next(row, ann, "a"), service.next(row, bob, "b")
    assert first.task.pair == second.task.pair
    assert service.next(row, cat, "c") == NoTask("wait", 5.0)


def test_whoever_skipped_all_waits_for_others_who_are_not_at_it(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    given = service.next(project, ann, "a")
    _, after = service.answer(project, ann, given.token, "skip", seconds=1, tab="a")
    assert after == NoTask("wait", 15.0)


@pytest.mark.parametrize(
    ("unseen", "done", "mine", "expiry", "expected"),
    [
        (True, True, True, 1.0, NoTask("wait", 0.5)),
        (False, True, True, 1.0, NoTask("done")),
        (False, False, True, 1.0, NoTask("yours-done")),
        (False, False, False, 102.0, NoTask("wait", 2.0)),
        (False, False, False, 1.0, NoTask("wait", 0.5)),
        (False, False, False, 999.0, NoTask("wait", 5.0)),
        (False, False, False, None, NoTask("wait", 15.0)),
    ],
)
def test_why_there_is_nothing(unseen, done, mine, expiry, expected):
    work: Any = SimpleNamespace(
        has_unseen=unseen, is_done=done, mine_is_done=mine, first_lease_end=expiry
    )
    assert no_task_reason(work, 100.0) == expected
