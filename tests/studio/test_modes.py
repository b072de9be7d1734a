"""What projects can ask for: overlap, checks, assignment, grades, rankings, a pause."""

from __future__ import annotations

from sqlalchemy import insert, select, update

from podium.studio.judging.next_task import NoTask
from podium.studio.messages import Message
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Purpose
from podium.studio.store.tables import Gold, Project, QueryAssignment, QueryCandidate
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.judging_helpers import judge_all, queries_of, read_log, top_of, truth

DATABASES = BOTH


def test_bad_documents_are_out(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, k=2)

    def choose(task):
        bad = [side for side in ("left", "right") if getattr(task, side) >= 4]
        if len(bad) == 2:
            return "bad-both"
        return f"bad-{bad[0]}" if bad else truth(task)

    given = service.next(project, ann, "t")
    judge_all(service, project, ann, given, choose=choose)
    assert top_of(service, project, given.query.id).top == ("d00", "d01")


def test_a_skipped_pair_goes_to_others(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    given = service.next(project, ann, "t")
    _, after = service.answer(
        project, ann, given.token, "skip", seconds=1, tab="t", reason="not my language"
    )
    assert after == NoTask("wait", 15.0)  # what bob says of it may open more
    assert service.next(project, bob, "t").task.pair == given.task.pair
    assert read_log(engine, given.query.id)[0].reason == "not my language"


def test_overlap_asks_several_people_at_once(engine, service):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(
        engine, [ann, bob, cat], queries=1, items=2, k=1, overlap_share=1.0, overlap_assessors=2
    )
    one, two = service.next(project, ann, "t"), service.next(project, bob, "t")
    assert one.task.pair == two.task.pair
    assert service.next(project, cat, "t") == NoTask("wait", 5.0)
    _, after = service.answer(project, ann, one.token, "left", seconds=1, tab="t")
    assert after == NoTask("wait", 5.0)  # bob still holds it
    _, after = service.answer(project, bob, two.token, "left", seconds=1, tab="t")
    assert after == NoTask("done")


def test_only_assigned_queries(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, assigned_only=True)
    second = queries_of(engine, project)[1].id
    in_transaction(
        engine, lambda c: c.execute(insert(QueryAssignment).values(query_id=second, user_id=bob))
    )
    assert service.next(project, ann, "t") == NoTask(
        "blocked",
        15.0,
        (
            Message(
                "No query is assigned to you. Assign the queries under Assignments, or let "
                "everyone judge all queries."
            ),
        ),
    )
    given = service.next(project, bob, "t")
    assert given.query.id == second
    clock.now += 6  # what is blocked is looked up every few seconds
    _, end = judge_all(service, project, bob, given)
    assert end == NoTask(
        "blocked",
        15.0,
        (
            Message(
                "1 query is blocked: nobody is assigned. Assign the queries under Assignments, "
                "or let everyone judge all queries."
            ),
        ),
    )


def test_repeated_pairs_come_back_swapped_and_do_not_count(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=5, repeat_rate=0.5)
    given = service.next(project, ann, "t")
    query = given.query.id
    judge_all(service, project, ann, given)
    rows = read_log(engine, query)
    repeats = [row for row in rows if row.purpose == Purpose.REPEAT]
    main = {(row.left, row.right): row for row in rows if row.purpose == Purpose.MAIN}
    assert len(repeats) >= 3
    for row in repeats:
        assert row.position - main[row.right, row.left].position > 5
    assert len({(row.left, row.right) for row in repeats}) == len(repeats)
    assert top_of(service, project, query).top == ("d00", "d01", "d02", "d03", "d04")


def test_gold_pairs_are_mixed_in_and_do_not_count(engine, service):

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=10, k=3, gold_rate=0.5)
    query = queries_of(engine, project)[0].id
    in_transaction(
        engine,
        lambda c: c.execute(insert(Gold).values(query_id=query, left=0, right=9, outcome=1)),
    )
    judge_all(service, project, ann, service.next(project, ann, "t"))
    gold = [row for row in read_log(engine, query) if row.purpose == Purpose.GOLD]
    assert [sorted((row.left, row.right)) for row in gold] == [[0, 9]]


def test_grades(engine, service):
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
        given = service.next(project, who, "t")
        query = given.query.id
        count, _ = judge_all(service, project, who, given, choose=lambda task: grades[task.left])
        assert count == 3
    assert service.next(project, ann, "t") == NoTask("done")
    assert {row.left: row.value for row in read_log(engine, query)} == {0: 4, 1: 2, 2: 0}


def test_rankings_side_by_side(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=4, mode="rankings")
    given = service.next(project, ann, "t")
    assert {given.task.left, given.task.right} == {0, 1}
    count, end = judge_all(service, project, ann, given, choose=lambda _task: "left-much")
    assert (count, end) == (2, NoTask("done"))
    assert read_log(engine, given.query.id)[0].value == 2


def test_a_project_that_is_paused_hands_out_nothing(engine, service):

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    given = service.next(project, ann, "t")
    in_transaction(engine, lambda c: c.execute(update(Project).values(paused=True)))
    taken, after = service.answer(project, ann, given.token, "left", seconds=1, tab="t")
    assert taken.counts
    assert after is None
    assert service.next(project, ann, "t") == NoTask("paused")


def test_candidates_keep_their_order_by_score(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3)
    rows = reading(
        engine,
        lambda c: (
            c.execute(select(QueryCandidate.item).order_by(QueryCandidate.position)).scalars().all()
        ),
    )
    assert project
    assert rows == ["d00", "d01", "d02"]
