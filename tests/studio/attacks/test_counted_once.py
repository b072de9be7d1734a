"""One person counts once, and only judgments that stand are counted."""

from __future__ import annotations

from sqlalchemy import select, update

from podium.studio.store.database import reading
from podium.studio.store.tables import AssessorProgress, JudgmentCount, Lease, ProjectQuery
from tests.studio.attacks.judge_client import best, let_leases_end, log, pair
from tests.studio.factories import make_people, make_project
from tests.studio.postgres import wait_until


def test_a_lease_that_ended_in_one_tab_is_the_same_task_in_the_next(engine, judge):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    who = judge(ann, project)
    first = who.next("one")["task"]
    let_leases_end(engine)
    second = who.next("two")["task"]
    assert second["token"] == first["token"]
    timely = who.answer(second, tab="two")
    assert (timely["counts"], timely["repeated"]) == (True, False)
    assert who.answer(first, tab="one")["repeated"]
    other = who.post("answers", token=first["token"], choice="tie", seconds=1, tab="one")
    assert other.status_code == 409
    assert [(row.counts, row.value) for row in log(engine)] == [
        (True, 1 if best(second) == "left" else -1)
    ]


def test_the_late_and_the_timely_answer_of_one_person_are_one_vote(engine, judge):
    """Also where the second tab was given the pair under another token."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    who = judge(ann, project)
    older = who.next("one")["task"]
    let_leases_end(engine)
    # The pair's lease is lost to Ann, as if she had left others since.
    _forget(engine, older["token"])
    newer = who.next("two")["task"]
    assert newer["token"] != older["token"]
    assert pair(newer) == pair(older)
    late = who.answer(older, tab="one", more=False)
    # One's own lease does not make a late answer not count: nobody else was asked.
    assert (late["late"], late["counts"]) == (True, True)
    timely = who.answer(newer, tab="two")
    assert (timely["late"], timely["counts"], timely["repeated"]) == (False, False, False)
    assert [row.counts for row in log(engine)] == [True, False]
    row = reading(engine, lambda c: c.execute(select(AssessorProgress.judgments)).one())
    assert row.judgments == 1


def test_whoever_marked_both_documents_as_bad_has_judged_the_pair(engine, judge):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    who = judge(ann, project)
    older = who.next("one")["task"]
    let_leases_end(engine)
    _forget(engine, older["token"])
    newer = who.next("two")["task"]
    assert who.answer(older, "bad-both", tab="one", more=False)["counts"]
    assert not who.answer(newer, "left", tab="two")["counts"]
    assert [(row.kind, row.counts) for row in log(engine)] == [
        ("bad", True),
        ("bad", True),
        ("verdict", False),
    ]


def _forget(engine, token):
    from uuid import UUID

    from podium.studio.store.database import in_transaction

    ended = update(Lease).where(Lease.token == UUID(token)).values(tab="")  # nobody gets it back
    in_transaction(engine, lambda c: c.execute(ended))


def test_undo_is_no_judgment(engine, judge):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=8, k=3)
    who = judge(ann, project)
    found = who.next()
    left = found["progress"]["query_left"]
    for _ in range(3):
        found = who.answer(found["task"])["next"]
    assert found["progress"]["judged"] == found["progress"]["query_judged"] == 3
    for count in (2, 1, 0):
        found = who.undo()
        progress = found["progress"]
        assert (progress["judged"], progress["query_judged"]) == (count, count)
    assert (progress["seconds"], progress["query_left"]) == (0.0, left)
    about = who.client.get(who.path).json()["progress"]
    assert (about["judgments"], about["share"]) == (0, 0.0)
    assert who.client.get(f"{who.path}/results").json()["queries"][0]["judgments"] == 0
    wait_until(lambda: who.client.get(f"{who.path}/report").json()["content"])
    assert who.client.get(f"{who.path}/report").json()["content"]["times"] == []
    assert len(log(engine)) == 6


def test_everyone_is_counted_for_what_stands(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=5, k=2)
    first, second = judge(ann, project), judge(bob, project)
    found = first.next()
    found = first.answer(found["task"])["next"]
    found = first.answer(found["task"], "skip")["next"]  # no judgment
    found = first.answer(found["task"], "bad-both")["next"]  # one judgment, two entries
    first.answer(found["task"], more=False)
    first.undo()
    second.answer(second.next()["task"], more=False)
    tallies = reading(
        engine,
        lambda c: c.execute(
            select(JudgmentCount.user_id, JudgmentCount.judgments).order_by(JudgmentCount.user_id)
        ).all(),
    )
    counts = dict.fromkeys((ann, bob), 0)
    for user, judgments in tallies:
        counts[user] += judgments
    assert counts == {ann: 2, bob: 1}
    judges = reading(
        engine,
        lambda c: c.execute(select(AssessorProgress.user_id, AssessorProgress.judgments)).all(),
    )
    assert {row.user_id: row.judgments for row in judges} == counts
    stand = reading(engine, lambda c: c.scalars(select(ProjectQuery.judgments)).all())
    assert sum(stand) == 3


def test_undo_goes_back_answer_by_answer_over_queries(engine, judge):
    """The last answer that stands, also if a later one in another query was taken back."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=2, k=1)
    who = judge(ann, project)
    asked = []
    found = who.next()
    while found["state"] == "task":
        asked.append(pair(found["task"]))
        found = who.answer(found["task"])["next"]
    back = [pair(who.undo()["task"]) for _ in range(3)]
    assert back == asked[::-1]
    from uuid import uuid4

    assert who.post("undo", token=str(uuid4()), tab="t").status_code == 404
