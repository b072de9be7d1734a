"""How soon the judging page shows the next pair after a key, in Chromium.

    python -m benchmarks._judging_speed

measures it alone. People read for a while before each answer, so that what the page fetches ahead
has arrived; a delay of the network is emulated by Chromium, on every request.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page

from podium.logs import set_up_logs
from podium.studio.settings import Settings
from podium.studio.store.database import connect
from podium.studio.store.migrate import upgrade
from tests.studio.browser.chromium import Judging, chromium, signed_in
from tests.studio.factories import make_people, make_project
from tests.studio.server import serving

_READING = 2.0
"""Seconds between two answers of a person."""
_WATCH = """() => {
  window.took = [];
  let pressed = null;
  addEventListener("keydown", () => { pressed = performance.now(); }, true);
  const task = document.querySelector('[data-part="task"]');
  new MutationObserver(() => {
    const begun = pressed;
    pressed = null;
    if (begun === null) return;
    // A message from the callback of a frame arrives once that frame was drawn.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.took.push(performance.now() - begun);
      port2.postMessage(null);
    });
  }).observe(task, { attributes: true, attributeFilter: ["data-shows"] });
}"""


def milliseconds_to_the_next_pair(people: int, delay: int, answers: int) -> list[float]:
    """The time from each key press to the frame with the next pair.

    Args:
        people: How many judge at the same time, each in a browser window.
        delay: How many milliseconds away the server is.
        answers: How many answers each gives.
    """
    set_up_logs("ERROR")  # the server is in this process
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(database=f"sqlite:///{folder}/studio.db", exports=Path(folder))
        engine = connect(settings)
        upgrade(engine)
        accounts = make_people(engine, people)
        project = make_project(engine, accounts, queries=40, items=20, k=5)
        with serving(settings) as address, chromium() as browser:
            tabs = []
            for account in accounts:
                page = signed_in(browser, engine, address, account).new_page()
                _delay(page, delay)
                tab = Judging(page, project).open()
                tab.ready()
                page.evaluate(_WATCH)
                tabs.append(tab)
            time.sleep(_READING)
            for _ in range(answers):
                for tab in tabs:
                    tab.answer("ArrowLeft")
                time.sleep(_READING)
            took = [value for tab in tabs for value in tab.page.evaluate("window.took")]
        engine.dispose()
    assert len(took) == people * answers, "a key press showed no other pair"
    return took


def _delay(page: Page, milliseconds: int) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": milliseconds,
            "downloadThroughput": -1,
            "uploadThroughput": -1,
        },
    )


if __name__ == "__main__":
    for number, away in ((1, 300), (2, 0)):
        measured = milliseconds_to_the_next_pair(number, away, 60)
        quantiles = statistics.quantiles(measured, n=20)
        print(
            f"{number} people, {away} ms away: p50 {quantiles[9]:.0f}, p95 {quantiles[18]:.0f} ms"
        )
