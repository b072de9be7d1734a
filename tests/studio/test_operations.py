"""A server as its operators see it: every figure of the dashboard, and who did what in the log."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from podium.studio.accounts.service import add_user
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from tests.ports import free_port
from tests.studio.command import answers, running
from tests.studio.databases import sqlite_with_tables
from tests.studio.factories import PASSWORD, make_project
from tests.studio.http_client import Browser
from tests.studio.postgres import wait_until

ROOT = Path(__file__).parents[2]


@dataclass
class AssessorStats:
    """What a server reported while Ann signed in and judged.

    Attributes:
        ann: Her account.
        project: The project.
        metrics: What Prometheus read at the end.
        log: The lines of the log.
    """

    ann: int
    project: int
    metrics: str
    log: list[dict[str, Any]]


@pytest.fixture(scope="module")
def watched(tmp_path_factory) -> AssessorStats:
    folder = tmp_path_factory.mktemp("server")
    database = sqlite_with_tables(folder / "studio.db")
    engine = connect(Settings(database=database))
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    engine.dispose()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    words = ["serve", "--database", database, "--port", port]
    with running(*words, folder=folder) as process:
        with Browser(address) as browser:
            wait_until(lambda: answers(browser))
            assert browser.sign_in("ann@example.org", "wrong password").status_code == 401
            assert browser.sign_in("ann@example.org").status_code == 303
            browser.headers["x-csrf-token"] = browser.csrf()
            path = f"/api/v1/projects/{project}"
            task = browser.post(f"{path}/next", json={"tab": "t"}).json()["task"]
            answer = {"token": task["token"], "choice": "left", "seconds": 1, "tab": "t"}
            assert browser.post(f"{path}/answers", json=answer).status_code == 200
            assert browser.post(f"{path}/exports", json={}).status_code in (200, 201, 202)
            assert browser.get(f"/projects/{'9' * 5000}/judge").status_code in (404, 422)
        metrics = httpx2.get(f"{address}/metrics", timeout=60).text
        process.terminate()
        lines = process.stderr.read().splitlines()
    return AssessorStats(ann, project, metrics, [json.loads(line) for line in lines])


def test_every_figure_of_the_dashboard_is_exported_with_its_labels(watched):
    exported: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(watched.metrics):
        for sample in family.samples:
            exported.setdefault(sample.name, set()).update(sample.labels)
    panels = json.loads((ROOT / "docs/how-to/grafana.json").read_text())["panels"]
    expressions = [target["expr"] for mode in panels for target in mode["targets"]]
    named = {name for each in expressions for name in re.findall(r"podium_\w+", each)}
    assert len(named) == 10
    assert named - exported.keys() == set()
    for expression in expressions:
        (name,) = set(re.findall(r"podium_\w+", expression))
        by = re.search(r"sum by \(([^)]*)\)", expression)
        labels = set(by.group(1).split(", ")) if by else set()
        labels |= set(re.findall(r"[{,](\w+)=", expression))
        assert labels <= exported[name], expression


def test_an_answer_is_counted(watched):
    counted = 'podium_judgments_total{mode="pairs",outcome="recorded"} 1.0'
    assert counted in watched.metrics.splitlines()
    route = "/api/v1/projects/{project}/answers"
    assert f'method="POST",route="{route}",status="200"}} 1.0' in watched.metrics


def test_alerts_see_the_first_failure(watched):
    """`increase` is 0 for a counter whose first value is 1."""
    for kind in ("import", "export", "report"):
        failed = f'podium_jobs_total{{kind="{kind}",outcome="failed"}} 0.0'
        assert failed in watched.metrics.splitlines()
    none = 'podium_database_errors_total{error="OperationalError"} 0.0'
    assert none in watched.metrics.splitlines()


def test_signing_in_and_failing_to_are_logged_with_the_address(watched):
    lines = [line for line in watched.log if line["event"] == "sign-in"]
    assert [(line["outcome"], line["user"], line["address"]) for line in lines] == [
        ("failed", None, "127.0.0.1"),
        ("signed in", watched.ann, "127.0.0.1"),
    ]


def test_a_judged_answer_is_logged_with_user_project_and_address(watched):
    (line,) = [line for line in watched.log if line.get("route", "").endswith("/answers")]
    fields = ("event", "method", "status", "user", "project", "address")
    assert [line[name] for name in fields] == [
        "request", "POST", 200, watched.ann, watched.project, "127.0.0.1",
    ]  # fmt: skip
    assert line["milliseconds"] > 0
    assert re.fullmatch(r"[0-9a-f]{32}", line["request"])


def test_a_number_that_is_too_long_is_logged_without_it(watched):
    lines = [each for each in watched.log if each.get("route") == "/projects/{project}/judge"]
    assert [(each["event"], each["project"]) for each in lines] == [("request", None)]


def test_the_log_has_no_password_and_no_e_mail_address(watched):
    for line in watched.log:
        assert PASSWORD not in json.dumps(line)
        assert "ann@example.org" not in json.dumps(line)
