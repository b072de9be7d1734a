"""The page of the study of how much of the order is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from podium.measures.comparison.statistics import mean_interval, paired_difference
from studies.arrays import Doubles
from studies.claims import Claim, ClaimVerdict, on_a_stand_in, table
from studies.plots import Panel, PlotLine, draw_panels
from studies.study import Setup, Written

_FULL = 1000
_SETS = {
    "Yandex": "Yandex, full order",
    "MQ2007": "MQ2007, grades",
    "MQ2008": "MQ2008, grades",
    "clean": "synthetic, clean tail",
    "shuffled": "synthetic, shuffled tail",
    "misled": "synthetic, misled tail",
}
Curves = dict[str, dict[str, dict[int, Doubles]]]
"""To each data set, each model and each k the values of all test queries."""


def write(results: Mapping[str, Any], _setup: Setup, images: Path) -> Written:
    """The claims, tables and pictures."""
    curves = {measure: _curves(results, measure) for measure in ("nDCG@5", "nDCG@10")}
    sections = [_table(curves["nDCG@10"])]
    for measure, name in (("nDCG@10", "sufficiency"), ("nDCG@5", "sufficiency-5")):
        if curves[measure]:
            _draw(curves[measure], measure, images / f"{name}.svg")
            sections.append(
                f"![{measure} against k](../images/{name}.svg)\n\n{measure} of the test queries "
                "against the k that was trained on; the last point is the full order. Bands are "
                "95 % intervals over queries, for the first line only, to keep the others legible: "
                "the others' are as wide.\n"
            )
    return Written(_claims(curves["nDCG@10"]), sections)


def _curves(results: Mapping[str, Any], measure: str) -> Curves:
    folds: dict[tuple[str, str, int], list[Doubles]] = defaultdict(list)
    for name, values in results.items():
        data, model, text, _fold = name.split(".")
        folds[data, model.replace("-", " "), int(text)].append(np.array(values[measure]))
    curves: Curves = {}
    for (data, model, k), parts in sorted(folds.items(), key=lambda each: each[0][2]):
        curves.setdefault(data, {}).setdefault(model, {})[k] = np.concatenate(parts)
    return {data: curves[data] for data in _SETS if data in curves}


def _near_best(points: Mapping[int, Doubles]) -> int:
    """The smallest k whose mean is within one standard error of the best k's.

    A curve may fall again after it.
    """
    best = max(points, key=lambda k: points[k].mean())
    for k, values in points.items():
        lag = points[best] - values
        if lag.mean() <= lag.std() / np.sqrt(len(lag)):
            return k
    return best


def _full_against_ten(points: Mapping[int, Doubles]) -> tuple[float, float]:
    """How far the full order is ahead of k = 10, and the p-value of a paired t-test."""
    difference = paired_difference(points[_FULL], points[10], tests=("t",))
    return difference.mean, difference.p_values["t"]


def _claims(curves: Curves) -> list[Claim]:
    claims = []
    for number, stands_in in ((1, ("MQ2007", "Yandex")), (2, ("MQ2008", "Yandex"))):
        real = [name for name in stands_in if name in curves]
        made = [name for name in ("clean", "shuffled", "misled") if name in curves]
        says = f"MQ200{6 + number}-list: NDCG@5 and @10 rise with k, flat from 10 (RankBoost 20)"
        if number == 1:
            says += "; the full order is worse than the top 1"
        if not real:
            claims.append(Claim("Lan'13", f"Figure {number}", says, "—", "not run"))
            continue
        near = [_near_best(points) for name in (*real, *made) for points in curves[name].values()]
        early = sum(k <= 20 for k in near)
        rises = sum(
            points[10].mean() > points[1].mean()
            for name in (*real, *made)
            for points in curves[name].values()
        )
        hurt = {name: _hurt(curves[name]) for name in (*real, *made)}
        verdict: ClaimVerdict = "partly"
        if 2 * min(rises, early) <= len(near):
            verdict = "not reproduced"  # not even of most curves
        elif early == rises == len(near):
            worse = any(worse for worse, _count in hurt.values())
            verdict = "reproduced" if worse or number == 2 else "partly"
        claims.append(
            Claim(
                "Lan'13",
                f"Figure {number}",
                says,
                f"{rises} of {len(near)} curves rise from k = 1 to 10, {early} come within a "
                "standard error of their best by k = 20; full order worse than k = 10 at p < 0.05: "
                + ", ".join(f"{name} {w} of {n}" for name, (w, n) in hurt.items()),
                on_a_stand_in(verdict),
                f"MQ200{6 + number}-list is not available here; {' and '.join(real)} and synthetic "
                "queries of 1,000 documents replace it",
            )
        )
    return claims


def _hurt(models: Mapping[str, Mapping[int, Doubles]]) -> tuple[int, int]:
    differences = [_full_against_ten(points) for points in models.values()]
    return sum(difference < 0 and p < 0.05 for difference, p in differences), len(differences)


def _table(curves: Curves) -> str:
    ks = (1, 10, 20, _FULL)  # the picture has all
    head = ["data", "model", *(f"k = {k}" if k < _FULL else "all" for k in ks)]
    rows = []
    for name, models in curves.items():
        for model, points in models.items():
            cells = [f"{points[k].mean():.4f}" if k in points else "" for k in ks]
            difference, p = _full_against_ten(points)
            near = _near_best(points)
            shown = f"{difference:+.4f} (p {p:.2g})"
            rows.append([_SETS[name], model, *cells, f"{near}" if near < _FULL else "all", shown])
    return (
        "## nDCG@10 against k\n\n*Near best at* is the smallest k within a standard error of the "
        "best, after which a curve may fall again; "
        "*all - 10* is the full order against k = 10, with a paired t-test over the test "
        "queries.\n\n" + table([*head, "near best at", "all - 10"], rows)
    )


def _draw(curves: Curves, measure: str, file: Path) -> None:
    panels = []
    for name, models in curves.items():
        lines = []
        for index, (model, points) in enumerate(models.items()):
            stats = [mean_interval(values) for values in points.values()]
            means, low, high = ([each[part] for each in stats] for part in range(3))
            # The full order is drawn where a query's whole list would end.
            across = [float(k) if k < _FULL or name not in _ENDS else _ENDS[name] for k in points]
            lines.append(
                PlotLine(
                    model,
                    across,
                    means,
                    low if index == 0 else (),
                    high if index == 0 else (),
                    model.startswith("trees"),
                )
            )
        panels.append(Panel(_SETS[name], "k trained on", measure, lines, log=True, last="all"))
    draw_panels(file, panels, columns=3, below=True)


_ENDS = {"Yandex": 40.0, "MQ2007": 40.0, "MQ2008": 40.0}
