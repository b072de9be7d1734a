"""Every screen by its name: what to do to see it.

Pictures are taken of all of them, and all are checked for accessibility. A new page is a new
function here, under `scene`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page, Route
from sqlalchemy import Connection, Engine, insert, select, update

from podium.studio.accounts.service import add_user, invite
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.service import add_queries, project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import Project, ProjectQuery, QueryAssignment
from tests.studio.browser.bees import bees, bees_project
from tests.studio.browser.chromium import Judging
from tests.studio.browser.shop import QUESTIONS, SCALE, draw_pictures, shop_project
from tests.studio.judging_helpers import Judges


@dataclass(frozen=True)
class Stage:
    """A server with people in it; every scene makes the projects that it needs.

    Attributes:
        engine: The database.
        ann: The account that looks at the pages.
        bob: Another account.
    """

    engine: Engine
    ann: int
    bob: int


@dataclass(frozen=True)
class Scene:
    """A screen: whether a stranger sees it, and what leads there."""

    play: Callable[[Stage, Page], None]
    stranger: bool


SCENES: dict[str, Scene] = {}

Play = Callable[[Stage, Page], None]


def scene(*, stranger: bool = False) -> Callable[[Play], Play]:
    """Add a screen under the function's name."""

    def add(play: Play) -> Play:
        SCENES[play.__name__.replace("_", "-")] = Scene(play, stranger)
        return play

    return add


def set_up(engine: Engine) -> Stage:
    """The people."""

    def work(connection):
        ann = add_user(connection, "ann@example.org", "Ann Archer", None, admin=True, verified=True)
        return Stage(engine, ann, add_user(connection, "bob@example.org", "Bob Baker", None))

    return in_transaction(engine, work)


def _judge(stage: Stage, page: Page, **settings) -> Judging:
    tab = Judging(page, bees_project(stage.engine, stage.ann, **settings)).open()
    tab.ready()
    return tab


def _row(stage: Stage, project: int) -> Any:
    return reading(stage.engine, lambda c: project_row(c, project))


@scene(stranger=True)
def sign_in(_stage: Stage, page: Page) -> None:
    page.goto("/sign-in")


@scene(stranger=True)
def sign_in_refused(_stage: Stage, page: Page) -> None:
    page.goto("/sign-in")
    page.get_by_label("E-mail").fill("nobody@example.org")
    page.get_by_label("Password").fill("wrong password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(".problem")


@scene(stranger=True)
def join(stage: Stage, page: Page) -> None:
    project = bees_project(stage.engine, stage.ann)
    secret = in_transaction(stage.engine, lambda c: invite(c, project, Role.ASSESSOR))
    page.goto(f"/join/{secret}")


@scene()
def join_signed_in(stage: Stage, page: Page) -> None:
    join(stage, page)


@scene()
def error(_stage: Stage, page: Page) -> None:
    page.goto("/nowhere")


@scene()
def judge_pairs(stage: Stage, page: Page) -> None:
    tab = _judge(stage, page)
    tab.answer("ArrowLeft")
    tab.ready()


@scene()
def judge_pairs_html(stage: Stage, page: Page) -> None:
    _judge(stage, page, html=True)


@scene()
def judge_grades(stage: Stage, page: Page) -> None:
    _judge(stage, page, mode="grades")


@scene()
def judge_rankings(stage: Stage, page: Page) -> None:
    _judge(stage, page, mode="rankings")
    page.locator("summary:visible").nth(1).click()
    page.wait_for_selector(".ranking .text")


def _judge_shop(stage: Stage, page: Page, **settings) -> Judging:
    draw_pictures(page)
    tab = Judging(page, shop_project(stage.engine, stage.ann, **settings)).open()
    tab.ready()
    return tab


@scene()
def judge_results(stage: Stage, page: Page) -> None:
    _judge_shop(stage, page, questions=QUESTIONS)


@scene()
def judge_scale(stage: Stage, page: Page) -> None:
    _judge_shop(stage, page, mode="grades", scale=SCALE)


@scene()
def judge_results_rankings(stage: Stage, page: Page) -> None:
    _judge_shop(stage, page, mode="rankings")


@scene()
def judge_help(stage: Stage, page: Page) -> None:
    _judge(stage, page).page.keyboard.press("?")


@scene()
def judge_guidelines(stage: Stage, page: Page) -> None:
    _judge(stage, page).page.keyboard.press("g")


@scene()
def judge_skip(stage: Stage, page: Page) -> None:
    _judge(stage, page).page.keyboard.press("s")


@scene()
def judge_comment(stage: Stage, page: Page) -> None:
    _judge(stage, page).page.keyboard.press("c")


@scene()
def judge_still_there(stage: Stage, page: Page) -> None:
    page.clock.install()
    _judge(stage, page)
    page.clock.fast_forward(700_000)
    page.wait_for_selector("dialog[open]")


@scene()
def judge_break(stage: Stage, page: Page) -> None:
    _judge(stage, page).page.keyboard.press("p")


@scene()
def judge_undone(stage: Stage, page: Page) -> None:
    tab = _judge(stage, page)
    tab.answer("ArrowLeft")
    tab.wait_until_saved()
    tab.ready()
    page.keyboard.press("u")
    page.wait_for_selector("text=was undone")
    tab.ready()


@scene()
def judge_sending(stage: Stage, page: Page) -> None:
    tab = _judge(stage, page)
    page.route("**/answers", lambda route: route.abort())
    tab.answer("ArrowLeft")
    tab.wait_for("sending")


@scene()
def judge_offline(stage: Stage, page: Page) -> None:
    page.route("**/next", lambda route: route.abort())
    Judging(page, bees_project(stage.engine, stage.ann)).open().wait_for("offline")


@scene()
def judge_wait(stage: Stage, page: Page) -> None:
    project = bees_project(stage.engine, stage.ann, count=2, k=1)
    Judges(stage.engine).next(_row(stage, project), stage.bob, "tab")
    Judging(page, project).open().wait_for("wait")


@scene()
def judge_paused(stage: Stage, page: Page) -> None:
    project = bees_project(stage.engine, stage.ann)
    pause = update(Project).where(Project.id == project).values(paused=True)
    in_transaction(stage.engine, lambda c: c.execute(pause))
    Judging(page, project).open().wait_for("paused")


@scene()
def judge_yours_done(stage: Stage, page: Page) -> None:
    project = bees_project(stage.engine, stage.ann, count=2, k=1, assigned_only=True)
    row = _row(stage, project)

    def assign(connection: Connection) -> None:
        add_queries(connection, row, [bees(query_id="wasps")])
        queries = connection.scalars(
            select(ProjectQuery.id).where(ProjectQuery.project_id == project)
        )
        people = [stage.ann, stage.bob]
        for query, person in zip(queries.all(), people, strict=True):
            connection.execute(insert(QueryAssignment).values(query_id=query, user_id=person))

    in_transaction(stage.engine, assign)
    service = Judges(stage.engine)
    given = service.next(row, stage.ann, "tab")
    assert isinstance(given, LeasedTask)
    service.answer(row, stage.ann, given.token, "left", seconds=1, tab="tab")
    Judging(page, project).open().wait_for("yours-done")


@scene()
def judge_not_assigned(stage: Stage, page: Page) -> None:
    project = bees_project(stage.engine, stage.ann, assigned_only=True)
    Judging(page, project).open().wait_for("blocked")


@scene()
def judge_blocked(stage: Stage, page: Page) -> None:
    Judging(page, blocked_project(stage)).open().wait_for("blocked")


def blocked_project(stage: Stage) -> int:
    """A project in which two people must judge every pair, and there is one."""
    project = bees_project(stage.engine, stage.ann, count=2, k=1, overlap_share=1.0)
    service, row = Judges(stage.engine), _row(stage, project)
    given = service.next(row, stage.ann, "tab")
    assert isinstance(given, LeasedTask)
    service.answer(row, stage.ann, given.token, "left", seconds=1, tab="tab")
    return project


@scene()
def judge_done(stage: Stage, page: Page) -> None:
    project = bees_project(stage.engine, stage.ann, count=2, k=1)
    service, row = Judges(stage.engine), _row(stage, project)
    given = service.next(row, stage.ann, "tab")
    assert isinstance(given, LeasedTask)
    service.answer(row, stage.ann, given.token, "left", seconds=1, tab="tab")
    Judging(page, project).open().wait_for("done")


@scene()
def judge_sign_in(stage: Stage, page: Page) -> None:
    tab = _judge(stage, page)
    page.context.clear_cookies()
    tab.answer("ArrowLeft")
    tab.wait_for("sign-in")


@scene()
def judge_out_of_date(stage: Stage, page: Page) -> None:
    tab = _judge(stage, page)
    page.route("**/answers", lambda route: _refuse(route, 403, "This page is out of date."))
    tab.answer("ArrowLeft")
    tab.wait_for("out-of-date")


@scene()
def judge_gone(stage: Stage, page: Page) -> None:
    page.route("**/next", lambda route: _refuse(route, 404, "The project does not exist."))
    Judging(page, bees_project(stage.engine, stage.ann)).open().wait_for("gone")


def _refuse(route: Route, status: int, problem: str) -> None:
    route.fulfill(status=status, json={"detail": problem})
