"""The engine stops and comes back while clients search."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest

from tests.engines.shop import DEFINITIONS, empty_solr, stock_solr
from tests.serving.load import Load
from tests.serving.service import command

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUERY, OUTAGES, BUDGET = "red running shoe", 10, 3_000


class SearchLoad(Load):
    """Clients that search. Expected are the pages by the model and by the engine."""

    path = "/search"

    def body(self):
        return json.dumps({"query": QUERY, "size": 10}).encode()

    def wait_for_reranked(self, seconds=120):
        """Wait until a page in the order of the model has come."""
        before, deadline = self.answers["model"], time.monotonic() + seconds
        while self.answers["model"] == before:
            assert time.monotonic() < deadline, "searches are not reranked again"
            time.sleep(0.05)

    def _check(self, status, content):
        if status != 200:
            self.refused.append(status)
            return
        answer = json.loads(content)
        order = "model" if answer["reranked"] else "engine"
        if [hit["id"] for hit in answer["hits"]] == self._expected[order]:
            self.answers[order] += 1
        else:
            self.wrong.append(order)


def test_outages_of_the_engine_are_answered_within_the_budget(solr, tmp_path):
    path = tmp_path / "features.toml"
    path.write_text(DEFINITIONS)
    shop = stock_solr(solr, path)
    ranker = shop.ranker()
    ranker.save(tmp_path / "m.podium")
    (tmp_path / "search.toml").write_text(
        f'engine = "solr"\nurl = "{shop.url}"\ndefinitions = "features.toml"\n'
        f"depth = 50\nbudget_ms = {BUDGET}\nconnections = 8\n"
    )
    candidates, rows = shop.in_index_order(QUERY, 50), shop.rows(QUERY, 50)
    order = np.argsort(-ranker._predict(rows), kind="stable")[:10]
    expected = {
        "model": [candidates[row].id for row in order],
        "engine": [candidate.id for candidate in shop.ask(QUERY, 10)],
    }
    arguments = [str(tmp_path / "m.podium"), "--workers", "2",
                 "--search", str(tmp_path / "search.toml")]  # fmt: skip
    try:
        with command(arguments, tmp_path / "log") as service:
            service.wait_for_event("ready", 2)
            with SearchLoad(service.port, expected) as load:
                for _ in range(OUTAGES):
                    load.wait_for_reranked()
                    os.kill(solr.process.pid, signal.SIGSTOP)
                    time.sleep(4)
                    os.kill(solr.process.pid, signal.SIGCONT)
                load.wait_for_reranked()
            assert service.stop() == 0
            events = service.events()
    finally:
        os.kill(solr.process.pid, signal.SIGCONT)
        empty_solr(solr)
    assert (load.wrong, load.failed) == ([], 0)
    assert set(load.refused) == {503}
    assert max(event["milliseconds"] for event in events if event["event"] == "request") < BUDGET
