"""Whatever is stored, it is shown and never run."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, update

from podium.data import Candidate, CandidateList
from podium.studio.accounts.service import add_user, invite
from podium.studio.projects.service import (
    ProjectSettings,
    add_queries,
    create_project,
    project_row,
)
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Role
from podium.studio.store.tables import Membership, Project
from tests.studio.browser.chromium import Judging

SCRIPT = "<script>window.ran = 1; parent.ran = 1</script>"
IMAGE = '<img src="x" onerror="window.ran = 1; parent.ran = 1">'
LINK = '<a href="javascript:window.ran = 1">click</a>'
ATTRIBUTE = "\"'><svg onload=window.ran=1>"
HOSTILE = SCRIPT + IMAGE + LINK + ATTRIBUTE + "{{ 7 * 7 }}"
MARKDOWN = f"{HOSTILE}\n\n[click](javascript:window.ran=1) ![x](x'onerror='window.ran=1)"


@pytest.fixture
def hostile(engine):
    """To each mode and format a project full of scripts, and who judges there."""

    def make(mode, markup):
        def work(connection):
            ann = add_user(connection, f"{mode}{markup}@example.org", HOSTILE[:200], None)
            settings = ProjectSettings(
                name=HOSTILE[:200], mode=mode, k=1, guidelines=MARKDOWN, lease_seconds=600
            )
            project_id = create_project(connection, ann, settings)
            candidates = tuple(
                Candidate(
                    f"{n}{HOSTILE}",
                    title=HOSTILE,
                    text="" if markup else HOSTILE,
                    html=HOSTILE + "<iframe src='/'></iframe>" if markup else "",
                    url="javascript:window.ran=1" if n else "https://x.example/\"onclick='ran=1'",
                )
                for n in range(3)
            )
            entry = CandidateList("q", HOSTILE, candidates, HOSTILE)
            items = [candidate.document_id for candidate in candidates]
            rankings = {"q": {HOSTILE: items, "other": items[::-1]}}
            add_queries(
                connection,
                project_row(connection, project_id),
                [entry],
                rankings if mode == "rankings" else None,
            )
            return ann, project_id

        return in_transaction(engine, work)

    return make


LONG = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize(
    ("mode", "markup"),
    [
        pytest.param("pairs", True, id="pairs-html"),
        pytest.param("rankings", False, id="rankings-text"),
        *(
            pytest.param(mode, markup, id=f"{mode}-{'html' if markup else 'text'}", marks=LONG)
            for mode, markup in (
                ("pairs", False), ("grades", False), ("grades", True), ("rankings", True),
            )
        ),
    ],
)  # fmt: skip
def test_judging(hostile, person_browser, mode, markup):
    ann, project = hostile(mode, markup)
    page = person_browser(ann).new_page()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    tab = Judging(page, project).open()
    tab.ready()
    assert page.locator('[data-part="query"]').text_content() == HOSTILE
    assert page.locator('[data-part="description"]').text_content() == HOSTILE
    if mode == "rankings":
        for summary in page.locator("summary").all():
            assert summary.text_content() == HOSTILE
            summary.click()
        page.wait_for_selector("iframe" if markup else ".text")
    else:
        assert set(tab.titles()) == {HOSTILE}
    if not markup:
        assert page.locator(".text").first.text_content() == HOSTILE
    page.keyboard.press("g")
    for link in page.locator("dialog[open] a, .document a").all():
        assert not (link.get_attribute("href") or "").startswith("javascript")
    page.keyboard.press("Escape")
    page.wait_for_timeout(200)
    assert page.evaluate("() => window.ran") is None
    # Our own elements alone are there: none came out of a text.
    assert page.locator(".judge-page :is(script, img, svg, object, embed)").count() == 0
    assert page.locator("main :is(script, svg, [onerror], [onload], [onclick])").count() == 0
    for frame in page.frames[1:]:
        assert frame.locator("script, iframe, svg, [onerror], [onload]").count() == 0


def test_other_pages(engine, hostile, person_browser):
    ann, project = hostile("pairs", False)
    in_transaction(
        engine,
        lambda c: c.execute(update(Project).values(name="<script>window.ran = 1</script>")),
    )
    secret = in_transaction(engine, lambda c: invite(c, project, Role.ASSESSOR))
    bob = in_transaction(engine, lambda c: add_user(c, "b@example.org", HOSTILE[:200], None))
    in_transaction(
        engine,
        lambda c: c.execute(
            insert(Membership).values(project_id=project, user_id=bob, role="assessor")
        ),
    )
    for who in (None, ann, bob):
        page = person_browser(who).new_page()
        for path in (f"/join/{secret}", f"/{HOSTILE}", f"/sign-in?to={HOSTILE}", "/"):
            page.goto(path)
            assert page.evaluate("() => window.ran") is None
            assert page.locator("main script").count() == 0


def test_the_policy_holds_back_what_would_get_through(hostile, person_browser):
    ann, project = hostile("pairs", True)
    page = person_browser(ann).new_page()
    tab = Judging(page, project).open()
    tab.ready()
    page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'window.ran = 1';
          document.body.append(script);
          document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.ran = 1">');
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("() => window.ran") is None
    frame = page.frames[1]
    response = page.request.get(frame.url)
    assert "sandbox" in response.headers["content-security-policy"]
    assert (
        page.locator("iframe").first.get_attribute("sandbox") == "allow-same-origin"
    )  # to measure it
