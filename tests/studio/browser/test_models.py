"""Two people and a model judge; a manager audits the model and exports what it judged."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from sqlalchemy import select

from benchmarks._chat_endpoint import ChatServer, serve_chat
from podium.data import read_qrels
from podium.studio.settings import Settings
from podium.studio.store.database import reading
from podium.studio.store.tables import LogEntry
from tests.studio.browser.chromium import Judging, signed_in
from tests.studio.factories import make_people, make_project
from tests.studio.server import serving


def by_number(_query, documents):
    one, other = (int(re.search(r"Text of (\d+) for", each)[1]) for each in documents)
    return {"A": float(one < other), "B": float(one > other), "TIE": 0.0}


@pytest.mark.slow
def test_two_people_and_a_model(browser, engine, database, tmp_path):
    ann, bob = people = make_people(engine, 2)
    project = make_project(engine, people, queries=1, items=3, k=2, overlap_share=1.0)
    with serve_chat(ChatServer(by_number)) as url:
        settings = Settings(
            database=database, exports=tmp_path, models=[url.replace("//", "//:k3y@")]
        )
        with serving(settings, job_child=True) as address:
            for person in people:
                context = signed_in(browser, engine, address, person)
                tab = Judging(context.new_page(), project).open()
                tab.page.wait_for_selector(
                    '[data-part="task"][data-accepts], [data-screen="done"]:not([hidden])'
                )
                while tab.screen == "task":
                    left, right = tab.titles()
                    before = tab.ready()
                    tab.page.keyboard.press("ArrowLeft" if left < right else "ArrowRight")
                    tab.page.wait_for_function(
                        "before => { const task = document.querySelector('[data-part=task]');"
                        " const screen = document.querySelector('[data-screen]:not([hidden])');"
                        " return screen.dataset.screen !== 'task' && screen.dataset.screen !== "
                        "'sending' || task.dataset.accepts && task.dataset.accepts !== before; }",
                        arg=before,
                    )
                context.close()
            context = signed_in(browser, engine, address, ann, accept_downloads=True)
            page = context.new_page()
            page.goto(f"/projects/{project}/models")
            assert "k3y" not in page.content()
            add = page.get_by_role("button", name="Add model")
            form = page.locator("form", has=add)
            form.locator("input[name=model]").fill("tiny")
            form.locator("select[name=scope]").select_option("all")
            form.get_by_label("Most requests").fill("100")
            add.click()
            page.get_by_role("button", name="Start").click()
            expect(page.locator("#status")).to_contain_text("new judgments", timeout=120_000)
            page.get_by_role("link", name="Audit", exact=True).click()
            page.get_by_role("button", name="Audit now").click()
            expect(page.get_by_role("heading", name="Figures")).to_be_visible(timeout=120_000)
            expect(page.locator("tr", has_text="agreement with people")).to_contain_text("1.00")
            page.goto(f"/projects/{project}/export")
            page.locator("select[name=model]").select_option(index=1)
            page.get_by_role("button", name="Export").click()
            with page.expect_download(timeout=180_000) as download:
                page.get_by_role("link", name="Download").click(timeout=120_000)
            download.value.save_as(tmp_path / "model.qrels")
            assert "-by-model-" in download.value.suggested_filename
            context.close()
    labels = read_qrels(tmp_path / "model.qrels")
    found = dict(zip(labels.document_ids.to_pylist(), labels.labels.tolist(), strict=True))
    assert found == {"d00": 2, "d01": 1, "d02": 0}
    log = reading(engine, lambda c: c.execute(select(LogEntry.user_id, LogEntry.purpose)).all())
    assert {row.user_id for row in log if row.purpose == "main"} == {ann, bob}
    assert len({row.user_id for row in log if row.purpose == "model"} - {ann, bob}) == 1
