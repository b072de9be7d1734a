"""Searches of a running engine that two models rank: drafts, pages, faults, and the recount."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from podium.clicks import import_clicks
from podium.online import compare_interleaved
from podium.serving import ServingSettings
from podium.serving.experiment import Experiment, InterleaveSettings
from podium.serving.search_settings import SearchSettings
from podium.serving.settings import parse_model
from tests.engines.shop import DEFINITIONS, Shop, empty_solr, stock_solr
from tests.serving.service import serving

pytestmark = pytest.mark.slow

QUERY = "red running shoe"


@pytest.fixture(scope="module")
def shop(solr: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    path = tmp_path_factory.mktemp("shop") / "features.toml"
    path.write_text(DEFINITIONS)
    shop = stock_solr(solr, path)
    for name, sign in (("old", 1.0), ("new", -1.0)):
        shop.ranker(sign).save(path.with_name(f"{name}.podium"))
    path.with_name("key").write_text("secret")
    yield shop
    empty_solr(solr)


def settings(shop: Shop, **changes: Any) -> InterleaveSettings:
    values: dict[str, Any] = {"old": "old", "new": "new", "share": 1.0}
    return InterleaveSettings(**values | {"key_file": str(shop.path.with_name("key"))} | changes)


@contextmanager
def service(shop: Shop, log: Path, **changes: Any) -> Iterator[httpx2.Client]:
    search = SearchSettings(
        engine="solr", url=shop.url, definitions=str(shop.path), depth=50, budget_ms=60_000
    )
    models = tuple(parse_model(str(shop.path.with_name(f"{n}.podium"))) for n in ("old", "new"))
    all_settings = ServingSettings(
        models=models, search=search, ranking_log=str(log), interleave=settings(shop, **changes)
    )
    with (
        serving(all_settings) as address,
        httpx2.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        yield client


def ask(http: httpx2.Client, search_id: str, **body: Any) -> dict[str, Any]:
    answer = http.post("/search", json={"query": QUERY, "search_id": search_id, **body})
    content: dict[str, Any] = answer.raise_for_status().json()
    return content | {"ids": [hit["id"] for hit in content["hits"]]}


def count(client: httpx2.Client, outcome: str) -> float:
    name = f'podium_serving_interleaved_total{{outcome="{outcome}"}} '
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def lines(log: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in sorted(log.glob("rankings-*"))
        for line in gzip.open(file, "rt")
    ]


def ranking(shop: Shop, sign: float) -> tuple[list[str], list[int]]:
    ids = [each.id for each in shop.in_index_order(QUERY, 50)]
    scores = shop.ranker(sign)._predict(shop.rows(QUERY, 50))
    return ids, np.argsort(-scores, kind="stable").tolist()


def test_pages_are_parts_of_one_draft_and_the_report_is_a_recount(
    shop: Shop, tmp_path: Path
) -> None:
    ids, old = ranking(shop, 1.0)
    _, new = ranking(shop, -1.0)
    events, credits_of = [], {}
    random = np.random.default_rng(0)
    with service(shop, tmp_path / "log", share=0.6) as client:
        for number in range(60):
            search, person = f"s{number}", f"person {number}"
            pages = [ask(client, search, client=person, **{"from": n, "size": 7}) for n in (0, 7)]
            experiment = Experiment(settings(shop, share=0.6), tmp_path)
            both = pages[0]["ids"] + pages[1]["ids"]
            if experiment.takes_part(search, person):
                name = pages[0]["experiment"]
                draft = experiment.draft(name, search, old, new, 14)
                assert both == [ids[row] for row in draft.documents]
                credits_of[search] = dict(zip(both, draft.credits, strict=True))
            else:
                assert "experiment" not in pages[0]
                assert both == [ids[row] for row in old[:14]]
            events += [
                {"search_id": search, "document_id": each, "action": "click",
                 "time": pages[0].get("time", 0)}
                for each in random.choice(both, int(random.integers(0, 3)), replace=False)
            ]  # fmt: skip
        off = ask(client, "s0", client="person 0", interleave=False)
        assert off["ids"] == [ids[row] for row in old[:10]]
        assert count(client, "interleaved") == 2 * len(credits_of)
        assert count(client, "failed") == 0
    log = lines(tmp_path / "log")
    assert 20 < len(credits_of) < 50
    assert sum("experiment" in line for line in log) == 2 * len(credits_of)
    assert all("person" not in json.dumps(line) for line in log)
    time_of = {line["search_id"]: line["time"] for line in log}
    clicks = tmp_path / "events.jsonl"
    clicks.write_text(
        "".join(json.dumps(e | {"time": time_of[e["search_id"]]}) + "\n" for e in events)
    )
    table = import_clicks(tmp_path / "log", tmp_path / "clicks", events=[clicks])
    report = compare_interleaved(table)
    clicked: dict[str, set[str]] = {}
    for event in events:
        clicked.setdefault(event["search_id"], set()).add(event["document_id"])
    totals = {
        search: [credit[each] for each in clicked[search]]
        for search, credit in credits_of.items()
        if search in clicked and search != "s0"  # it was also answered without a draft
    }
    assert report.counts["several experiments"] == 1
    expected = [np.sign(sum(each)) for each in totals.values() if any(each)]
    assert report.first.difference.searches == len(expected)
    assert report.first.difference.value == pytest.approx(np.mean(expected))
    assert (report.old, report.new) == ("old", "new")
    assert report.by_client is True


def test_a_model_that_fails_costs_no_search_and_is_not_counted(shop: Shop, tmp_path: Path) -> None:
    ids, old = ranking(shop, 1.0)
    with service(shop, tmp_path / "log", new="absent") as client:
        answer = ask(client, "s")
        assert answer["ids"] == [ids[row] for row in old[:10]]
        assert answer["reranked"] is True
        assert "experiment" not in answer
        assert (count(client, "interleaved"), count(client, "failed")) == (0, 1)
    assert "experiment" not in lines(tmp_path / "log")[0]
