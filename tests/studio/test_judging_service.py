"""Tasks are handed out once, answers taken once, whatever happens in between."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import select

from podium.studio.errors import RefusedError
from podium.studio.judging.next_task import NoTask
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.store.database import reading
from podium.studio.store.tables import Lease
from podium.studio.store.tokens import new_token
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.judging_helpers import Judges, judge_all, queries_of, read_log, top_of, truth

DATABASES = BOTH


def test_one_person_finds_the_top_k(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=8, k=3)
    count, end = judge_all(service, project, ann, service.next(project, ann, "t"))
    assert end == NoTask("done")
    for query in queries_of(engine, project):
        assert query.done
        assert query.free == 0
        assert query.expected_left == 0
        assert top_of(service, project, query.id).top == ("d00", "d01", "d02")
    assert sum(query.entries for query in queries_of(engine, project)) == count


def test_the_same_tab_gets_the_same_task_and_another_tab_another(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    first = service.next(project, ann, "one")
    assert service.next(project, ann, "one").token == first.token
    other = service.next(project, ann, "two")
    assert other.token != first.token
    assert (other.query.id, other.task.pair) != (first.query.id, first.task.pair)


def test_nobody_gets_what_someone_holds_until_the_lease_ends(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    waiting = service.next(project, bob, "b")
    assert waiting == NoTask("wait", 5.0)  # and not that there is nothing left
    clock.now += 61
    handed_on = service.next(project, bob, "b")
    assert isinstance(handed_on, LeasedTask)
    assert handed_on.task.pair == held.task.pair


def test_a_late_answer_to_what_was_handed_on_is_kept_but_does_not_count(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    clock.now += 61
    handed_on = service.next(project, bob, "b")
    taken, after = service.answer(project, ann, held.token, "tie", seconds=1, tab="a")
    assert (taken.late, taken.counts, taken.repeated) == (True, False, False)
    assert after == NoTask("wait", 5.0)
    taken, after = service.answer(project, bob, handed_on.token, "left", seconds=1, tab="b")
    assert (taken.late, taken.counts) == (False, True)
    assert after == NoTask("done")
    assert [(row.late, row.counts) for row in read_log(engine, held.query.id)] == [
        (True, False),
        (False, True),
    ]


def test_a_late_answer_to_what_nobody_else_was_asked_counts(engine, service, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    clock.now += 3600
    taken, after = service.answer(project, ann, held.token, "left", seconds=1, tab="a")
    assert (taken.late, taken.counts) == (True, True)
    assert after == NoTask("done")


def test_an_answer_sent_again_is_one_answer(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1)
    given = service.next(project, ann, "t")
    first, after = service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    again, same = service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert (first.repeated, again.repeated) == (False, True)
    assert same.token == after.token  # the response that was lost named this task
    assert len(read_log(engine, given.query.id)) == 1


def test_nobody_answers_for_someone_else(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob])
    given = service.next(project, ann, "t")
    with pytest.raises(RefusedError) as refused:
        service.answer(project, bob, given.token, "left", seconds=1, tab="t")
    assert refused.value.status == 403
    service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    with pytest.raises(RefusedError) as refused:
        service.answer(project, bob, given.token, "left", seconds=1, tab="t")
    assert refused.value.status == 403


def test_unknown_tasks_projects_and_choices_are_refused(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    other = make_project(engine, [ann])
    given = service.next(project, ann, "t")
    for project_id, token, choice, status in (
        (project, uuid4(), "left", 404),
        (other, given.token, "left", 404),
        (project, given.token, "perfect", 422),
        (10**9, given.token, "left", 404),
    ):
        with pytest.raises(RefusedError) as refused:
            service.answer(project_id, ann, token, choice, seconds=1, tab="t")
        assert refused.value.status == status
    taken, _ = service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert taken.counts


def test_undo_asks_the_same_again_and_sending_it_twice_changes_nothing(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=5)
    given = service.next(project, ann, "t")
    _, following = service.answer(project, ann, given.token, "right", seconds=1, tab="t")
    key = new_token()
    again = service.undo(project, ann, key, "t")
    assert again.task == given.task
    assert service.undo(project, ann, key, "t").token == again.token
    assert [row.kind for row in read_log(engine, given.query.id)] == ["verdict", "undo"]
    judge_all(service, project, ann, again)
    assert top_of(service, project, given.query.id).top == ("d00", "d01", "d02")
    # What was held when it was taken back is free again.
    assert following.task.pair != again.task.pair


def test_undo_of_both_bad_brings_both_back(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, k=2)
    given = service.next(project, ann, "t")
    service.answer(project, ann, given.token, "bad-both", seconds=1, tab="t")
    assert [row.kind for row in read_log(engine, given.query.id)] == ["bad", "bad"]
    again = service.undo(project, ann, new_token(), "t", given.token)
    assert again.task.pair == given.task.pair
    judge_all(service, project, ann, again)
    assert top_of(service, project, given.query.id).top == ("d00", "d01")


def test_nothing_to_undo(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob])
    given = service.next(project, ann, "t")
    service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    for answer in (None, given.token):
        with pytest.raises(RefusedError) as refused:
            service.undo(project, bob, new_token(), "t", answer)
        assert refused.value.status == 404


def test_time_is_never_more_than_passed(engine, service, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    given = service.next(project, ann, "t")
    clock.now += 3
    service.answer(project, ann, given.token, "left", seconds=500, tab="t")
    assert read_log(engine, given.query.id)[0].seconds == 3


def test_two_processes_catch_up_with_each_other(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=10, k=4)
    other = Judges(engine, clock)
    tasks = {ann: service.next(project, ann, "t"), bob: other.next(project, bob, "t")}
    desks = {ann: service, bob: other}
    query = tasks[ann].query.id
    while any(isinstance(task, LeasedTask) for task in tasks.values()):
        for who, given in tasks.items():
            if isinstance(given, LeasedTask):
                _, tasks[who] = desks[who].answer(
                    project, who, given.token, truth(given.task), seconds=1, tab="t"
                )
            else:
                tasks[who] = desks[who].next(project, who, "t")
    assert top_of(Judges(engine), project, query).top == (
        "d00",
        "d01",
        "d02",
        "d03",
    )


def test_leases_that_ran_out_are_marked(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    clock.now += 61
    service.next(project, bob, "b")
    rows = reading(engine, lambda c: c.execute(select(Lease.token, Lease.released)).all())
    assert dict(map(tuple, rows))[held.token] is True
