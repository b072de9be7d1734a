"""A manager's day, from a spreadsheet to a trained ranker, by the studio's pages alone.

What the day consists of:

1. The manager signs in and creates a project, whose pages lead her through three steps.
2. She drops the shop's spreadsheet of products, says what its columns are while she looks at a
   pair as people will see it, and drops gold pairs, a second spreadsheet. She accepts the fields
   that are shown, chooses how sure the results are to be, reads the hints of the other settings,
   and invites people with one link.
3. People follow the link, choose a password and judge. One does not look at the products, and one
   is slow. The first few answers of one of them are given by keyboard in a browser, all others
   through the API of the judging page, in sessions that signed in as browsers do.
4. She watches the dashboard, where the careless person stands out: by flags, gold pairs and
   agreement, or, where there are too few judgments for flags, by gold pairs alone.
5. She takes that person out of the project and discards what they judged since the morning, on
   their page, by the time of her own clock. The others judge again what was discarded.
6. She makes herself adjudicator and decides where people disagree; judgments that contradict each
   other in a cycle are asked again by a button of the dashboard.
7. When all queries are done she exports the top-k labels as CSV and as TREC qrels, and copies the
   lines that the page of exports has for a notebook: with the labels and the shop's file of
   features they train a ranker and save it.

Nothing of it touches the database or a shell, except that an administrator made her account.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import BrowserContext, FilePayload, Page, expect

from podium.data import Judgments
from podium.data.preferences import Preferences
from podium.data.sources import as_judgments
from podium.measures import evaluate
from podium.rankers import load_ranker
from podium.studio.accounts.service import add_user
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from tests.studio.browser.chromium import Judging
from tests.studio.browser.shop_day import Assessor, Shop, as_run, at_work, judge_until_done
from tests.studio.factories import PASSWORD
from tests.studio.server import serving

PATIENCE = 600_000
"""How many milliseconds a job of the server may take: the machine may be busy."""
MANAGER = "mia@example.org"
ZONE = "Asia/Tokyo"
"""Not the server's: what she reads and types are times of her own clock."""


@pytest.fixture
def address(engine, database):  # noqa: ARG001 (the engine makes the tables)
    """A server at its own address: the links that it makes lead there."""
    with serving(Settings(database=database)) as found:
        yield found


@dataclass
class Manager:
    """The manager in front of her browser."""

    page: Page
    folder: Path
    project: int = 0

    @classmethod
    def sign_in(cls, context: BrowserContext, folder: Path) -> Manager:
        page = context.new_page()
        page.goto("/")
        page.get_by_label("E-mail address").fill(MANAGER)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        return cls(page, folder)

    def go_to(self, tab: str) -> None:
        """Follow a link of the project's navigation."""
        self.page.get_by_role("navigation", name="Project").get_by_role(
            "link", name=tab, exact=True
        ).click()

    def create_project(self, name: str) -> None:
        self.page.get_by_role("link", name="New project").click()
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Create project").click()
        self.project = int(re.search(r"/projects/(\d+)/import", self.page.url).group(1))

    def finish_start(self, k: int, settings: dict[str, str]) -> None:
        """Go through the steps after the import."""
        self.page.get_by_role("link", name="Continue", exact=True).click()
        preview = self.page.frame_locator("iframe.preview")
        expect(preview.locator(".documents .document-title").first).to_contain_text("Product")
        self.page.get_by_role("button", name="Save and continue").click()
        self.page.get_by_label("Documents to rank").fill(str(k))
        self.page.get_by_label("Fast").check()
        self.page.get_by_role("button", name="Save and finish").click()
        expect(self.page).to_have_url(re.compile("/dashboard"))
        self.go_to("Settings")
        self.page.get_by_text("Advanced", exact=True).click()
        for name, value in settings.items():
            self.page.locator(f"[name={name}]").fill(value)
        for hint in (
            "Only the best k are put in order; the rest count as equal.",
            "Agreement can be measured only where several people judge the same.",
            "Mixes in pairs with known answers; import them first.",
        ):
            expect(self.page.get_by_text(hint)).to_be_visible()
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Save settings").click()

    def drop(self, name: str, content: bytes) -> None:
        """Drop a file on the page of imports, and send it."""
        file = FilePayload(name=name, mimeType="text/csv", buffer=content)
        self.page.get_by_label("Drop files here").set_input_files(files=[file])
        self.page.get_by_role("button", name="Import", exact=True).first.click()

    def import_table(self, content: bytes, columns: dict[str, str]) -> None:
        self.drop("products.csv", content)
        expect(self.page.locator("table thead")).to_contain_text("Searched for")
        for field, column in columns.items():
            self.page.locator(f"[name={field}]").select_option(column)
        self.page.get_by_role("button", name="Import", exact=True).click()
        self._done(1)

    def import_gold(self, content: bytes) -> None:
        self.drop("gold.csv", content)
        self._done(2)

    def _done(self, count: int) -> None:
        """Wait until so many jobs of the page are done; it says so by itself."""
        jobs = self.page.locator("#jobs tbody tr")
        expect(jobs).to_have_count(count)
        expect(jobs.get_by_text("done", exact=True)).to_have_count(count, timeout=PATIENCE)

    def invite(self, people: int) -> str:
        self.go_to("People")
        self.page.locator("[name=uses]").fill(str(people))
        self.page.get_by_role("button", name="Create invitation link").click()
        return self.page.locator("code.secret").inner_text()

    def dashboard(self, judgments: int) -> dict[str, dict[str, str]]:
        """The table of assessors, once its figures have all judgments."""
        self.go_to("Overview")
        table = self.page.locator("section", has=self.page.get_by_role("heading", name="Assessors"))
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end:
            header = table.locator("thead th").all_inner_texts()
            rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
            figures = {
                row[0].removesuffix("check").strip(): dict(zip(header, row, strict=True))
                for row in rows
                if len(row) > 1
            }
            if sum(int(each["Judgments"]) for each in figures.values()) == judgments:
                return figures
            self.page.wait_for_timeout(1000)
        raise AssertionError(f"the dashboard never had {judgments} judgments: {figures}")

    def remove(self, name: str) -> None:
        self.go_to("People")
        self.page.get_by_role("button", name=f"Remove {name}").click()
        expect(self.page.get_by_role("link", name=name)).to_have_count(0)

    def discard(self, name: str, since: float) -> str:
        """Discard what someone judged since a time, and wait for the page's result."""
        self.go_to("Overview")
        self.page.get_by_role("link", name=name, exact=True).click()
        moment = self.page.evaluate(
            """since => {
              const date = new Date(since * 1000);
              return new Date(date - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
            }""",
            since,
        )
        self.page.locator("[data-utc]").fill(moment)
        self.page.locator("[name=reason]").first.fill("Did not look at the products.")
        self.page.get_by_role("button", name="Discard judgments").click()
        row = self.page.locator("#discards tr", has_text="Did not look")
        expect(row.get_by_text("done", exact=True)).to_be_visible(timeout=PATIENCE)
        return row.inner_text()

    def adjudicate(self, shop: Shop) -> int:
        """Decide all disagreements; gives how many there were."""
        self.go_to("Quality")
        self.page.locator("[name=user]").select_option("Mia")
        self.page.get_by_role("button", name="Save adjudicator").click()
        self.page.get_by_role("link", name="Decide disagreements").click()
        decided = 0
        decision = self.page.locator("[data-part=task][data-accepts]:not([hidden])")
        nothing = self.page.get_by_role("heading", name="Nothing to decide", exact=True)
        while True:
            expect(decision.or_(nothing)).to_be_visible(timeout=PATIENCE)
            if nothing.count():
                self.page.get_by_role("link", name="Go to project").click()
                return decided
            token = decision.get_attribute("data-shows")
            query = self.page.locator("[data-part=query]").inner_text()
            products = self.page.locator(".documents .document-title").all_inner_texts()
            left, right = (shop.worth[query][each.removeprefix("Product ")] for each in products)
            answer = "Left is better" if left > right else "Right is better"
            self.page.get_by_role("button", name=answer).click()
            expect(self.page.locator(f"[data-shows='{token}'][data-accepts]")).to_have_count(0)
            decided += 1

    def ask_contradictions_again(self) -> int:
        """Have judgments that contradict each other asked again; gives how many cycles."""
        self.go_to("Overview")
        table = self.page.locator(
            "section", has=self.page.get_by_role("heading", name="Contradictions")
        )
        cycles = [
            [row.locator(f"[name={name}]").get_attribute("value") for name in ("query", "loop")]
            for row in table.locator("tbody tr").all()
        ]
        for query, loop in cycles:
            row = table.locator(
                f"tr:has([name=query][value='{query}']):has([name=loop][value='{loop}'])"
            )
            if row.count():
                row.get_by_role("button", name="Rejudge").click()
        return len(cycles)

    def export(self, what: str, *, underscores: bool = False) -> Path:
        """Export labels, and download the file that the page offers."""
        self.go_to("Export")
        self.page.get_by_label(f"Top-k labels ({what})").check()
        if underscores:
            self.page.get_by_label("Write spaces in IDs as _").check()
        before = self.page.get_by_role("link", name="Download").count()
        self.page.get_by_role("button", name="Export", exact=True).click()
        links = self.page.get_by_role("link", name="Download")
        expect(links).to_have_count(before + 1, timeout=PATIENCE)
        with self.page.expect_download() as started:
            links.first.click()
        target = self.folder / started.value.suggested_filename
        started.value.save_as(target)
        return target

    def notebook_lines(self) -> str:
        """The lines that the page of exports has for a notebook."""
        self.go_to("Export")
        self.page.get_by_text("Train a ranker").click()
        return self.page.locator("pre.lines").inner_text()


def judge_by_hand(tab: Judging, shop: Shop, answers: int) -> None:
    """Give the first answers by keyboard."""
    for _ in range(answers):
        tab.ready()
        of = shop.worth[tab.part("query")]
        left, right = (of[title.removeprefix("Product ")] for title in tab.titles())
        tab.page.keyboard.press("ArrowLeft" if left > right else "ArrowRight")
        tab.wait_until_saved()


def open_by_link(context: BrowserContext, link: str, person: Assessor, project: int) -> Judging:
    """Follow an invitation link in a browser."""
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Your name").fill(person.name)
    page.get_by_label("E-mail address").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Join project").click()
    page.get_by_role("link", name="Start judging").click()
    return Judging(page, project)


@dataclass(frozen=True)
class Outcome:
    """How close labels are to what is true."""

    kappa_ndcg: float
    top_share: float


def outcome(shop: Shop, labels: Judgments | Preferences) -> Outcome:
    assert isinstance(labels, Judgments)
    measure = f"kNDCG(k={shop.k})@{shop.k}"
    (value,) = evaluate([measure], shop.truth, as_run(labels)).means.values()
    return Outcome(value, shop.top_share(labels))


def train(folder: Path, lines: str) -> str:
    """Run the lines as the cell of a notebook in a folder; gives what they print."""
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Day:
    """What came of a day."""

    with_careless: Outcome
    without: Outcome
    answers: int
    decided: int
    printed: str
    seconds: float


def live_through(
    shop: Shop,
    people: list[Assessor],
    careless: Assessor,
    folder: Path,
    person_browser,
    engine,
    settings: dict[str, str],
) -> Day:
    """The day as the docstring above has it."""
    begun = time.time()
    in_transaction(
        engine,
        lambda c: add_user(c, MANAGER, "Mia", PASSWORD, admin=True, verified=True),
    )
    context = person_browser(None, timezone_id=ZONE, accept_downloads=True)
    manager = Manager.sign_in(context, folder)
    manager.create_project("Autumn shop")
    columns = {
        "query": "Searched for",
        "document_id": "Article",
        "title": "Product",
        "text": "Blurb",
    }
    manager.import_table(shop.table, columns)
    manager.import_gold(shop.gold)
    manager.finish_start(shop.k, settings)
    link = manager.invite(len(people))

    first, *others = people
    tab = open_by_link(person_browser(None), link, first, manager.project)
    judge_by_hand(tab, shop, 3)
    first.answers = 3
    cookies = httpx2.Cookies()
    for cookie in tab.page.context.cookies():
        cookies.set(cookie["name"], cookie["value"], cookie["domain"], cookie["path"])
    first.take_over(link.split("/join/")[0], cookies)
    tab.page.goto("/")  # which releases what the tab holds
    tab.page.close()
    for person in others:
        person.join(link)
    for person in people:
        person.open(manager.project)
    judge_until_done(shop, people)

    figures = manager.dashboard(sum(person.answers for person in people))
    # Somebody who guesses may be right in the few gold pairs of a short day.
    right = {name: _share(cells["Gold correct"]) for name, cells in figures.items()}
    assert right[careless.name] == min(right.values())
    before = outcome(shop, as_judgments(manager.export("csv")))
    if len(people) > 2:  # enough judgments for flags, and others to agree with
        problems = manager.page.locator(".notice.warn li", has_text="gold pairs right")
        assert [text.split(":")[0] for text in problems.all_inner_texts()] == [careless.name]
        assert careless.name == min(
            figures, key=lambda name: _share(figures[name]["Agrees with others"])
        )

    manager.remove(careless.name)
    message = manager.discard(careless.name, begun - 60)
    assert re.search(r"(\d+) judgments", message).group(1) == str(careless.answers)
    rest = [person for person in people if person is not careless]
    decided = 0
    while True:
        judge_until_done(shop, rest)
        now = manager.adjudicate(shop)
        decided += now
        if not manager.ask_contradictions_again() and not now:
            break
    manager.go_to("Overview")
    progress = f"{len(shop.worth)} of {len(shop.worth)}"
    expect(manager.page.locator("dd").get_by_text(progress, exact=True)).to_be_visible()

    labels = manager.export("csv")
    qrels = as_judgments(manager.export("qrels", underscores=True))
    after = as_judgments(labels)
    assert sorted(qrels.query_ids.to_pylist()) == sorted(
        query.replace(" ", "_") for query in shop.worth
    )
    assert sorted(qrels.labels.tolist()) == sorted(after.labels.tolist())
    (folder / "features.csv").write_bytes(shop.features)
    printed = train(folder, manager.notebook_lines())
    answers = sum(person.answers for person in people)
    return Day(
        before, outcome(shop, after), answers, decided, printed, round(time.time() - begun, 1)
    )


def _share(cell: str) -> float:
    """A share as the overview writes it: "75 % 3 of 4"."""
    written = re.search(r"(\d+) of (\d+)", cell)
    return int(written[1]) / int(written[2]) if written else 1.0


@pytest.mark.slow
def test_a_day_of_three_queries(person_browser, engine, tmp_path):
    shop = Shop.stock(queries=3, items=5, k=3)
    careful, careless = Assessor("Cora", noise=0.0), Assessor("Carl", noise=None, seconds=2.0)
    settings = {"gold_rate": "0.3"}
    with at_work(careful, careless) as people:
        day = live_through(shop, people, careless, tmp_path, person_browser, engine, settings)
    assert day.without == Outcome(1.0, 1.0)  # nobody who is left makes mistakes
    assert day.with_careless.kappa_ndcg < 1.0
    assert load_ranker(tmp_path / "ranker.podium").feature_names_ == ("bm25", "clicks", "freshness")


@pytest.mark.slow
@pytest.mark.long
def test_a_day_of_a_hundred_queries(person_browser, engine, tmp_path, capsys):
    shop = Shop.stock(queries=100, items=15, k=10)
    careless = Assessor("Carl", noise=None, seconds=3.0)
    slow = Assessor("Sam", every=8, seconds=40.0)
    settings = {"overlap_share": "0.2", "gold_rate": "0.05", "repeat_rate": "0.02"}
    with at_work(Assessor("Ada"), careless, slow, Assessor("Ben"), Assessor("Cleo")) as people:
        day = live_through(shop, people, careless, tmp_path, person_browser, engine, settings)
    with capsys.disabled():
        print(f"\n{day}")
    assert day.without.kappa_ndcg > day.with_careless.kappa_ndcg + 0.05
    assert day.without.top_share > day.with_careless.top_share + 0.05
    assert load_ranker(tmp_path / "ranker.podium").feature_names_ == ("bm25", "clicks", "freshness")
