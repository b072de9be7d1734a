"""Takes the picture of a comparison's HTML report that the README shows.

``python -m tests.studio.browser.report_picture`` writes docs/images/comparison-report.png.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from podium.measures import compare
from podium.measures.comparison.html import as_html
from tests.studio.browser.chromium import ROOT, chromium
from tests.studio.browser.screenshots import save_picture

PATH = ROOT / "docs/images/comparison-report.png"
SIZE = (1200, 900)


def systems() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, dict[str, float]]]]:
    """Made-up judgments of 60 queries, and three systems that know more and more of them."""
    random = np.random.default_rng(4)
    qrels: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, dict[str, float]]] = {"bm25": {}, "dense": {}, "learned": {}}
    for query in range(60):
        grades = {f"d{document}": int(random.integers(0, 4)) for document in range(20)}
        qrels[f"q{query}"] = grades
        for run, noise in zip(runs.values(), (2.2, 2.0, 1.4), strict=True):
            run[f"q{query}"] = {d: grade + noise * random.normal() for d, grade in grades.items()}
    return qrels, runs


def take(path: Path = PATH) -> None:
    """Write the report, open it in the browser, and take the picture of its top."""
    qrels, runs = systems()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        report = Path(folder, "report.html")
        report.write_text(as_html(compare(["nDCG@10", "AP"], qrels, runs)), encoding="utf-8")
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.emulate_media(color_scheme="light")
        page.goto(report.as_uri())
        save_picture(page.screenshot(), path)


if __name__ == "__main__":
    take()
