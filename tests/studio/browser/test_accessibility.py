"""Every screen by the rules of axe-core, light and dark, wide and narrow; nothing is cut off."""

from __future__ import annotations

from itertools import cycle

import pytest

from tests.studio.browser import flow_scenes, project_scenes  # noqa: F401 - add their scenes
from tests.studio.browser.chromium import STANDARDS
from tests.studio.browser.scenes import SCENES, set_up
from tests.studio.browser.screenshots import SCHEMES, SIZES, looks

AXE_RUN = "tags => axe.run(document, {runOnly: tags, iframes: false, resultTypes: ['violations']})"
"""Without the details of what passes, which nothing here reads."""

ALL_LOOKS = tuple(f"{size}-{scheme}" for size in SIZES for scheme in SCHEMES)
CI_LOOKS = ("wide-light", "narrow-dark")
"""Screens take turns with them, for the rules take seconds; `make nightly` tries all of all."""
WIDTHS = (1440, 768, 390)
CUT_OFF = """() => {
  const cut = [];
  if (document.documentElement.scrollWidth > innerWidth) cut.push("the page scrolls sideways");
  const words = "button, .button, .badge, summary, label, legend, h1, h2, h3, p, dt, dd, li, td";
  for (const each of document.querySelectorAll(words)) {
    const { width, right } = each.getBoundingClientRect();
    if (!width || each.closest("[inert], .visually-hidden")) continue;
    const scrolls = each.closest(".table, .scroller, .secret, .lines, pre, nav, dialog");
    const wider = each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0;
    if (wider || (right > innerWidth + 1 && !scrolls)) cut.push(each.outerHTML.slice(0, 200));
  }
  return cut;
}"""
"""Text that does not fit its element, or is beyond the edge of a page that does not scroll."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "checked"),
    [
        pytest.param(name, looks_of_ci[:1], id=f"{name}-ci")
        for name, looks_of_ci in zip(SCENES, cycle([CI_LOOKS, CI_LOOKS[::-1]]), strict=False)
    ]
    + [pytest.param(name, ALL_LOOKS, marks=pytest.mark.long, id=f"{name}-all") for name in SCENES],
)
def test_no_violation(engine, person_browser, axe, name, checked):
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
        if look not in checked:
            continue
        found = page.evaluate(AXE_RUN, STANDARDS)
        problems = [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]
        assert not problems, f"{look}: " + "\n".join(problems)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CUT_OFF) == [], width
