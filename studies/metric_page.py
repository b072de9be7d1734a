"""The page of the study of gains and discounts learned from preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.claims import table
from studies.metric_claims import claims_of
from studies.metric_curves import AccuracyCurve
from studies.plots import Panel, PlotLine, draw_panels
from studies.study import Setup, Written

_RIGHT = "right on held-out pairs"


def write(results: Mapping[str, Any], _setup: Setup, images: Path) -> Written:
    """The claims and the pictures, as far as there are results."""
    sections = []
    pictures = {
        "metric-simulated": (_simulated(results), 3, "Figures 1 to 10, simulated people"),
        "metric-real": (_real(results), 3, "Figures 11 to 15, grades of real queries"),
        "metric-verdicts": (_verdicts(results), 3, "Figures 17, 18 and 20, five-point verdicts"),
        "metric-active": (_active(results), 4, "Figures 21 to 23, chosen pairs"),
    }
    for name, (panels, columns, title) in pictures.items():
        if panels:
            draw_panels(images / f"{name}.svg", panels, columns=columns, width=4.3)
            sections.append(f"## {title}\n\n![{title}](../images/{name}.svg)\n\n{_NOTES[name]}\n")
    if "five-point" in results:
        sections.append(_subsets(results["five-point"]))
    if "pages" in results:
        sections.append(_pages(results["pages"]))
    return Written(claims_of(results), sections)


_NOTES = {
    "metric-simulated": "Bands are two standard errors over the repeats. Figure 9 shows "
    "proposition "
    "1: more pairs with the best order teach no more, neither a model that knows that discounts "
    "fall "
    "nor the paper's own, which does not (*discounts free*).",
    "metric-real": "Random orders of each query's documents, first ten; test queries are others "
    "than training queries. MQ2007 has three grades, of which most are 0: the two usual gains "
    "agree "
    "on nearly all such pairs.",
    "metric-verdicts": "Simulated people who err and call small differences the same. Set 1 are "
    "the "
    "pairs that were called much better, set 2 those called better.",
    "metric-active": "SimpleMargin is the paper's; expected change is Podium's default.",
}


def _lines(curves: Sequence[Mapping[str, Any]]) -> list[PlotLine]:
    lines = []
    for content in curves:
        curve = AccuracyCurve.read(content)
        means, count = curve.means, len(curve.values)
        low: list[float] = []
        high: list[float] = []
        if count > 2 and curve.name != "Other":
            swing = 2 * curve.values.std(axis=0, ddof=1) / count**0.5
            low, high = (means - swing).tolist(), (means + swing).tolist()
        dashed = curve.name == "Other"
        lines.append(PlotLine(curve.name, curve.steps, means.tolist(), low, high, dashed))
    return lines


def _panel(title: str, across: str, curves: Sequence[Mapping[str, Any]], up: str = _RIGHT) -> Panel:
    return Panel(title, across, f"{up} (share)", _lines(curves))


def _simulated(results: Mapping[str, Any]) -> list[Panel]:
    panels = []
    if "agree" in results:
        across = "difference of DCG, gains 2^l - 1"
        panels.append(_panel("1. Two usual gains agree", across, results["agree"], "judged alike"))
    both = [name for name in ("Data 1", "Data 2") if f"{name}.best" in results]
    for start, part, across in (
        (2, "pairs", "training pairs"),
        (4, "difference", "difference of the true utility"),
    ):
        for number, name in enumerate(both):
            curves = results[f"{name}.{part}"]
            curves = curves["right"] if part == "pairs" else curves
            panels.append(_panel(f"{start + number}. {name}", across, curves))
    if not both:
        return panels
    alike = [curve for name in both for curve in results[f"{name}.pairs"]["alike"]]
    panels.append(Panel("6. Similarity of w", "training pairs", "cosine", _lines(alike)))
    flipped = [results[f"{name}.reversed"] for name in both]
    panels.append(_panel("7. Reversed preferences", "reversed of 800 pairs", flipped))
    wrong = [curve for name in both for curve in results[f"{name}.grades"]]
    panels.append(_panel("8. Wrong grades", "share of documents with a random grade", wrong))
    for number, part, words in ((9, "same", "the same list"), (10, "other", "another list")):
        curves = [curve for name in both for curve in results[f"{name}.best"][part]]
        panels.append(_panel(f"{number}. Best order against {words}", "training pairs", curves))
    return panels


def _real(results: Mapping[str, Any]) -> list[Panel]:
    panels = []
    for number, name in enumerate(("MQ2007", "MSLR sample")):
        if f"{name}.pairs" not in results:
            continue
        panels += [
            _panel(f"11. {name}", "training pairs", results[f"{name}.pairs"]["right"]),
            _panel(
                f"{12 + number}. {name}",
                "difference of the true utility",
                results[f"{name}.difference"],
            ),
            _panel(
                f"{14 + number}. {name}",
                "share of documents with a random grade",
                results[f"{name}.grades"],
            ),
        ]
    return panels


def _active(results: Mapping[str, Any]) -> list[Panel]:
    titles = {"Data 1": 21, "Data 2": 22, "MQ2007": 23, "MSLR sample": 23}
    return [
        _panel(f"{number}. {name}", "labels", results[f"{name}.active"])
        for name, number in titles.items()
        if f"{name}.active" in results
    ]


def _verdicts(results: Mapping[str, Any]) -> list[Panel]:
    if "five-point" not in results or "ties" not in results:
        return []
    five, ties = results["five-point"], results["ties"]
    over = np.array(five["over pairs"]).transpose(2, 0, 1)
    lines = _lines(
        [
            {"name": name, "steps": five["sizes"], "values": values.tolist()}
            for name, values in zip(("all", "set 1", "set 2"), over, strict=True)
        ]
    )
    labels = ["same", "better", "much better"]
    differences = PlotLine("DCGLearn", [0.0, 1.0, 2.0], five["differences"])
    tied = [
        {
            "name": "right on strict pairs (share)",
            "steps": ties["weights"],
            "values": ties["right"],
        },
        {"name": "mean difference of ties", "steps": ties["weights"], "values": ties["apart"]},
    ]
    return [
        Panel("17. Training pairs", "training pairs", f"{_RIGHT} (share)", lines),
        Panel(
            "18. What is learned of what was said", "verdict", "mean difference of utility",
            [differences], ticks=labels,
        ),
        Panel("20. Ties", "weight of ties", "share, or utility", _lines(tied)),
    ]  # fmt: skip


def _subsets(five: Mapping[str, Any]) -> str:
    names = ("all", "much better only", "better only")
    rows = [
        [name, *(f"{value:.1%}" for value in values)]
        for name, values in zip(names, five["subsets"], strict=True)
    ]
    whole = five["whole"]
    rows += [["gains l, not learned", *(f"{whole[name][1]:.1%}" for name in whole)]]
    return (
        "## Figures 16 and 19, simulated people\n\nRight on held-out pairs, learned from 400 "
        "pairs, "
        "or from those of them with one kind of verdict.\n\n"
        + table(["learned from", "all", "set 1 (much better)", "set 2 (better)"], rows)
    )


def _pages(pages: Mapping[str, Any]) -> str:
    rows = [
        [name, f"{share:.1%}", f"{low:.1%} to {high:.1%}"]
        for name, share, low, high in pages["accuracies"]
    ]
    return (
        f"## Figure 16, real verdicts\n\nWhole pages of image search, {pages['pages']} queries, of "
        f"which {pages['strict']} have a strict preference: five-fold cross-validation. "
        "They are too few to distinguish them.\n\n"
        + table(["gains and discounts", "right", "95 % interval"], rows)
    )
