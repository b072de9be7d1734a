"""Every screen by the rules of axe-core, light and dark, wide and narrow."""

from __future__ import annotations

import os

import pytest

from tests.studio.browser import flow_scenes, project_scenes  # noqa: F401 - add their scenes
from tests.studio.browser.chromium import ROOT
from tests.studio.browser.scenes import SCENES, set_up
from tests.studio.browser.screenshots import looks

AXE = ROOT / "node_modules/axe-core/axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def axe():
    if not AXE.exists():
        if os.environ.get("CI"):
            pytest.fail("axe-core is missing: npm ci")
        pytest.skip("needs axe-core: npm ci")
    return AXE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENES))
def test_no_violation(engine, person_browser, axe, name):
    stage, scene = set_up(engine), SCENES[name]
    context = person_browser(
        None if scene.stranger else stage.ann,
        reduced_motion="reduce",
        bypass_csp=True,  # axe comes as a script of the test's own
    )
    page = context.new_page()
    scene.play(stage, page)
    page.evaluate(axe)
    for look in looks(page):
        found = page.evaluate(
            "tags => axe.run(document, {runOnly: tags, iframes: false})", STANDARDS
        )
        problems = [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]
        assert not problems, f"{look}: " + "\n".join(problems)
