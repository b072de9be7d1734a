"""The screens of people's work flows: models, adjudication, training, crowds."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page
from sqlalchemy import Connection, select

from benchmarks._chat_endpoint import ChatServer, serve_chat
from podium.studio.accounts.crowd import make_link
from podium.studio.accounts.identity import Member, Person
from podium.studio.jobs.process import JobFunction, execute
from podium.studio.jobs.queue import JobContext
from podium.studio.judging.adjudication import set_adjudicator
from podium.studio.judging.training import Example, set_training
from podium.studio.models.assessors import (
    RUN,
    LabelSettings,
    ModelRow,
    ModelSettings,
    add_labels,
    add_model,
    start_run,
)
from podium.studio.models.audits import AUDIT, request_audit, run_audit
from podium.studio.models.run import run_model
from podium.studio.projects.service import project_row
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.rows import JobRow
from podium.studio.store.tables import ProjectQuery
from tests.studio.browser.chromium import Judging
from tests.studio.browser.project_scenes import busy_project
from tests.studio.browser.scenes import Stage, scene
from tests.studio.browser.shop import draw_pictures, shop_project
from tests.studio.claimed_jobs import claimed_job


def manager(stage: Stage, project: int) -> Member:
    """Ann as the manager of a project."""
    row = reading(stage.engine, lambda c: project_row(c, project))
    return Member(Person(stage.ann, "Ann Archer", "ann@example.org", True), Role.OWNER, row)


def judge_by_product(_query: str, documents: list[str]) -> dict[str, float]:
    """A model that is right most of the time, and sure of it."""
    one, other = (int(re.search(r"Product (\d)", each)[1]) for each in documents)  # type: ignore[index]
    lead = 0.8 if one < other else 0.15
    if {one, other} == {1, 2}:
        lead = 0.95 - lead
    return {"A": lead, "B": 0.95 - lead, "TIE": 0.05}


def judged_by_model(stage: Stage, project: int) -> ModelRow:
    """A project's model that has judged what people judged, and was audited."""
    who = manager(stage, project)
    with serve_chat(ChatServer(judge_by_product)) as url:
        settings = Settings(database="sqlite://", models=[url])
        wanted = ModelSettings(
            endpoint=url, model="tiny-judge", max_money=2, prompt_price=0.15, answer_price=0.6
        )
        row = in_transaction(stage.engine, lambda c: add_model(c, who, settings, wanted))
        run = claimed_job(stage.engine, RUN, lambda c: start_run(c, who, settings, row.id))
        _do(stage, run, run_model, settings)
    audit = claimed_job(stage.engine, AUDIT, lambda c: request_audit(c, who, row.id))
    _do(stage, audit, run_audit, settings)
    return row


def _do(stage: Stage, job: JobRow, function: JobFunction, settings: Settings) -> None:
    assert execute(function, JobContext(stage.engine, settings, job)).name == "done"


@scene()
def project_models(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    judged_by_model(stage, project)
    page.goto(f"/projects/{project}/models")


@scene()
def project_model(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    row = judged_by_model(stage, project)
    page.goto(f"/projects/{project}/models/{row.id}")
    page.locator("main summary").click()


@scene()
def project_model_audit(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    row = judged_by_model(stage, project)
    page.goto(f"/projects/{project}/models/{row.id}/audit")


@scene()
def project_labels_audit(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    who = manager(stage, project)
    settings = Settings(database="sqlite://")
    lines = [f"shop-{query} 0 sku{n} {6 - n}" for query in (1, 2, 3, 99) for n in range(5)]
    pairs = [f'{{"query": "shop-{query}", "documents": ["sku1", "sku2"]}}' for query in (1, 2, 3)]
    asked = LabelSettings(labels="\n".join([*lines, *pairs]))
    row = in_transaction(stage.engine, lambda c: add_labels(c, who, asked))
    run = claimed_job(stage.engine, RUN, lambda c: start_run(c, who, settings, row.id))
    _do(stage, run, run_model, settings)
    audit = claimed_job(stage.engine, AUDIT, lambda c: request_audit(c, who, row.id))
    _do(stage, audit, run_audit, settings)
    page.goto(f"/projects/{project}/models/{row.id}/audit")


@scene()
def project_query_with_model(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    judged_by_model(stage, project)
    done = select(ProjectQuery.id).where(ProjectQuery.project_id == project)
    first = reading(stage.engine, lambda c: c.scalars(done.order_by(ProjectQuery.id)).first())
    page.goto(f"/projects/{project}/queries/{first}")
    page.get_by_role("heading", name="Language models").scroll_into_view_if_needed()


def disputed_project(stage: Stage, page: Page) -> int:
    """A project whose disagreements Ann decides, with training."""
    project = busy_project(stage)
    who = manager(stage, project)

    def set_up_quality(connection: Connection) -> None:
        set_adjudicator(connection, who, stage.ann)
        examples = [
            Example("shop-1", (f"sku{n}", f"sku{n + 1}"), 1, "Shoes for wide feet must say so.")
            for n in range(3)
        ]
        set_training(connection, who, examples, 0.8)

    in_transaction(stage.engine, set_up_quality)
    page.goto(f"/projects/{project}/dashboard")
    page.wait_for_selector("text=Krippendorff", timeout=60_000)
    return project


@scene()
def project_quality(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{disputed_project(stage, page)}/quality")


@scene()
def adjudicate(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{disputed_project(stage, page)}/adjudicate")
    page.wait_for_selector(".votes li")


@scene()
def training(stage: Stage, page: Page) -> None:
    tab = Judging(page, disputed_project(stage, page))
    page.goto(f"/projects/{tab.project}/training")
    tab.answer("ArrowRight")
    page.wait_for_selector("text=Not quite")


@scene()
def project_webhooks(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    page.goto(f"/projects/{project}/settings/webhooks")
    page.get_by_label("URL").fill("https://hooks.example.org/podium")
    page.get_by_role("button", name="Add webhook").click()
    page.wait_for_selector("text=shown only once")


@scene()
def project_crowd(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    page.goto(f"/projects/{project}/crowd")
    page.get_by_label("Completion code").fill("C7XQ2")
    page.get_by_role("button", name="Create link").click()
    page.wait_for_selector("text=shown only once")


@scene(stranger=True)
def crowd_arrive(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    work: dict[str, Any] = {
        "parameter": "PROLIFIC_PID",
        "code": "C",
        "judgments": 2,
        "workers": 2,
        "days": 1,
    }
    secret = in_transaction(stage.engine, lambda c: make_link(c, manager(stage, project), **work))
    page.goto(f"/crowd/{secret}?PROLIFIC_PID=5f1e")


@scene(stranger=True)
def reset(_stage: Stage, page: Page) -> None:
    page.goto("/reset")


@scene()
def preview(stage: Stage, page: Page) -> None:
    draw_pictures(page)
    tab = Judging(page, shop_project(stage.engine, stage.ann))
    page.goto(f"/projects/{tab.project}/preview")
    tab.ready()
