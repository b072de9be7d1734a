"""The dashboard's figures against those worked out by hand, and asking a pair again."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sqlalchemy import insert, select, update

from podium.studio.accounts.service import add_user
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.reporting import reports
from podium.studio.reporting.log_rows import log_rows
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.rows import ReportRow
from podium.studio.store.tables import Gold, Job, LogEntry, ProjectQuery, QueryFigures
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges, make_report, say
from tests.studio.postgres import wait_until
from tests.studio.server import serving

DATABASES = BOTH


@pytest.fixture
def address(database, tmp_path):
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


def truth(task):
    return "left" if task.left < task.right else "right"


def judge_all(engine, project, user, choose=truth, service=None):
    service = service or Judges(engine)
    given = service.next(row_of(engine, project), user, "t")
    while isinstance(given, LeasedTask):
        _, given = service.answer(
            row_of(engine, project), user, given.token, choose(given.task), seconds=2, tab="t"
        )


def query_of(engine, project):
    return reading(
        engine,
        lambda c: c.scalar(select(ProjectQuery.id).where(ProjectQuery.project_id == project)),
    )


def test_agreement_of_two_people(engine):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=1, items=6, overlap_share=1.0, overlap_assessors=2
    )
    query = query_of(engine, project)
    say(engine, query, ann, (0, 1, 1), (2, 1, -1), (3, 4, 0), (0, 5, 1))
    say(engine, query, bob, (1, 0, -1), (1, 2, -1), (4, 3, 1), (0, 2, 1))
    found = make_report(engine, project, ann).content["agreement"]
    # Both judged 0-1 (agreed), 1-2 (opposite) and 3-4 (a tie, and not); which of a pair is the
    # first is drawn.
    table = np.array(found["table"])
    assert found["units"] == 3
    assert sorted(np.diag(table)) == [0, 0, 2]
    assert table[0, 2] == table[2, 0] == 1
    assert table[1].sum() == table[:, 1].sum() == 1
    assert found["overall"] == pytest.approx(1 / 3)
    assert found["without_ties"] == pytest.approx(1 / 2)


def test_answers_that_do_not_count_are_not_in_the_agreement(engine):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, overlap_share=1.0)
    query = query_of(engine, project)
    say(engine, query, ann, (0, 1, 1))
    say(engine, query, bob, (0, 1, 1))
    say(engine, query, bob, (0, 1, -1), counts=False)  # of another tab, and later
    found = make_report(engine, project, ann).content["agreement"]
    assert (found["units"], found["overall"]) == (1, 1.0)


def test_a_prior_ranking_that_is_right_does_not_spoil_kappa(engine):
    """Two people who nearly always agree, and with the ranking: that is not chance."""
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=1, items=8, overlap_share=1.0, overlap_assessors=2
    )
    query = query_of(engine, project)
    pairs = list(combinations(range(8), 2))
    say(engine, query, ann, *((left, right, 1) for left, right in pairs))
    say(engine, query, bob, *((left, right, 1 if left else -1) for left, right in pairs[5:]))
    found = make_report(engine, project, ann).content["agreement"]
    assert found["overall"] == pytest.approx(21 / 23)
    assert 0.7 < found["fleiss"] < 0.95


def test_checks_are_counted_for_each_person(engine):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=6)
    query = query_of(engine, project)
    in_transaction(
        engine,
        lambda c: c.execute(
            insert(Gold), [
                {"query_id": query, "left": 5, "right": 0, "outcome": -1},
                {"query_id": query, "left": 1, "right": 4, "outcome": 1},
            ],
        ),
    )  # fmt: skip
    say(engine, query, ann, (0, 5, 1), (4, 1, 1), purpose="gold")
    say(engine, query, ann, (0, 1, 1), (1, 2, 1))
    say(engine, query, ann, (1, 0, -1), (2, 1, 1), purpose="repeat")
    say(engine, query, bob, (0, 1, 0))
    care = make_report(engine, project, ann).content["care"]
    assert care[str(ann)]["gold"] == [2, 1]
    assert care[str(ann)]["again"] == [2, 1]
    assert care[str(ann)]["sides"] == [5, 0, 1]
    assert care[str(bob)]["sides"] == [0, 1, 0]
    row = row_of(engine, project)
    gold = reading(engine, lambda c: log_rows(c, row, LogEntry.purpose == "gold", limit=9))
    assert [entry.expected for entry in gold] == ["worse than", None]  # newest first
    assert care[str(bob)]["flags"] == []


def test_only_queries_that_moved_are_read_again(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=4, k=1)
    judge_all(engine, project, ann)
    first = make_report(engine, project, ann)
    assert [each["judgments"] for each in first.content["times"]] == [first.entries]
    assert len(first.content["slowest"]) == 3
    # What is kept of a query that has not moved is taken as it is.
    in_transaction(
        engine,
        lambda c: c.execute(update(QueryFigures).values(content={
            "units": [], "again": {"7": [9, 9]}, "gold": {}, "sides": {}, "recent": {}, "loops": [],
        })),
    )  # fmt: skip
    say(engine, query_of(engine, project), ann, (0, 1, 1))
    second = make_report(engine, project, ann)
    assert second.content["care"]["7"]["again"] == [18, 18]
    assert reading(engine, lambda c: c.scalars(select(Job.id)).all()) == []


def test_a_report_is_made_anew_only_if_there_is_need():
    row = ReportRow(1, "project", {}, entries=5, made_at=100.0)
    assert reports.is_stale(None, 0, 0.0)
    assert reports.is_stale(row, 6, 200.0)
    assert not reports.is_stale(row, 5, 200.0)
    assert not reports.is_stale(row, 6, 101.0)


def test_a_contradiction_is_asked_again(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=3, k=3)
    query = query_of(engine, project)
    say(engine, query, bob, (0, 1, 1), (1, 2, 1), (2, 0, 1))
    path = f"/api/v1/projects/{project}"
    with program(engine, address, ann) as client:
        wait_until(lambda: client.get(f"{path}/report").json()["content"])
        content = client.get(f"{path}/report").json()["content"]
        assert content["loop_count"] == 1
        (loop,) = content["loops"]
        assert loop["loop"] == [0, 1, 2]
        wanted = {"query": loop["query"], "loop": loop["loop"]}
        assert client.post(f"{path}/ask-again", json=wanted).json() == {"verdicts": 3}
        assert client.post(f"{path}/ask-again", json=wanted).status_code == 404
        assert client.post(f"{path}/ask-again", json=wanted | {"query": 10**6}).status_code == 404
        (row,) = client.get(f"{path}/results").json()["queries"]
        assert row["state"] != "done"
        assert row["judgments"] == 0  # none of the three stands, and undo does not count
    service = Judges(engine)
    judge_all(engine, project, ann, service=service)
    columns = LogEntry.kind, LogEntry.user_id, LogEntry.manager_id, LogEntry.reason
    log = reading(engine, lambda c: c.execute(select(*columns)).all())
    assert [tuple(row) for row in log].count(("undo", bob, ann, "asked again")) == 3
    assert make_report(engine, project, ann).content["loop_count"] == 0


def test_asking_again_reaches_a_process_that_had_the_query_in_memory(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    service = Judges(engine)
    judge_all(engine, project, ann, service=service)
    with program(engine, address, ann) as client:
        pair = {"query": query_of(engine, project), "loop": [1, 0]}
        assert client.post(f"/api/v1/projects/{project}/ask-again", json=pair).status_code == 200
    assert isinstance(service.next(row_of(engine, project), ann, "t"), LeasedTask)


@pytest.mark.parametrize("mode", ["pairs", "grades", "rankings"])
def test_the_page_updates_by_itself(engine, address, mode):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    (bob,) = make_people(engine, 1)
    project = make_project(
        engine, [ann, bob], queries=3, items=5, mode=mode, overlap_share=1.0, overlap_assessors=2
    )
    choices = {
        "pairs": truth,
        "grades": lambda task: ("bad", "fair", "good", "excellent", "perfect")[task.left],
        "rankings": lambda task: "left" if task.left else "right",
    }
    home = f"/projects/{project}/dashboard"
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        assert browser.get(f"/projects/{project}").headers["location"] == home
        page = browser.get(home).text
        assert 'hx-trigger="every 5s"' in page
        service = Judges(engine)
        given = {who: service.next(row_of(engine, project), who, "t") for who in (ann, bob)}
        while any(isinstance(each, LeasedTask) for each in given.values()):
            for who, each in given.items():
                if isinstance(each, LeasedTask):
                    _, given[who] = service.answer(
                        row_of(engine, project), who, each.token, choices[mode](each.task),
                        seconds=2, tab="t",
                    )  # fmt: skip
                else:
                    given[who] = service.next(row_of(engine, project), who, "t")
        wait_until(lambda: "Krippendorff" in browser.get(f"{home}/figures").text)
        page = browser.get(f"{home}/figures").text
        assert "3 of 3" in page
        assert "100 %" in page
        assert "Person 0" in page


def test_the_button_to_ask_again(engine, address):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    project = make_project(engine, [ann], queries=1, items=3, k=3)
    query = query_of(engine, project)
    say(engine, query, ann, (0, 1, 1), (1, 2, 1), (2, 0, 1))
    home = f"/projects/{project}/dashboard"
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        wait_until(lambda: "Contradictions" in browser.get(f"{home}/figures").text)
        assert "Title 0 \u203a Title 1 \u203a Title 2 \u203a Title 0" in browser.get(home).text
        sent = {"query": str(query), "loop": "0,1,2"}
        assert browser.submit(f"/projects/{project}/ask-again", sent).status_code == 303
        assert (
            browser.submit(f"/projects/{project}/ask-again", sent | {"loop": "x"}).status_code
            == 422
        )
