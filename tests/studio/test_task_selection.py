"""Who is given what, at which moment, down to the second: each rule of the desk by itself."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import delete, insert, select

from podium.studio.accounts.identity import Member, Person
from podium.studio.errors import RefusedError
from podium.studio.judging import corrections
from podium.studio.judging.next_task import NoTask
from podium.studio.judging.unit_of_work import RENEWED_SECONDS, LeasedTask, LeaseHolder
from podium.studio.projects.changes import change_project
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Purpose, Role
from podium.studio.store.tables import (
    Gold,
    JudgmentCount,
    Lease,
    ProjectQuery,
    QueryAssignment,
)
from podium.studio.store.tokens import new_token
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges, judge_all, pause, queries_of, read_log, truth

DATABASES = BOTH


class Scripted(random.Random):
    """Draws a fixed sample, and chooses the last."""

    def __init__(self, *drawn: float) -> None:
        super().__init__()
        self.drawn = list(drawn)

    def random(self) -> float:
        return self.drawn.pop(0) if self.drawn else 0.99

    def choice(self, among):
        return among[-1]


def scripted(engine, clock, *drawn):
    return Judges(engine, clock, Scripted(*drawn))


def add_gold(engine, query, left, right):
    in_transaction(
        engine,
        lambda c: c.execute(insert(Gold).values(query_id=query, left=left, right=right, outcome=1)),
    )


def withdraw(engine, project, document):
    """Withdraw a document of a project's only query."""
    who = Member(Person(1, "Ann", "ann@example.org", False), Role.OWNER, row_of(engine, project))
    query = queries_of(engine, project)[0].id
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, document))


@pytest.mark.parametrize("turned", [False, True])
def test_a_gold_pair_comes_if_it_is_drawn_either_way_round(engine, clock, turned):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, gold_rate=0.25)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    service = scripted(engine, clock, 0.2499, 0.49 if turned else 0.5)
    task = service.next(project, ann, "t").task
    assert task.purpose is Purpose.GOLD
    assert (task.left, task.right) == ((3, 0) if turned else (0, 3))


def test_no_gold_pair_comes_if_none_is_drawn(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, gold_rate=0.25)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    assert scripted(engine, clock, 0.25).next(project, ann, "t").task.purpose is Purpose.MAIN


def test_a_gold_pair_is_asked_of_everyone_once(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, gold_rate=0.5)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    service = scripted(engine, clock, 0.0, 0.9, 0.0, 0.0)
    given = service.next(project, ann, "t")
    assert given.task.purpose is Purpose.GOLD
    _, after = service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert after.task.purpose is Purpose.MAIN


def test_gold_pairs_come_in_between_and_not_after_all_work(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1, gold_rate=0.5)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 1)
    service = scripted(engine, clock, 0.9, 0.0, 0.0, 0.0)
    given = service.next(project, ann, "t")
    assert given.task.purpose is Purpose.MAIN
    # Nothing but the gold pair would be left to Ann, though the query is not done.
    _, after = service.answer(project, ann, given.token, "skip", seconds=1, tab="t")
    assert isinstance(after, NoTask)
    assert service.next(project, ann, "t") == after


def test_a_gold_pair_that_one_holds_in_another_tab_is_not_given_twice(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, gold_rate=0.5)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    service = scripted(engine, clock, 0.0, 0.9, 0.0, 0.9)
    assert service.next(project, ann, "one").task.purpose is Purpose.GOLD
    assert service.next(project, ann, "two").task.purpose is Purpose.MAIN


def test_no_gold_pair_with_a_withdrawn_document_is_asked(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, gold_rate=0.5)
    query = queries_of(engine, project)[0].id
    add_gold(engine, query, 1, 2)
    add_gold(engine, query, 0, 3)  # the last is chosen
    withdraw(engine, project, 0)
    given = scripted(engine, clock, 0.0, 0.9).next(project, ann, "t")
    assert (given.task.pair, given.task.purpose) == ((1, 2), Purpose.GOLD)


@pytest.mark.parametrize("how", ["released", "answered"])
def test_a_gold_pair_does_not_return_after_a_document_was_withdrawn(engine, clock, how):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, gold_rate=0.5)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    service = scripted(engine, clock, 0.0, 0.9)
    given = service.next(project, ann, "t")
    assert given.task.purpose is Purpose.GOLD
    if how == "released":
        service.release(project, ann, given.token)
        withdraw(engine, project, 0)
        again = service.next(project, ann, "t")
    else:
        service.answer(project, ann, given.token, "left", seconds=1, tab="t", more=False)
        withdraw(engine, project, 0)
        again = service.undo(project, ann, new_token(), "t")
    assert again.task.purpose is Purpose.MAIN
    assert [len(side) for side in again.sides] == [1, 1]


def test_no_pair_with_a_withdrawn_document_is_repeated(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=3, repeat_rate=0.5)
    service = scripted(engine, clock, *[0.9] * 6, 0.0)
    given = service.next(project, ann, "t")
    first = given.task  # the only one that is long enough ago
    for _ in range(5):
        _, given = service.answer(project, ann, given.token, truth(given.task), seconds=1, tab="t")
    service.answer(project, ann, given.token, truth(given.task), seconds=1, tab="t", more=False)
    withdraw(engine, project, first.left)
    assert service.next(project, ann, "t").task.purpose is Purpose.MAIN


def test_a_query_that_was_not_assigned_is_found_once_everyone_may_judge(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, assigned_only=True)
    query = queries_of(engine, project)[0].id
    assignment = insert(QueryAssignment).values(query_id=query, user_id=ann, done=False)
    in_transaction(engine, lambda c: c.execute(assignment))
    service.next(project, ann, "a")
    clock.now += 90_000
    # Bob's search comes upon Ann's expired lease.
    assert service.next(project, bob, "b").why == "blocked"
    in_transaction(engine, lambda c: change_project(c, ann, project, {"assigned_only": False}))
    assert isinstance(service.next(project, bob, "b"), LeasedTask)


def test_a_pair_comes_back_after_five_others_and_not_before(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=3, repeat_rate=0.25, gold_rate=0.1)
    # Gold and repetition have a share each; there is no gold pair.
    service = scripted(engine, clock, *[0.1] * 20)
    given = service.next(project, ann, "t")
    first = given.task
    for count in range(6):
        assert given.task.purpose is Purpose.MAIN, count
        _, given = service.answer(project, ann, given.token, truth(given.task), seconds=1, tab="t")
    assert (given.task.left, given.task.right) == (first.right, first.left)
    assert given.task.purpose is Purpose.REPEAT


@pytest.mark.parametrize(("drawn", "purpose"), [(0.3499, "repeat"), (0.35, "main")])
def test_the_shares_of_gold_and_repetition_add_up(engine, clock, drawn, purpose):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=3, repeat_rate=0.25, gold_rate=0.1)
    service = scripted(engine, clock, *[0.9] * 6, drawn)
    given = service.next(project, ann, "t")
    for _ in range(6):
        _, given = service.answer(project, ann, given.token, truth(given.task), seconds=1, tab="t")
    assert given.task.purpose == purpose


def test_grades_have_no_checks(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, mode="grades", gold_rate=0.5)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 1)
    assert scripted(engine, clock, 0.0).next(project, ann, "t").task.purpose is Purpose.MAIN


@pytest.mark.parametrize(("left", "wait"), [(60.0, 5.0), (3.0, 3.0), (0.2, 0.5)])
def test_whoever_waits_is_told_how_long(engine, service, clock, left, wait):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    service.next(project, ann, "a")
    clock.now += 60 - left
    found = service.next(project, bob, "b")
    assert found.why == "wait"
    assert found.seconds == pytest.approx(wait)


def test_a_lease_holds_to_its_last_moment(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    assert held.expires_at == clock.now + 60
    clock.now += 60
    assert service.next(project, bob, "b").why == "wait"
    taken, _ = service.answer(project, ann, held.token, "left", seconds=1, tab="a")
    assert not taken.late


def test_asking_again_in_the_same_tab_keeps_the_task_for_longer(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    clock.now += 50
    again = service.next(project, ann, "a")
    assert (again.token, again.expires_at) == (held.token, clock.now + 60)
    clock.now += 50
    assert service.next(project, bob, "b").why == "wait"
    clock.now += 11
    assert service.next(project, bob, "b").task.pair == held.task.pair


@pytest.mark.parametrize(("lease", "short"), [(900, RENEWED_SECONDS), (20, 20)])
def test_a_page_that_renews_has_a_short_lease(engine, clock, lease, short):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=lease)
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a", renews=True)
    assert held.expires_at == clock.now + short
    clock.now += short - 1

    def renew(who, token=held.token):
        return service.renew(row, who, [token])[token]

    assert renew(LeaseHolder(bob, "a", True)) is None  # it is not Bob's
    assert renew(LeaseHolder(ann, "a", True), new_token()) is None
    assert renew(LeaseHolder(ann, "a", True)) == clock.now + short
    clock.now += short - 1
    assert service.next(row, bob, "b").why == "wait"
    clock.now += 2
    assert isinstance(service.next(row, bob, "b"), LeasedTask)
    assert renew(LeaseHolder(ann, "a", True)) is None  # it has gone to Bob


def test_giving_up_what_one_holds(engine, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    other = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a")
    assert not service.release(row, bob, held.token)
    assert not service.release(row_of(engine, other), ann, held.token)
    assert not service.release(row, ann, new_token())
    assert not service.release(row, ann, held.token, held.expires_at - 1)  # it was renewed since
    assert service.next(row, bob, "b").why == "wait"
    assert service.release(row, ann, held.token, held.expires_at)
    assert not service.release(row, ann, held.token)
    assert service.next(row, bob, "b").task.pair == held.task.pair


def test_what_was_left_comes_back_in_any_tab_and_before_anything_else(engine, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=3, items=2, k=1)
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a")
    service.release(row, ann, held.token)
    again = service.next(row, ann, "b", renews=True)
    assert (again.token, again.task) == (held.token, held.task)
    assert again.expires_at == clock.now + RENEWED_SECONDS
    assert service.next(row, ann, "b").token == held.token


def test_what_was_left_and_others_have_does_not_come_back(engine, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a")
    service.release(row, ann, held.token)
    first = service.next(row, bob, "b")
    second = service.next(row, bob, "c")
    pairs = {(each.query.id, each.task.pair) for each in (first, second)}
    assert (held.query.id, held.task.pair) in pairs
    assert service.next(row, ann, "a").why == "wait"
    service.answer(row, bob, first.token, "left", seconds=1, tab="b", more=False)
    assert service.next(row, ann, "a").why == "wait"


def test_a_query_taken_from_someone_does_not_come_back(engine, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, assigned_only=True)
    query = queries_of(engine, project)[0].id
    in_transaction(
        engine,
        lambda c: c.execute(
            insert(QueryAssignment).values(query_id=query, user_id=ann, done=False)
        ),
    )
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a")
    service.release(row, ann, held.token)
    in_transaction(engine, lambda c: c.execute(delete(QueryAssignment)))
    assert service.next(row, ann, "a").why == "blocked"


def test_with_nothing_else_left_a_second_tab_shows_the_same(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    service, row = Judges(engine, clock), row_of(engine, project)
    held = service.next(row, ann, "a")
    clock.now += 1
    same = service.next(row, ann, "b")
    assert (same.token, same.expires_at) == (held.token, held.expires_at + 1)


def test_one_person_holds_ten_tasks_at_most(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=12, items=2, k=1)
    service, row = Judges(engine, clock), row_of(engine, project)
    tokens = [service.next(row, ann, f"t{n}").token for n in range(12)]
    assert len(set(tokens)) == 10


def test_undo_frees_what_the_tab_was_asked_since(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    given = service.next(project, ann, "t")
    _, following = service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    again = service.undo(project, ann, new_token(), "t")
    assert again.query.id == given.query.id
    # Bob finds the query that Ann was led away from.
    found = service.next(project, bob, "b")
    assert (found.query.id, found.task.pair) == (following.query.id, following.task.pair)


def test_undo_while_the_project_is_paused_takes_back_and_asks_nothing(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4)
    given = service.next(project, ann, "t")
    service.answer(project, ann, given.token, "left", seconds=1, tab="t", more=False)
    pause(engine)
    token = new_token()
    assert service.undo(project, ann, token, "t") == NoTask("paused")
    assert service.undo(project, ann, token, "t") == NoTask("paused")  # the same undo
    assert [row.kind for row in read_log(engine, given.query.id)] == ["verdict", "undo"]
    held = reading(engine, lambda c: c.scalars(select(Lease.token).where(~Lease.released)).all())
    assert held == []
    pause(engine, False)
    assert service.next(project, ann, "t").task.pair == given.task.pair


def test_undo_of_a_skip_asks_the_pair_again(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    given = service.next(project, ann, "t")
    _, after = service.answer(project, ann, given.token, "skip", seconds=1, tab="t")
    assert isinstance(after, NoTask)
    again = service.undo(project, ann, new_token(), "t")
    assert again.task.pair == given.task.pair
    assert judge_all(service, project, ann, again)[1] == NoTask("done")


@pytest.mark.parametrize("purpose", [Purpose.GOLD, Purpose.MAIN])
def test_undo_shows_the_pair_as_it_was_shown(engine, clock, purpose):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, gold_rate=0.5)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    service = scripted(engine, clock, 0.0 if purpose is Purpose.GOLD else 0.9, 0.0)
    given = service.next(project, ann, "t")
    service.answer(project, ann, given.token, "right", seconds=1, tab="t", more=False)
    assert service.undo(project, ann, new_token(), "t").task == given.task


def test_a_late_answer_to_a_check_counts(engine, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, gold_rate=0.5, lease_seconds=60)
    add_gold(engine, queries_of(engine, project)[0].id, 0, 3)
    service = scripted(engine, clock, 0.0, 0.9)
    given = service.next(project, ann, "t")
    clock.now += 61
    taken, _ = service.answer(project, ann, given.token, "left", seconds=1, tab="t", more=False)
    assert (taken.late, taken.counts) == (True, True)


def test_a_late_answer_to_what_is_settled_does_not_count(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, lease_seconds=60)
    held = service.next(project, ann, "a")
    clock.now += 61
    theirs = service.next(project, bob, "b")
    service.answer(project, bob, theirs.token, "left", seconds=1, tab="b")
    taken, after = service.answer(project, ann, held.token, "left", seconds=1, tab="a")
    assert (taken.late, taken.counts) == (True, False)
    assert (after.why, after.seconds, after.problems) == ("done", 0.0, ())


def test_time_is_neither_negative_nor_more_than_passed(engine, service, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=5)
    given = service.next(project, ann, "t")
    clock.now += 3
    _, given = service.answer(project, ann, given.token, "left", seconds=2, tab="t")
    clock.now -= 1  # a clock that was set back
    service.answer(project, ann, given.token, "left", seconds=2, tab="t", more=False)
    assert [row.seconds for row in read_log(engine, given.query.id)] == [2, 0]
    tally = reading(
        engine, lambda c: c.execute(select(JudgmentCount.judgments, JudgmentCount.seconds)).one()
    )
    assert tuple(tally) == (2, 2.0)


def test_without_more_nothing_is_handed_out(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=5)
    given = service.next(project, ann, "t")
    answer = (project, ann, given.token, "left")
    taken, after = service.answer(*answer, seconds=1, tab="t", more=False)
    assert (taken.repeated, after) == (False, None)
    taken, after = service.answer(*answer, seconds=1, tab="t", more=False)
    assert (taken.repeated, after) == (True, None)
    assert reading(engine, lambda c: c.scalars(select(Lease.token)).all()) == []
    pause(engine)
    taken, after = service.answer(*answer, seconds=1, tab="t")
    assert (taken.repeated, after) == (True, None)


def test_what_a_query_needs_is_written_down_with_each_answer(engine, service, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, k=2, lease_seconds=60)
    given = service.next(project, ann, "t")

    def row():
        return reading(engine, lambda c: c.execute(select(ProjectQuery.__table__)).one())

    free = row().free
    assert row().lease_expiry == clock.now + 60
    _, given = service.answer(project, ann, given.token, truth(given.task), seconds=1, tab="t")
    assert (row().entries, row().judgments, row().done) == (1, 1, False)
    assert row().available == (row().free > 0)
    assert row().free <= free
    service.answer(project, ann, given.token, truth(given.task), seconds=1, tab="t", more=False)
    assert row().lease_expiry is None
    judge_all(service, project, ann, service.next(project, ann, "t"))
    assert (row().free, row().done, row().available) == (0, True, False)


def test_undo_of_nothing_changes_nothing(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=4)
    given = service.next(project, ann, "t")
    service.answer(project, ann, given.token, "left", seconds=1, tab="t", more=False)
    service.undo(project, ann, new_token(), "t", given.token)
    for answer in (given.token, None):
        with pytest.raises(RefusedError) as refused:
            service.undo(project, ann, new_token(), "t", answer)
        assert refused.value.status == 404
    assert len(read_log(engine, given.query.id)) == 2
