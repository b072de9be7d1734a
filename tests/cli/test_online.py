"""``podium online``: reports, requirements as gates, plans and agreement."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium.clicks import import_clicks
from podium.online import compare_groups, compare_interleaved
from podium.online.planning import online_agreement, plan_online
from podium.online.sequence import widening
from tests.cli.run_podium import fail, podium, succeed

BEGIN = datetime(2026, 5, 4, tzinfo=UTC)


@pytest.fixture(scope="module")
def interleaved(tmp_path_factory: pytest.TempPathFactory) -> str:
    searches = 1200
    random = np.random.default_rng(0)
    team = random.choice(["new", "old"], searches, p=[0.6, 0.4])
    path = tmp_path_factory.mktemp("online") / "interleaved.parquet"
    table = {
        "search_id": [f"s{n}" for n in range(searches)], "team": team,
        "clicked": random.random(searches) < 0.7,
        "client": [f"c{n % 400}" for n in range(searches)],
        "time": [BEGIN + timedelta(hours=n) for n in range(searches)],
        "country": ["d<e" if n % 3 else "fr" for n in range(searches)],
    }  # fmt: skip
    pq.write_table(pa.table(table), path)
    return str(path)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> str:
    random = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("online") / "groups.csv"
    lines = ["client,variant,click_rate,revenue\n"] + [
        f"c{n},{'ab'[n % 2]},{int(random.random() < 0.3 + 0.1 * (n % 2))},{random.random():.3f}\n"
        for n in range(4000)
    ]
    path.write_text("".join(lines))
    return str(path)


def test_a_report_in_every_form(interleaved: str, tmp_path: Path) -> None:
    report = compare_interleaved(interleaved, pair=("old", "new"), slices="country")
    files = [tmp_path / f"report{suffix}" for suffix in (".html", ".md", ".json")]
    printed = succeed(
        "online", "report", interleaved, "--pair", "old,new", "--slices", "country",
        *(part for file in files for part in ("-o", file)),
    )  # fmt: skip
    html, markdown, content = (file.read_text() for file in files)
    for text in (printed, html, markdown):
        assert report.verdict in text
        for count in report.counts.values():
            assert f"{count:,}" in text
        assert f"{report.first.difference.low:+.4f}" in text
    for text in (html, markdown):
        assert "the share of searches that new wins minus the share of old" in text
    assert "<svg" in html
    assert "d<e" not in html
    assert "d&lt;e" in html
    values = json.loads(content)
    assert values["counts"] == dict(report.counts)
    assert values["results"][0]["difference"]["low"] == report.first.difference.low
    assert len(values["course"]) == len(report.course)
    assert values["results"][0]["old"] is None


def test_requirements_are_gates(interleaved: str, groups: str) -> None:
    for requirement, status in (
        ("new > old", 0), ("old > new", 1), ("preference > 0.05", 0), ("preference > 0.9", 1),
        ("preference > 0 in each country", 1), ("nothing > 0.5", 2), ("new is best", 2),
    ):  # fmt: skip
        done = podium(
            "online", "report", interleaved, "--pair", "old,new", "--slices", "country",
            "--require", requirement,
        )  # fmt: skip
        assert done.returncode == status, requirement
    report = compare_groups(groups, assignment="variant")
    assert report.first.metric == "click_rate"
    for requirement, status in (
        ("click_rate >= baseline - 1%", 0), ("b > a", 0), ("click_rate > baseline + 100%", 1),
        ("revenue >= baseline - 20%", 0), ("revenue > baseline", 1), ("revenue >= 0.4", 0),
        ("click_rate <= baseline + 0.2", 0), ("click_rate <= baseline + 0.01", 1),
    ):  # fmt: skip
        done = podium(
            "online", "report", groups, "--assignment", "variant", "--require", requirement
        )
        assert done.returncode == status, requirement


def test_a_ranking_log_with_its_events_is_a_source(tmp_path: Path) -> None:
    log, events = [], []
    for number in range(120):
        page = {
            "time": (BEGIN + timedelta(minutes=number)).isoformat(), "model": "old",
            "search_id": f"s{number}", "query": "shoes", "ids": ["a", "b"], "scores": [2, 1],
            "from": 0, "size": 2, "client": f"c{number}", "shown": ["b", "a"],
            "credits": [1.0, -1.0],
            "experiment": {"id": "team-draft-1", "method": "team-draft", "old": "o", "new": "n"},
        }  # fmt: skip
        log.append(page)
        clicked = "b" if number % 6 else "a"
        events.append({**page, "document_id": clicked, "action": "click", "ids": None})
    folder = tmp_path / "rankings"
    folder.mkdir()
    (folder / "rankings-1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in log))
    clicks = tmp_path / "events.jsonl"
    clicks.write_text("".join(json.dumps(each) + "\n" for each in events))
    printed = succeed("online", "report", folder, "--events", clicks, "--require", "n > o")
    assert printed.startswith("n is ahead of o (preference, 120 clients).")
    assert "team-draft-1" in printed
    assert "new preferred\t100\n" in printed
    assert "old preferred\t20\n" in printed
    assert {each.name for each in tmp_path.iterdir()} == {"rankings", "events.jsonl"}


def test_a_plan_is_where_the_interval_is_as_long_as_the_effect(tmp_path: Path) -> None:
    searches = 2000
    clicked = np.arange(searches) % 4 == 0
    rows: dict[str, Any] = {
        "search_id": [f"s{n}" for n in range(searches)], "query": ["q"] * searches,
        "document_id": ["a"] * searches, "rank": [1] * searches, "clicked": clicked,
        "time": [BEGIN + timedelta(minutes=n) for n in range(searches)],
    }  # fmt: skip
    log = import_clicks(rows, tmp_path / "log")
    plan = plan_online(log, gain=0.1)
    assert plan.clicks == 0.25
    assert plan.per_day == pytest.approx(1440, rel=0.01)
    # A/B: a gain of 0.025, of rates with the variance 0.25 * 0.75 in two halves.
    n = plan.groups
    deviation = (4 * 0.25 * 0.75 / n) ** 0.5
    assert 0.025 / deviation == pytest.approx(widening(n) + 0.8416, abs=1e-3)
    # Interleaving: half the gain, of clicks where the rankings differ.
    n = plan.interleaving
    assert 0.0125 / (0.2 * 0.25 / n) ** 0.5 == pytest.approx(widening(n) + 0.8416, abs=1e-3)
    table = succeed("online", "plan", tmp_path / "log", "--gain", "10%")
    assert f"{plan.groups:,.0f}" in table
    assert f"{plan.interleaving:,.0f}" in table


def test_agreement_of_offline_and_online_differences(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    online = random.normal(size=30)
    good, bad = online + 0.2 * random.normal(size=30), random.normal(size=30)
    bad[:2] = 0.0
    measures = ["bad"] * 30 + ["good"] * 30
    results = online_agreement(measures, np.r_[bad, good], np.r_[online, online])
    assert [each.measure for each in results] == ["good", "bad"]
    assert results[0].same_sign == np.mean(np.sign(good) == np.sign(online))
    assert results[0].sign_low > 0.5
    assert results[1].sign_low < 0.5 < results[1].sign_high
    assert (results[1].pairs, results[1].left_out) == (28, 2)
    path = tmp_path / "pairs.csv"
    path.write_text(
        "measure,offline,online\n" + "".join(
            f"{m},{a},{b}\n" for m, a, b in zip(measures, [*bad, *good], [*online] * 2, strict=True)
        )
    )  # fmt: skip
    assert json.loads(succeed("online", "agree", path, "--json"))[0]["measure"] == "good"
    path.write_text("measure,offline,online\nsame,1,2\nsame,1,2\nsame,1,2\n")  # no tau
    assert "NaN" not in succeed("online", "agree", path, "--json")


def test_mistakes_are_explained(interleaved: str, tmp_path: Path) -> None:
    report = ("online", "report", interleaved)
    assert "Add --assignment" in fail(*report, "--metric", "click_rate")
    assert "--events are of a ranking log" in fail(*report, "--events", "e.jsonl")
    assert "is not a pair" in fail(*report, "--pair", "new")
    assert "cannot be written as a report" in fail(*report, "-o", "report.pdf")
    assert "is not a time" in fail(*report, "--assignment", "team", "--since", "soon")
    assert "has no column 'galaxy'" in fail(*report, "--slices", "galaxy")
    (tmp_path / "pairs.csv").write_text("a,b\n1,2\n")
    assert "has no differences" in fail("online", "agree", tmp_path / "pairs.csv")
    assert "is not a share" in fail("online", "plan", tmp_path, "--gain", "much")


def test_a_plan_needs_clicks_that_vary(tmp_path: Path) -> None:
    rows = {"search_id": list(range(40)), "query": ["q"] * 40, "document_id": ["a"] * 40,
            "rank": [1] * 40, "clicked": [True] * 40}  # fmt: skip
    import_clicks(rows, tmp_path / "log")
    assert "the same clicks in all searches" in fail(
        "online", "plan", tmp_path / "log", "--gain", "2%"
    )
