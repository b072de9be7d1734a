"""Pages show the answer that was recorded, and one pair goes to as many as it needs."""

from __future__ import annotations

import pytest

from tests.studio.factories import make_people, make_project


@pytest.mark.parametrize(
    ("mode", "first", "others"),
    [
        ("pairs", "left", ["right", "tie", "skip", "bad-both", "bad-left"]),
        ("pairs", "bad-both", ["bad-left", "left", "skip"]),
        ("pairs", "bad-left", ["bad-both", "left", "skip"]),
        ("pairs", "skip", ["left"]),
        ("grades", "good", ["bad", "skip"]),
        ("rankings", "left-much", ["left", "same", "skip"]),
    ],
)
def test_another_answer_to_the_same_task_is_refused(engine, judge, mode, first, others):
    people = make_people(engine, 2)
    ann = judge(people[1], make_project(engine, people, mode=mode))
    task = ann.next()["task"]
    answer = {"token": task["token"], "seconds": 1, "tab": "t"}
    assert ann.post("answers", choice=first, **answer).json()["counts"]
    for other in others:
        refused = ann.post("answers", choice=other, **answer)
        assert (refused.status_code, "another answer" in refused.json()["detail"]) == (409, True)
    again = ann.post("answers", choice=first, **answer).json()
    assert (again["repeated"], again["counts"]) == (True, True)


@pytest.mark.parametrize("overlap", [1, 2])
def test_an_undone_skip_offers_no_pair_to_more_people_than_it_needs(engine, judge, overlap):
    """The one who skipped gets it again only if nobody took it over."""
    people = make_people(engine, overlap + 2)
    settings = {"overlap_share": 1.0, "overlap_assessors": overlap} if overlap > 1 else {}
    project = make_project(engine, people, queries=1, items=2, k=1, **settings)
    skips, *others = [judge(person, project) for person in people[1:]]
    skips.answer(skips.next()["task"], "skip")
    tasks = [other.next()["task"] for other in others]
    assert all(tasks)
    assert skips.undo()["state"] != "task"
    counted = [other.answer(task)["counts"] for other, task in zip(others, tasks, strict=True)]
    assert counted == [True] * overlap
    assert skips.next()["state"] in ("done", "yours-done")


def test_an_undone_skip_is_offered_again_to_the_one_who_skipped(engine, judge):
    people = make_people(engine, 2)
    ann = judge(people[1], make_project(engine, people, queries=1, items=2, k=1))
    task = ann.next()["task"]
    ann.answer(task, "skip")
    assert ann.undo()["state"] == "task"
