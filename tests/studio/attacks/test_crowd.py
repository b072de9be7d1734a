"""Completion codes are for work that was done, and workers' accounts only for that."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from podium.studio.settings import Settings
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program
from tests.studio.server import serving

CODE = "C0DE-7"


DATABASES = ["sqlite"]


@pytest.fixture
def worker(engine, database):
    """A worker's browser in a project of 16 documents to grade, of whom 4 judgments are wanted."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=8, mode="grades")
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as manager,
        Browser(address) as browser,
    ):
        wanted = {"code": CODE, "parameter": "W", "judgments": 4, "workers": 2}
        made = manager.post(f"/api/v1/projects/{project}/crowd-links", json=wanted).json()
        yield Worker(browser, project, made["link"].replace(address, ""))


class Worker:
    def __init__(self, browser, project, link):
        self.browser = browser
        self.home = f"/projects/{project}"
        page = browser.get(f"{link}?W=5f1e").text
        form = re.search(r'name="form" value="([^"]+)"', page)[1]
        browser.post(link, data={"external_id": "5f1e", "form": form})
        self.tokens = []
        self.headers = {"x-csrf-token": browser.csrf(self.home)}

    def call(self, what, **body):
        path = f"/api/v1{self.home}/{what}"
        return self.browser.post(path, json={"tab": "t", **body}, headers=self.headers)

    def answer(self, choice, count):
        """Answer tasks as long as there are any; how many."""
        for number in range(count):
            task = self.call("next").json()["task"]
            if task is None:
                return number
            self.call("answers", token=task["token"], choice=choice, seconds=1)
            self.tokens.append(task["token"])
        return count

    @property
    def has_code(self):
        return CODE in self.browser.get(self.home).text


def test_one_who_skips_gets_no_code(worker):
    assert worker.answer("good", 1) == 1
    assert worker.answer("skip", 100) == 15
    assert not worker.has_code
    # They can go back to what they skipped.
    for token in worker.tokens[-3:]:
        task = worker.call("undo", token=str(uuid4()), answer=token).json()["task"]
        worker.call("answers", token=task["token"], choice="good", seconds=1, more=False)
    assert worker.has_code


def test_work_cannot_be_taken_back_for_which_the_code_was_shown(worker):
    worker.answer("good", 4)
    assert worker.call("undo", token=str(uuid4())).status_code == 200  # it was not shown yet
    worker.answer("good", 1)
    assert worker.has_code
    for _ in range(4):
        refused = worker.call("undo", token=str(uuid4()))
        assert (refused.status_code, "completion code" in refused.json()["detail"]) == (409, True)
    assert worker.has_code


def test_workers_make_no_api_tokens(worker):
    form = {"csrf": worker.headers["x-csrf-token"], "name": "mine", "days": "30"}
    refused = worker.browser.post("/tokens", data=form)
    assert (refused.status_code, "podium_" in refused.text) == (409, False)
