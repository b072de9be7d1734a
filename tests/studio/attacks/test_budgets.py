"""An endpoint never sees more requests than a model's budget, whatever it answers."""

from __future__ import annotations

import time

import pytest

from benchmarks._chat_endpoint import ChatServer, serve_chat
from podium.studio.settings import Settings
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import program
from tests.studio.server import serving


@pytest.fixture
def chat():
    return ChatServer()


@pytest.fixture
def model(engine, database, tmp_path, chat):
    """Two servers on one database, and a model: starts, stops and looks at it."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=9, mode="grades")
    with serve_chat(chat) as endpoint:
        settings = Settings(database=database, exports=tmp_path / "files", models=[endpoint])
        with (
            serving(settings),
            serving(settings) as address,
            program(engine, address, ann) as client,
        ):
            yield Model(client, project, endpoint)


class Model:
    def __init__(self, client, project, endpoint):
        self.client = client
        self.path = f"/api/v1/projects/{project}/models"
        self.added = {"endpoint": endpoint, "model": "tiny", "scope": "all", "connections": 4}

    def add(self, **budget):
        added = self.client.post(self.path, json=self.added | budget)
        self.path += f"/{added.json()['id']}"

    def call(self, what=""):
        answer = self.client.request("POST" if what else "GET", self.path + what)
        assert answer.is_success, answer.text
        return answer.json()

    def run(self):
        state = self.call("/run")
        while state["run"]["state"] in ("waiting", "running"):
            time.sleep(0.05)
            state = self.call()
        return state


@pytest.mark.parametrize("fault", ["malformed", "redirect", "prose", "cut"])
def test_answers_that_cannot_be_used_count_over_all_runs(model, chat, fault):
    chat.faults = [fault] * 100
    model.add(max_requests=5)
    for _ in range(3):
        seen = model.run()
    assert len(chat.requests) == seen["requests"] == 5


def test_a_stopped_run_and_the_next_share_a_budget(model, chat):
    chat.delay = 3.0
    model.add(max_requests=6)
    model.call("/run")
    while len(chat.requests) < 4:
        time.sleep(0.02)
    model.call("/stop")
    chat.delay = 0.0
    assert model.run()["requests"] == len(chat.requests) == 6


def test_tokens_without_an_answer_count_over_all_runs(model, chat):
    chat.faults = ["malformed"] * 100
    model.add(max_tokens=1)
    for _ in range(2):
        model.run()
    assert len(chat.requests) == 1
