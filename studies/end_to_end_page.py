"""The page of the study of what hours of judging buy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.measures.comparison.statistics import mean_interval, paired_difference
from studies.arrays import Doubles
from studies.claims import Claim, ClaimVerdict, table
from studies.plots import Panel, PlotLine, draw_panels
from studies.study import Setup, Written

_GRADES = "five grades"
_DEFAULT = "pairs, Podium's default"


def write(
    results: Mapping[str, Any],
    _setup: Setup,
    images: Path,
    ways: Sequence[str],
    rankers: Sequence[str],
    measures: Sequence[str],
) -> Written:
    """The claim, the tables and the picture."""
    repeats = list(results.values())
    if not repeats:
        return Written([], [])
    hours = sorted({float(key.rsplit(".", 1)[1]) for key in repeats[0]})
    figures = (*measures, "first")

    def values(way: str, ranker: str, hour: float, figure: str) -> Doubles:
        return np.array([each[f"{way}.{ranker}.{hour:g}"][figure] for each in repeats])

    panels = []
    words = ("κ-NDCG@10", "nDCG@10, true fifths", "worth of the first (sd)")
    for ranker in (rankers[0], rankers[-1]):
        for figure, word in zip(figures, words, strict=True):
            lines = []
            for way in ways:
                stats = [mean_interval(values(way, ranker, hour, figure)) for hour in hours]
                mean, low, high = ([each[part] for each in stats] for part in range(3))
                lines.append(PlotLine(way, hours, mean, low, high, dashed=way == _GRADES))
            panels.append(Panel(ranker, "hours of judging", word, lines, log=True))
    draw_panels(images / "end-to-end.svg", panels, columns=3, below=True)
    sections = [_CAPTION.format(count=len(repeats))]
    sections.append(f"### {figures[0]}\n")
    rows = [
        [ranker, way, *(_cell(values(way, ranker, hour, figures[0])) for hour in hours)]
        for ranker in rankers
        for way in ways
    ]
    sections.append(table(["ranker", "judged by", *(f"{hour:g} h" for hour in hours)], rows))
    judged = [
        [way, *(f"{values(way, rankers[0], hour, 'queries').mean():.1f}" for hour in hours)]
        for way in ways
    ]
    sections.append("### Queries judged\n")
    sections.append(table(["judged by", *(f"{hour:g} h" for hour in hours)], judged))
    return Written([_claim(values, rankers, figures, hours, len(repeats))], sections)


def _cell(values: Doubles) -> str:
    mean, low, _ = mean_interval(values)
    return f"{mean:.3f}" if math.isnan(low) else f"{mean:.3f} ± {mean - low:.3f}"


def _claim(
    values: Any, rankers: Sequence[str], figures: Sequence[str], hours: Sequence[float], count: int
) -> Claim:
    details, ahead, total = [], 0, 0
    for figure in figures:
        for hour in hours:
            for ranker in rankers:
                ours, theirs = (values(way, ranker, hour, figure) for way in (_DEFAULT, _GRADES))
                total += 1
                ahead += bool(ours.mean() > theirs.mean())
        ours, theirs = (
            max((values(way, ranker, hours[-1], figure) for ranker in rankers), key=np.mean)
            for way in (_DEFAULT, _GRADES)
        )
        change = f"{ours.mean() - theirs.mean():+.3f}"
        if count > 1:
            difference = paired_difference(ours, theirs, tests=("t",))
            change += f" (95 % {difference.low:+.3f} to {difference.high:+.3f})"
        details.append(f"{figure} {change}")
    for ranker in (rankers[0], rankers[-1]):
        enough = values(_GRADES, ranker, hours[-1], figures[0]).mean()
        reached = [h for h in hours if values(_DEFAULT, ranker, h, figures[0]).mean() >= enough]
        if reached:
            details.append(
                f"{ranker}: pairs reach after {reached[0]:g} h the {figures[0]} of grades after "
                f"{hours[-1]:g} h"
            )
    verdict: ClaimVerdict = (
        "reproduced" if ahead == total else "partly" if ahead else "not reproduced"
    )
    return Claim(
        "ours",
        "End to end",
        "the same hours buy a better ranker by Podium's pairs than by five grades",
        f"Podium's default is ahead in {ahead} of {total} comparisons; after {hours[-1]:g} h, "
        "each with the ranker that suits it best: " + "; ".join(details),
        verdict,
        "simulated people who grade as well as they compare, with the paper's seconds per judgment",
    )


_CAPTION = """## Rankers against hours

![Test figures against hours of judging](../images/end-to-end.svg)

Means over {count} repeats of everything (people, queries, training, tests) with 95 % intervals.
Top: a linear ranker, which needs little data and cannot fit the non-linear part of the truth;
bottom: trees, which can, and need more data.
"""
