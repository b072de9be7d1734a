"""The screens of running a project, as `tests.studio.browser.scenes` has those of judging."""

from __future__ import annotations

import random
import time

from playwright.sync_api import FilePayload, Page
from sqlalchemy import func, insert, select, update

from podium.data import Candidate, CandidateList
from podium.studio.accounts.service import sign_in
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.service import (
    ProjectSettings,
    add_queries,
    create_project,
    project_row,
)
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import Gold, JudgmentCount, LogEntry, Membership, Project
from podium.studio.web.access import COOKIE
from tests.studio.browser.bees import GUIDELINES
from tests.studio.browser.scenes import Stage, blocked_project, scene
from tests.studio.browser.shop import QUESTIONS, SCALE, draw_pictures, shop_project
from tests.studio.judging_helpers import Judges

_QUERIES = {
    "Which running shoes for wide feet?": "Somebody with wide feet wants to start running.",
    "waterproof jacket with hood": "For walking in the rain, not for sailing.",
    "how do I wash merino wool": "The answer must name the temperature.",
    "tent for two, under two kilos": "",
}


def busy_project(stage: Stage) -> int:
    """A project that two people have judged for a while, one of them not very carefully."""
    rng = random.Random(3)

    def make(connection):
        settings = ProjectSettings(
            name="Outdoor shop, spring",
            k=4,
            overlap_share=0.6,
            repeat_rate=0.15,
            gold_rate=0.1,
            guidelines=GUIDELINES,
        )
        project_id = create_project(connection, stage.ann, settings)
        connection.execute(
            insert(Membership).values(
                project_id=project_id, user_id=stage.bob, role=Role.ASSESSOR.value
            )
        )
        add_queries(connection, project_row(connection, project_id), _entries())
        return project_id

    def gold(connection):
        from podium.studio.store.tables import ProjectQuery

        for query in connection.scalars(
            select(ProjectQuery.id).where(ProjectQuery.project_id == project_id)
        ):
            connection.execute(insert(Gold).values(query_id=query, left=0, right=7, outcome=1))

    project_id = in_transaction(stage.engine, make)
    in_transaction(stage.engine, gold)
    project = reading(stage.engine, lambda c: project_row(c, project_id))
    clock = [1_800_000_000.0]
    service = Judges(stage.engine, lambda: clock[0], rng)
    tasks = {who: service.next(project, who, "tab") for who in (stage.ann, stage.bob)}
    for _ in range(24):
        for who, given in tasks.items():
            if not isinstance(given, LeasedTask):
                tasks[who] = service.next(project, who, "tab")
                continue
            seconds = rng.uniform(4, 20) if who == stage.ann else rng.uniform(1, 6)
            clock[0] += seconds
            right = given.task.left < given.task.right
            if rng.random() < (0.05 if who == stage.ann else 0.3):
                right = not right
            choice = "left" if right else "right"
            reason = None
            if rng.random() < 0.08:
                choice, reason = "tie", "Both answer the question."
            elif rng.random() < 0.05:
                choice, reason = "skip", "A document is broken or missing"
            _, tasks[who] = service.answer(
                project, who, given.token, choice, seconds=seconds, tab="tab", reason=reason
            )
    return project_id


def _entries() -> list[CandidateList]:
    return [
        CandidateList(
            f"shop-{number}",
            query,
            tuple(
                Candidate(f"sku{item}", title=f"Product {item}", text="What the shop says of it.")
                for item in range(8)
            ),
            description,
        )
        for number, (query, description) in enumerate(_QUERIES.items(), 1)
    ]


def _become(stage: Stage, page: Page, person: int) -> None:
    """Go on as someone else."""
    page.goto("/")
    secret = in_transaction(stage.engine, lambda c: sign_in(c, person, 1)).secret
    page.context.add_cookies([{"name": COOKIE, "value": secret, "url": page.url}])


@scene()
def project_dashboard_blocked(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{blocked_project(stage)}/dashboard")
    page.wait_for_selector("text=people are needed")


@scene()
def projects(stage: Stage, page: Page) -> None:
    busy_project(stage)
    page.goto("/")


@scene()
def project_new(_stage: Stage, page: Page) -> None:
    page.goto("/projects/new")


@scene()
def project_dashboard(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    in_transaction(stage.engine, _spread_over_days)
    page.goto(f"/projects/{project}/dashboard")
    page.wait_for_selector("text=Krippendorff", timeout=60_000)
    page.wait_for_selector(".chart svg")


def _spread_over_days(connection):
    """Judge within some days until now, rather than in minutes."""
    last, now = connection.scalar(select(func.max(LogEntry.at))), time.time()
    connection.execute(update(LogEntry).values(at=now - 600 * (last - LogEntry.at)))
    connection.execute(
        update(JudgmentCount).values(last_at=now - 600 * (last - JudgmentCount.last_at))
    )


@scene()
def project_queries(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    page.goto(f"/projects/{project}/dashboard")
    page.wait_for_selector("text=Krippendorff", timeout=60_000)
    page.goto(f"/projects/{project}/queries?sort=agreement")


@scene()
def project_query(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    page.goto(f"/projects/{project}/queries?sort=judgments&descending=true")
    page.locator("tbody a").first.click()
    page.get_by_role("button", name="Withdraw: Product").last.click()
    page.wait_for_selector("text=withdrawn >> visible=true")
    page.get_by_text("Fix…", exact=True).first.click()
    page.get_by_role("button", name="Discard").first.click()
    page.wait_for_selector("text=discarded")


@scene()
def project_person(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    page.goto(f"/projects/{project}/dashboard")
    page.wait_for_selector("text=Krippendorff", timeout=60_000)
    page.goto(f"/projects/{project}/people/{stage.bob}")
    page.get_by_role("button", name="Discard judgments").click()
    page.wait_for_selector("#discards .badge.good", timeout=60_000)


@scene()
def project_document(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/queries")
    page.locator("tbody a").first.click()
    page.get_by_role("link", name="Product 1", exact=True).first.click()


@scene()
def project_assessor(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    _become(stage, page, stage.bob)
    page.goto(f"/projects/{project}")


@scene()
def project_history(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/history")


@scene()
def project_history_answer(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/history")
    page.get_by_role("link", name="Change").first.click()


@scene()
def project_settings(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/settings")


@scene()
def project_screen(stage: Stage, page: Page) -> None:
    draw_pictures(page)
    project = shop_project(stage.engine, stage.ann, mode="grades", scale=SCALE, questions=QUESTIONS)
    page.goto(f"/projects/{project}/settings/screen")
    page.frame_locator("iframe.preview").locator(".price").first.wait_for()


@scene()
def start_data(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{empty_project(stage)}/import")


@scene()
def start_sure(stage: Stage, page: Page) -> None:
    project = shop_project(stage.engine, stage.ann)
    page.goto(f"/projects/{project}/settings")
    page.get_by_text("of work").first.wait_for(timeout=60_000)


def empty_project(stage: Stage) -> int:
    """A project that was just created."""
    settings = ProjectSettings(name="Outdoor shop, autumn")
    return in_transaction(stage.engine, lambda c: create_project(c, stage.ann, settings))


@scene()
def project_gold(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/gold")


@scene()
def project_import(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/import")


@scene()
def project_import_preview(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/import")
    rows = [
        "query,sku,title,description,price",
        'hiking boots,b1,Trail boots,"<p>Light and <b>waterproof</b>.</p>",129.90',
        "hiking boots,b2,Town shoes,<p>Leather</p>,89",
        "rain jacket,j1,Storm jacket,<p>Taped seams</p>,210",
    ]
    table = "\n".join(rows).encode()
    file = FilePayload(name="shop.csv", mimeType="text/csv", buffer=table)
    page.get_by_label("Drop files here").set_input_files(files=[file])
    page.get_by_role("button", name="Import", exact=True).first.click()
    page.frame_locator("iframe.preview").get_by_role("heading", name="Town shoes").wait_for()


@scene()
def projects_archived(stage: Stage, page: Page) -> None:
    project = busy_project(stage)
    archive = update(Project).where(Project.id == project).values(archived=True, paused=True)
    in_transaction(stage.engine, lambda c: c.execute(archive))
    page.goto("/")
    page.locator("main summary").click()


@scene()
def help(_stage: Stage, page: Page) -> None:  # noqa: A001 - the page's name
    page.goto("/help")


@scene()
def project_export(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/export")
    page.locator("main form button").first.click()
    page.wait_for_selector("a[href*='/file']", timeout=60_000)
    page.locator("#training-lines summary").click()


@scene()
def project_people(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/people")
    page.get_by_role("button", name="Create invitation link").click()
    page.wait_for_selector("text=shown only once")


@scene()
def project_assignment(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/assignment")


@scene()
def project_audit(stage: Stage, page: Page) -> None:
    page.goto(f"/projects/{busy_project(stage)}/audit")


@scene()
def tokens(_stage: Stage, page: Page) -> None:
    page.goto("/tokens")
    page.locator("[name=name]").fill("Nightly import")
    page.get_by_role("button", name="Create").click()
    page.wait_for_selector("text=shown only once")


@scene()
def accounts(stage: Stage, page: Page) -> None:
    busy_project(stage)
    page.goto("/accounts")
    page.locator("main summary").nth(1).click()


@scene()
def account(_stage: Stage, page: Page) -> None:
    page.goto("/account")


@scene()
def server_audit(stage: Stage, page: Page) -> None:
    busy_project(stage)
    page.goto("/audit")
