"""What judging costs by how sure the results are to be: as `podium simulate` computes it."""

from __future__ import annotations

import time

import pytest

from podium.judging import Overlap
from podium.judging.workload import estimate_grading_workload, estimate_workload
from podium.studio.accounts.service import sign_in
from podium.studio.reporting.workload import Effort, Extent, costs, effort_of, effort_settings
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.web.access import COOKIE
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.server import serving

EFFORTS: tuple[Effort, ...] = ("fast", "balanced", "careful")


def test_pairs_cost_what_the_simulation_says():
    found = costs(Extent("pairs", 30, 12, 5, False))
    once = estimate_workload(30, 12, 5, runs=50)
    some = estimate_workload(30, 12, 5, runs=50, overlap=Overlap(0.2, 2))
    assert found["fast"] == {"judgments": once.total, "hours": once.hours}
    assert found["balanced"] == {"judgments": some.total, "hours": some.hours}
    assert found["careful"]["judgments"] == 30 * 12 * 3
    assert (
        costs(Extent("pairs", 30, 3, 10, False))["fast"]["judgments"] <= 90
    )  # k above what is there


def test_grades_and_rankings():
    found = costs(Extent("grades", 10, 20, 5, False))
    assert [found[each]["judgments"] for each in EFFORTS] == [200, 240, 600]
    assert found["fast"]["hours"] == estimate_grading_workload(10, 20, 5, runs=2).hours
    found = costs(Extent("rankings", 10, 3, 5, False))
    assert [found[each]["judgments"] for each in EFFORTS] == [30, 36, 90]


@pytest.mark.parametrize("mode", ["pairs", "grades", "rankings"])
def test_each_effort_is_recognized_by_its_settings(mode):
    shared = {"mode": mode, "overlap_assessors": 2}
    for effort in EFFORTS:
        assert effort_of(shared | effort_settings(mode, effort)) == effort
    assert effort_of(shared | effort_settings(mode, "fast") | {"algorithm": "heap"}) is None


def test_costs_are_computed_in_a_job_and_follow_the_project(engine, database):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=4, mode="grades")
    path = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as client,
        program(engine, address, bob) as assessor,
    ):
        found = _computed(client, path)
        assert (found["queries"], found["documents"], found["assumed"]) == (2, 4, False)
        assert found["costs"]["careful"]["judgments"] == 24
        assert client.put(f"{path}/effort", json={"effort": "careful", "k": 2}).status_code == 200
        row = row_of(engine, project)
        assert (row.k, row.overlap_share, row.overlap_assessors) == (2, 1.0, 3)
        assert _computed(client, path)["k"] == 2  # and not what was computed before
        assert _computed(client, path, "?k=3")["k"] == 3  # of what is not saved
        assert row_of(engine, project).k == 2
        assert client.get(f"{path}/workload?k=0").status_code == 422
        assert client.put(f"{path}/effort", json={"effort": "best", "k": 2}).status_code == 422
        assert client.put(f"{path}/effort", json={"effort": "fast", "k": 0}).status_code == 422
        for method in (assessor.get(f"{path}/workload"), assessor.put(f"{path}/effort", json={})):
            assert method.status_code == 403


@pytest.mark.parametrize(("k", "fewer"), [(2, False), (36, True)])
def test_careful_costs_less_where_most_documents_are_ranked(engine, database, k, fewer):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=40)
    page = f"/projects/{project}/settings/costs?k={k}"
    with serving(Settings(database=database)) as address, program(engine, address, ann) as client:
        costs = _computed(client, f"/api/v1/projects/{project}", f"?k={k}")["costs"]
        with Browser(address) as browser:
            signed = in_transaction(engine, lambda c: sign_in(c, ann, 1))
            browser.cookies.set(COOKIE, signed.secret)
            text = browser.get(page).text
    assert (costs["careful"]["judgments"] < costs["fast"]["judgments"]) == fewer
    assert ("fewer than Fast" in text) == fewer


def test_before_an_import_the_costs_are_those_of_a_usual_project(engine, database):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0, mode="grades")
    with serving(Settings(database=database)) as address, program(engine, address, ann) as client:
        found = _computed(client, f"/api/v1/projects/{project}")
    assert (found["queries"], found["documents"], found["assumed"]) == (100, 50, True)


def _computed(client, path, query="", seconds=60):
    end = time.monotonic() + seconds
    while (found := client.get(f"{path}/workload{query}").json()) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return found
