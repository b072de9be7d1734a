"""Tasks are handed out once, answers taken once, whatever happens in between."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import select

from podium.studio.errors import RefusedError
from podium.studio.judging.service import Desk, Given
from podium.studio.judging.task_selection import Nothing
from podium.studio.store.database import reading
from podium.studio.store.tables import Lease
from podium.studio.store.tokens import new_token
from tests.studio.desks import ByNumber, judge_all, log_of, queries_of, top_of, truth
from tests.studio.making import make_people, make_project


def test_one_person_finds_the_top_k(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=8, k=3)
    count, end = judge_all(desk, project, ann, desk.next(project, ann, "t"))
    assert end == Nothing("done")
    for query in queries_of(engine, project):
        assert query.done
        assert query.free == 0
        assert query.expected_left == 0
        assert top_of(engine, desk, project, query.id).top == ("d00", "d01", "d02")
    assert sum(query.entries for query in queries_of(engine, project)) == count


def test_the_same_tab_gets_the_same_task_and_another_tab_another(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    first = desk.next(project, ann, "one")
    assert desk.next(project, ann, "one").token == first.token
    other = desk.next(project, ann, "two")
    assert other.token != first.token
    assert (other.query.id, other.task.pair) != (first.query.id, first.task.pair)


def test_nobody_gets_what_someone_holds_until_the_lease_ends(engine, desk, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = desk.next(project, ann, "a")
    waiting = desk.next(project, bob, "b")
    assert waiting == Nothing("wait", 5.0)  # and not that there is nothing left
    clock.now += 61
    handed_on = desk.next(project, bob, "b")
    assert isinstance(handed_on, Given)
    assert handed_on.task.pair == held.task.pair


def test_a_late_answer_to_what_was_handed_on_is_kept_but_does_not_count(engine, desk, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = desk.next(project, ann, "a")
    clock.now += 61
    handed_on = desk.next(project, bob, "b")
    taken, after = desk.answer(project, ann, held.token, "tie", seconds=1, tab="a")
    assert (taken.late, taken.counts, taken.repeated) == (True, False, False)
    assert after == Nothing("wait", 5.0)
    taken, after = desk.answer(project, bob, handed_on.token, "left", seconds=1, tab="b")
    assert (taken.late, taken.counts) == (False, True)
    assert after == Nothing("done")
    assert [(row.late, row.counts) for row in log_of(engine, held.query.id)] == [
        (True, False),
        (False, True),
    ]


def test_a_late_answer_to_what_nobody_else_was_asked_counts(engine, desk, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1, lease_seconds=60)
    held = desk.next(project, ann, "a")
    clock.now += 3600
    taken, after = desk.answer(project, ann, held.token, "left", seconds=1, tab="a")
    assert (taken.late, taken.counts) == (True, True)
    assert after == Nothing("done")


def test_an_answer_sent_again_is_one_answer(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1)
    given = desk.next(project, ann, "t")
    first, after = desk.answer(project, ann, given.token, "left", seconds=1, tab="t")
    again, same = desk.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert (first.repeated, again.repeated) == (False, True)
    assert same.token == after.token  # the response that was lost named this task
    assert len(log_of(engine, given.query.id)) == 1


def test_nobody_answers_for_someone_else(engine, desk):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob])
    given = desk.next(project, ann, "t")
    with pytest.raises(RefusedError) as refused:
        desk.answer(project, bob, given.token, "left", seconds=1, tab="t")
    assert refused.value.status == 403
    desk.answer(project, ann, given.token, "left", seconds=1, tab="t")
    with pytest.raises(RefusedError) as refused:
        desk.answer(project, bob, given.token, "left", seconds=1, tab="t")
    assert refused.value.status == 403


def test_unknown_tasks_projects_and_choices_are_refused(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    other = make_project(engine, [ann])
    given = desk.next(project, ann, "t")
    for project_id, token, choice, status in (
        (project, uuid4(), "left", 404),
        (other, given.token, "left", 404),
        (project, given.token, "perfect", 422),
        (10**9, given.token, "left", 404),
    ):
        with pytest.raises(RefusedError) as refused:
            desk.answer(project_id, ann, token, choice, seconds=1, tab="t")
        assert refused.value.status == status
    taken, _ = desk.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert taken.counts


def test_undo_asks_the_same_again_and_sending_it_twice_changes_nothing(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=5)
    given = desk.next(project, ann, "t")
    _, following = desk.answer(project, ann, given.token, "right", seconds=1, tab="t")
    key = new_token()
    again = desk.undo(project, ann, key, "t")
    assert again.task == given.task
    assert desk.undo(project, ann, key, "t").token == again.token
    assert [row.kind for row in log_of(engine, given.query.id)] == ["verdict", "undo"]
    judge_all(desk, project, ann, again)
    assert top_of(engine, desk, project, given.query.id).top == ("d00", "d01", "d02")
    # What was held when it was taken back is free again.
    assert following.task.pair != again.task.pair


def test_undo_of_both_bad_brings_both_back(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, k=2)
    given = desk.next(project, ann, "t")
    desk.answer(project, ann, given.token, "bad-both", seconds=1, tab="t")
    assert [row.kind for row in log_of(engine, given.query.id)] == ["bad", "bad"]
    again = desk.undo(project, ann, new_token(), "t", given.token)
    assert again.task.pair == given.task.pair
    judge_all(desk, project, ann, again)
    assert top_of(engine, desk, project, given.query.id).top == ("d00", "d01")


def test_nothing_to_undo(engine, desk):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob])
    given = desk.next(project, ann, "t")
    desk.answer(project, ann, given.token, "left", seconds=1, tab="t")
    for answer in (None, given.token):
        with pytest.raises(RefusedError) as refused:
            desk.undo(project, bob, new_token(), "t", answer)
        assert refused.value.status == 404


def test_time_is_never_more_than_passed(engine, desk, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    given = desk.next(project, ann, "t")
    clock.now += 3
    desk.answer(project, ann, given.token, "left", seconds=500, tab="t")
    assert log_of(engine, given.query.id)[0].seconds == 3


def test_two_processes_catch_up_with_each_other(engine, desk, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=10, k=4)
    other = ByNumber(engine, Desk(engine, clock))
    tasks = {ann: desk.next(project, ann, "t"), bob: other.next(project, bob, "t")}
    desks = {ann: desk, bob: other}
    query = tasks[ann].query.id
    while any(isinstance(task, Given) for task in tasks.values()):
        for who, given in tasks.items():
            if isinstance(given, Given):
                _, tasks[who] = desks[who].answer(
                    project, who, given.token, truth(given.task), seconds=1, tab="t"
                )
            else:
                tasks[who] = desks[who].next(project, who, "t")
    assert top_of(engine, ByNumber(engine, Desk(engine)), project, query).top == (
        "d00",
        "d01",
        "d02",
        "d03",
    )


def test_leases_that_ran_out_are_marked(engine, desk, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = desk.next(project, ann, "a")
    clock.now += 61
    desk.next(project, bob, "b")
    rows = reading(engine, lambda c: c.execute(select(Lease.token, Lease.released)).all())
    assert dict(map(tuple, rows))[held.token] is True
