"""What becomes free again reaches those who had found nothing, and waits have their lengths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from podium.studio.judging.service import Desk, Given
from podium.studio.judging.task_selection import Nothing, why_nothing
from podium.studio.projects.changes import delete_project
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Query, Tally
from podium.studio.store.tokens import new_token
from tests.studio.browsing import row_of
from tests.studio.desks import log_of
from tests.studio.making import make_people, make_project
from tests.studio.test_handing import pause


def skip_all(desk, row, user, tab):
    """Skip whatever is asked; returns why nothing is left."""
    given = desk.next(row, user, tab)
    while isinstance(given, Given):
        _, given = desk.answer(row, user, given.token, "skip", seconds=1, tab=tab)
    return given


def query_row(engine):
    return reading(engine, lambda c: c.execute(select(Query.__table__)).one())


@pytest.fixture
def at_work(engine, clock):
    """Ann has a pair of a query; Bob has skipped all others, which are still free to Ann."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=12, k=4)
    desk, row = Desk(engine, clock), row_of(engine, project)
    held = desk.next(row, ann, "a")
    assert skip_all(desk, row, bob, "b").why == "wait"
    assert query_row(engine).available
    return SimpleNamespace(desk=desk, row=row, ann=ann, bob=bob, held=held)


def test_a_task_that_was_given_up_reaches_whoever_had_found_nothing(at_work):
    desk, row, held = at_work.desk, at_work.row, at_work.held
    assert desk.release(row, at_work.ann, held.token)
    found = desk.next(row, at_work.bob, "b")
    assert isinstance(found, Given)
    assert found.task.pair == held.task.pair


def test_so_it_does_after_a_project_with_later_changes_was_deleted(engine, at_work):
    desk, row, held = at_work.desk, at_work.row, at_work.held
    desk.release(row, at_work.ann, held.token)
    assert desk.next(row, at_work.ann, "a").task.pair == held.task.pair
    other = row_of(engine, make_project(engine, [at_work.ann], queries=3))
    assert desk.next(row, at_work.bob, "b").why == "wait"  # the last change is the other project's
    in_transaction(engine, lambda c: delete_project(c, at_work.ann, other, other.name))
    assert desk.release(row, at_work.ann, held.token)
    found = desk.next(row, at_work.bob, "b")
    assert isinstance(found, Given)
    assert found.task.pair == held.task.pair


@pytest.mark.parametrize("more", [False, True])
def test_a_task_that_was_skipped_reaches_whoever_had_found_nothing(at_work, more):
    desk, row, held = at_work.desk, at_work.row, at_work.held
    desk.answer(row, at_work.ann, held.token, "skip", seconds=1, tab="a", more=more)
    found = desk.next(row, at_work.bob, "b")
    assert isinstance(found, Given)
    assert found.task.pair == held.task.pair


def test_what_was_taken_back_while_paused_reaches_others_after_that(engine, at_work):
    desk, row, held = at_work.desk, at_work.row, at_work.held
    desk.answer(row, at_work.ann, held.token, "left", seconds=1, tab="a", more=False)
    skip_all(desk, row, at_work.bob, "b")
    pause(engine)
    paused = row_of(engine, row.id)
    assert desk.undo(paused, at_work.ann, new_token(), "a") == Nothing("paused")
    # The verdict, the skips of Bob, and the undo: what is written down is what there is.
    now = query_row(engine)
    assert (now.entries, now.judgments, now.done) == (len(log_of(engine, now.id)), 0, False)
    assert now.available
    pause(engine, False)
    found = desk.next(row, at_work.bob, "b")
    assert isinstance(found, Given)
    assert found.task.pair == held.task.pair


def test_what_is_skipped_counts_neither_as_a_judgment_nor_as_time(engine, desk, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=4)
    given = desk.next(project, ann, "t")
    clock.now += 5
    _, given = desk.answer(project, ann, given.token, "skip", seconds=4, tab="t")
    tally = select(Tally.judgments, Tally.seconds, Tally.last_at)
    assert tuple(reading(engine, lambda c: c.execute(tally).one())) == (0, 0.0, clock.now)
    assert [row.seconds for row in log_of(engine, given.query.id)] == [4]
    clock.now += 5
    desk.answer(project, ann, given.token, "left", seconds=3, tab="t", more=False)
    assert tuple(reading(engine, lambda c: c.execute(tally).one())) == (1, 3.0, clock.now)


def test_a_pair_for_two_is_held_by_two_and_no_more(engine, clock):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(
        engine, [ann, bob, cat], queries=1, items=2, k=1, overlap_share=1, overlap_assessors=2
    )
    desk, row = Desk(engine, clock), row_of(engine, project)
    first, second = desk.next(row, ann, "a"), desk.next(row, bob, "b")
    assert first.task.pair == second.task.pair
    assert desk.next(row, cat, "c") == Nothing("wait", 5.0)


def test_whoever_skipped_all_waits_for_others_who_are_not_at_it(engine, desk):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    given = desk.next(project, ann, "a")
    _, after = desk.answer(project, ann, given.token, "skip", seconds=1, tab="a")
    assert after == Nothing("wait", 15.0)


@pytest.mark.parametrize(
    ("unseen", "done", "mine", "expiry", "expected"),
    [
        (True, True, True, 1.0, Nothing("wait", 0.5)),
        (False, True, True, 1.0, Nothing("done")),
        (False, False, True, 1.0, Nothing("yours-done")),
        (False, False, False, 102.0, Nothing("wait", 2.0)),
        (False, False, False, 1.0, Nothing("wait", 0.5)),
        (False, False, False, 999.0, Nothing("wait", 5.0)),
        (False, False, False, None, Nothing("wait", 15.0)),
    ],
)
def test_why_there_is_nothing(unseen, done, mine, expiry, expected):
    work: Any = SimpleNamespace(
        has_unseen=unseen, is_done=done, mine_is_done=mine, first_lease_end=expiry
    )
    assert why_nothing(work, 100.0) == expected
