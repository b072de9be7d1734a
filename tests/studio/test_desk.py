"""Tasks are handed out once, answers taken once, whatever happens in between."""

from __future__ import annotations

import random
from uuid import uuid4

import pytest
from sqlalchemy import select

from podium.studio.database import reading
from podium.studio.desk import Desk, Given, Nothing
from podium.studio.errors import RefusedError
from podium.studio.kinds import Purpose
from podium.studio.projects import project_row
from podium.studio.secrets import new_token
from podium.studio.tables import Candidate, Lease, LogEntry, Query
from tests.studio.making import make_people, make_project


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


class ByNumber:
    """A desk that takes a project's number for its row."""

    def __init__(self, engine, desk) -> None:
        self._engine = engine
        self._desk = desk
        self.board = desk.board

    def _row(self, project_id):
        return reading(self._engine, lambda c: project_row(c, project_id))

    def next(self, project_id, *rest):
        return self._desk.next(self._row(project_id), *rest)

    def answer(self, project_id, *rest, **more):
        return self._desk.answer(self._row(project_id), *rest, **more)

    def undo(self, project_id, *rest):
        return self._desk.undo(self._row(project_id), *rest)


@pytest.fixture
def desk(engine, clock):
    return ByNumber(engine, Desk(engine, clock, random.Random(7)))


def truth(task) -> str:
    """Documents are better the lower their place."""
    return "left" if task.left < task.right else "right"


def log_of(engine, query_id):
    return reading(
        engine,
        lambda c: c.execute(
            select(LogEntry.__table__).where(LogEntry.query_id == query_id).order_by(LogEntry.place)
        ).all(),
    )


def top_of(engine, desk, project_id, query_id):
    def work(connection):
        project = project_row(connection, project_id)
        query = connection.execute(select(Query.__table__).where(Query.id == query_id)).one()
        return desk.board(connection, project, query).panel.session.result()

    return reading(engine, work)


def queries_of(engine, project_id):
    return reading(
        engine,
        lambda c: c.execute(
            select(Query.__table__).where(Query.project_id == project_id).order_by(Query.id)
        ).all(),
    )


def judge_all(desk, project, user, given, tab="t", choose=truth):
    """Answer until there is nothing left; returns how many answers that took."""
    count = 0
    while isinstance(given, Given):
        _, given = desk.answer(project, user, given.token, choose(given.task), seconds=2.0, tab=tab)
        count += 1
    return count, given


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


def test_bad_documents_are_out(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, k=2)

    def choose(task):
        bad = [side for side in ("left", "right") if getattr(task, side) >= 4]
        if len(bad) == 2:
            return "bad-both"
        return f"bad-{bad[0]}" if bad else truth(task)

    given = desk.next(project, ann, "t")
    judge_all(desk, project, ann, given, choose=choose)
    assert top_of(engine, desk, project, given.query.id).top == ("d00", "d01")


def test_a_skipped_pair_goes_to_others(engine, desk):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    given = desk.next(project, ann, "t")
    _, after = desk.answer(
        project, ann, given.token, "skip", seconds=1, tab="t", reason="not my language"
    )
    assert after == Nothing("yours-done")
    assert desk.next(project, bob, "t").task.pair == given.task.pair
    assert log_of(engine, given.query.id)[0].reason == "not my language"


def test_overlap_asks_several_people_at_once(engine, desk):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(
        engine, [ann, bob, cat], queries=1, items=2, k=1, overlap_share=1.0, overlap_assessors=2
    )
    one, two = desk.next(project, ann, "t"), desk.next(project, bob, "t")
    assert one.task.pair == two.task.pair
    assert desk.next(project, cat, "t") == Nothing("wait", 5.0)
    _, after = desk.answer(project, ann, one.token, "left", seconds=1, tab="t")
    assert after == Nothing("wait", 5.0)  # bob still holds it
    _, after = desk.answer(project, bob, two.token, "left", seconds=1, tab="t")
    assert after == Nothing("done")


def test_only_assigned_queries(engine, desk):
    from sqlalchemy import insert

    from podium.studio.database import in_transaction
    from podium.studio.tables import Assigned

    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, assigned_only=True)
    second = queries_of(engine, project)[1].id
    in_transaction(
        engine, lambda c: c.execute(insert(Assigned).values(query_id=second, user_id=bob))
    )
    assert desk.next(project, ann, "t") == Nothing("yours-done")
    given = desk.next(project, bob, "t")
    assert given.query.id == second
    _, end = judge_all(desk, project, bob, given)
    assert end == Nothing("yours-done")


def test_repeated_pairs_come_back_swapped_and_do_not_count(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=5, repeat_rate=0.5)
    given = desk.next(project, ann, "t")
    query = given.query.id
    judge_all(desk, project, ann, given)
    rows = log_of(engine, query)
    repeats = [row for row in rows if row.purpose == Purpose.REPEAT]
    main = {(row.left, row.right): row for row in rows if row.purpose == Purpose.MAIN}
    assert len(repeats) >= 3
    for row in repeats:
        assert row.place - main[row.right, row.left].place > 5
    assert len({(row.left, row.right) for row in repeats}) == len(repeats)
    assert top_of(engine, desk, project, query).top == ("d00", "d01", "d02", "d03", "d04")


def test_gold_pairs_are_mixed_in_and_do_not_count(engine, desk):
    from sqlalchemy import insert

    from podium.studio.database import in_transaction
    from podium.studio.tables import Gold

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=10, k=3, gold_rate=0.5)
    query = queries_of(engine, project)[0].id
    in_transaction(
        engine,
        lambda c: c.execute(insert(Gold).values(query_id=query, left=0, right=9, outcome=1)),
    )
    judge_all(desk, project, ann, desk.next(project, ann, "t"))
    gold = [row for row in log_of(engine, query) if row.purpose == Purpose.GOLD]
    assert [sorted((row.left, row.right)) for row in gold] == [[0, 9]]


def test_grades(engine, desk):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine,
        [ann, bob],
        queries=1,
        items=3,
        mode="grades",
        overlap_share=1.0,
        overlap_assessors=2,
    )
    grades = ("perfect", "good", "bad")
    for who in (ann, bob):
        given = desk.next(project, who, "t")
        query = given.query.id
        count, _ = judge_all(desk, project, who, given, choose=lambda task: grades[task.left])
        assert count == 3
    assert desk.next(project, ann, "t") == Nothing("done")
    assert {row.left: row.value for row in log_of(engine, query)} == {0: 4, 1: 2, 2: 0}


def test_rankings_side_by_side(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=4, mode="rankings")
    given = desk.next(project, ann, "t")
    assert {given.task.left, given.task.right} == {0, 1}
    count, end = judge_all(desk, project, ann, given, choose=lambda task: "left-much")
    assert (count, end) == (2, Nothing("done"))
    assert log_of(engine, given.query.id)[0].value == 2


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


def test_a_project_that_is_paused_hands_out_nothing(engine, desk):
    from sqlalchemy import update

    from podium.studio.database import in_transaction
    from podium.studio.tables import Project

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    given = desk.next(project, ann, "t")
    in_transaction(engine, lambda c: c.execute(update(Project).values(paused=True)))
    taken, after = desk.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert taken.counts
    assert after is None
    assert desk.next(project, ann, "t") == Nothing("paused")


def test_candidates_keep_their_order_by_score(engine, desk):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3)
    rows = reading(
        engine,
        lambda c: c.execute(select(Candidate.item).order_by(Candidate.place)).scalars().all(),
    )
    assert project
    assert rows == ["d00", "d01", "d02"]
