"""Aggregation on LETOR's MQ2008-agg, how far from the nearest order, and time against documents.

LETOR's own figures were published with the data (the baselines of LETOR 4.0, averages of five test
folds): they are printed beside Podium's, by the same convention. They take the largest number of a
list as its first document: with the ranks turned round, Borda's count gives the published figures
to the last digit. The labels say that 1 is the first, so that is how Podium's own rows read them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks._report import Report
from podium.aggregation import (
    borda,
    exact_kemeny,
    kendall_distance,
    proportional_weights,
    reciprocal_rank,
    supervised_kemeny,
    tuned_weights,
)
from podium.data import Dataset, concat_datasets, read_letor
from podium.data.atomic import atomic_write
from podium.measures import evaluate
from podium.measures.comparison.statistics import paired_difference

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "kemeny-time.svg"
_LETOR = Path(__file__).parents[2] / "shared" / "data" / "letor" / "MQ2008-agg"
_PUBLISHED = {  # NDCG@1, NDCG@10, MAP on the test folds
    "BordaCount": (0.2368, 0.1694, 0.3945),
    "CPS-SpearmanFootrule": (0.2291, 0.1771, 0.4027),
    "CPS-SpearmanRankCorrelation": (0.2652, 0.1864, 0.4102),
    "CPS-KendallTau": (0.2521, 0.1892, 0.4219),
}
_PUBLISHED_FIRST = (0.2137, 0.1679, 0.3858)  # BordaCount on the first fold
_MEASURES = ("nDCG@1", "nDCG@10", "AP")

Scores = np.ndarray
_AGGREGATIONS: dict[str, Callable[..., Scores]] = {
    "Borda": borda,
    "reciprocal rank": reciprocal_rank,
    "Supervised Kemeny": supervised_kemeny,
    "Supervised Kemeny, refined": partial(supervised_kemeny, refine=True),
}


class Point(NamedTuple):
    """Seconds of one aggregation of one query, and the gap it left."""

    method: str
    rankers: int
    documents: int
    seconds: float
    gap: float


class _Fold(NamedTuple):
    train: Dataset
    validation: Dataset
    test: Dataset


def aggregation(report: Report, quick: bool) -> None:
    """Measure and report; at full size also draw docs/images/kemeny-time.svg."""
    if _LETOR.exists():
        folds = _folds()[: 1 if quick else 5]
        _quality(report, folds, quick)
        _optimality(report, folds)
    else:
        report.note(f"{_LETOR} is not here: its aggregation is left out")
    points = _growth(report, quick)
    if not quick:
        _draw(points)


def _folds() -> list[_Fold]:
    parts = [read_letor(_LETOR / f"A{part}.txt.gz") for part in range(1, 6)]
    return [
        _Fold(
            concat_datasets([parts[(first + step) % 5] for step in range(3)]),
            parts[(first + 3) % 5],
            parts[(first + 4) % 5],
        )
        for first in range(5)
    ]


def _votes(data: Dataset) -> Scores:
    return -data.features.astype(np.float64)  # ranks: 1 is the best


def _quality_of(data: Dataset) -> Callable[[Scores], float]:
    return lambda scores: float(evaluate("nDCG@10", data, scores)["nDCG@10"].mean())


def _quality(report: Report, folds: list[_Fold], quick: bool) -> None:
    """NDCG of every aggregation with equal, proportional and tuned weights."""
    report.note(f"MQ2008-agg, {len(folds)} test folds: letor4 NDCG@1, NDCG@10, MAP | nDCG@10")
    for name, figures in _PUBLISHED.items():
        report.note(f"  {name + ' (published)':58} " + " ".join(f"{each:.4f}" for each in figures))
    single = _single_rankers(folds)
    report.note(f"  {'best of the 25 rankers, chosen on validation':58} {_line(single)}")
    predictions: dict[tuple[str, str], list[tuple[Dataset, Scores]]] = {}
    for fold in folds:
        for name, aggregate in _AGGREGATIONS.items():
            for how, weights in _weights(fold, aggregate, quick).items():
                scores = aggregate(_votes(fold.test), fold.test.offsets, ranker_weights=weights)
                predictions.setdefault((name, how), []).append((fold.test, scores))
        for how, weights in _weights(fold, None, quick).items():
            exact = exact_kemeny(_votes(fold.test), fold.test.offsets, ranker_weights=weights)
            predictions.setdefault(("exact Kemeny", how), []).append((fold.test, exact.scores))
    for (name, how), tests in predictions.items():
        report.note(f"  {f'{name}, {how} weights':58} {_line(tests)}")
    best = max(figures[1] for figures in _PUBLISHED.values())
    for name in (*_AGGREGATIONS, "exact Kemeny"):
        value = float(np.mean([_letor(*test)[1] for test in predictions[name, "equal"]]))
        report.check(
            f"{name}, 1 first: letor4 NDCG@10, beside the best published", value, best, unit=""
        )
    _as_published(report, folds, quick)
    values = {
        how: np.concatenate(
            [
                evaluate("nDCG@10", *test)["nDCG@10"]
                for test in predictions["Supervised Kemeny", how]
            ]
        )
        for how in ("equal", "proportional", "tuned")
    }
    for how in ("proportional", "tuned"):
        gain = paired_difference(values[how], values["equal"], tests=("t",))
        report.check(
            f"Supervised Kemeny: nDCG@10 of {how} over equal weights (p {gain.p_values['t']:.2g})",
            gain.mean,
            -0.005 if quick else 0.0,
            unit="",
        )


def _as_published(report: Report, folds: list[_Fold], quick: bool) -> None:
    """The same with the ranks read as the published figures read them: the largest is first."""
    turned = [_Fold(*(replace(part, features=-part.features) for part in fold)) for fold in folds]
    predictions: dict[tuple[str, str], list[tuple[Dataset, Scores]]] = {}
    for fold in turned:
        for name in ("Borda", "Supervised Kemeny"):
            aggregate = _AGGREGATIONS[name]
            for how, weights in _weights(fold, aggregate, quick).items():
                scores = aggregate(_votes(fold.test), fold.test.offsets, ranker_weights=weights)
                predictions.setdefault((name, how), []).append((fold.test, scores))
    report.note("  the largest number first, as the published figures have it:")
    for (name, how), tests in predictions.items():
        report.note(f"  {f'{name}, {how} weights':58} {_line(tests)}")
    ours = np.mean([_letor(*test) for test in predictions["Borda", "equal"]], axis=0)
    theirs = _PUBLISHED_FIRST if quick else _PUBLISHED["BordaCount"]
    report.check(
        "Borda, largest number first: away from the published figures",
        float(np.abs(ours - theirs).max()),
        0.0001,
        at_least=False,
        unit="",
    )
    if not quick:  # the others learn on training queries, so does this
        value = float(np.mean([_letor(*test)[1] for test in predictions["Borda", "tuned on all"]]))
        best = max(figures[1] for figures in _PUBLISHED.values())
        report.check("Borda tuned, largest first: letor4 NDCG@10", value, best, unit="")


def _weights(
    fold: _Fold, aggregate: Callable[..., Scores] | None, quick: bool
) -> dict[str, Scores | None]:
    """Weights learned on validation; ``tuned on all`` on training and validation queries."""
    chosen = fold.validation
    weights: dict[str, Scores | None] = {"equal": None}
    votes, quality = _votes(chosen), _quality_of(chosen)
    weights["proportional"] = proportional_weights(votes, quality, chosen.offsets)
    if aggregate is not None:
        weights["tuned"] = tuned_weights(votes, quality, aggregate, chosen.offsets, rounds=2)
        if not quick:
            both = concat_datasets([fold.train, fold.validation])
            weights["tuned on all"] = tuned_weights(
                _votes(both), _quality_of(both), aggregate, both.offsets, rounds=2
            )
    return weights


def _single_rankers(folds: list[_Fold]) -> list[tuple[Dataset, Scores]]:
    predictions = []
    for fold in folds:
        weights = proportional_weights(
            _votes(fold.validation), _quality_of(fold.validation), fold.validation.offsets
        )
        column = _votes(fold.test)[:, int(np.argmax(weights))]
        predictions.append((fold.test, np.where(np.isnan(column), -1e6, column)))
    return predictions


def _letor(data: Dataset, scores: Scores) -> list[float]:
    evaluation = evaluate(_MEASURES, data, scores, conventions="letor4")
    return [float(evaluation[name].mean()) for name in _MEASURES]


def _line(tests: list[tuple[Dataset, Scores]]) -> str:
    """Averages over folds, as LETOR averages."""
    letor = np.mean([_letor(*test) for test in tests], axis=0)
    standard = np.mean([_quality_of(data)(scores) for data, scores in tests])
    return " ".join(f"{each:.4f}" for each in letor) + f" | {standard:.4f}"


def _optimality(report: Report, folds: list[_Fold]) -> None:
    """How far aggregations are from the nearest order, which is known of every query."""
    data = concat_datasets([fold.test for fold in folds])
    votes = _votes(data)
    start = time.perf_counter()
    exact = exact_kemeny(votes, data.offsets)
    seconds = time.perf_counter() - start
    report.note(
        f"exact Kemeny of {len(data)} queries of up to {data.sizes.max()} documents: "
        f"{seconds:.1f} s, {int(exact.optimal.sum())} proven optimal"
    )
    report.check("exact Kemeny: queries proven optimal", float(exact.optimal.mean()), 1.0, unit="")
    least = exact.distances.sum()
    for name, aggregate in _AGGREGATIONS.items():
        away = kendall_distance(aggregate(votes, data.offsets), votes, data.offsets)
        share = np.mean(away <= exact.distances * (1 + 1e-9))
        above = float(away.sum() / least - 1)
        if "Kemeny" in name:
            report.check(
                f"{name}: distance above the optimum ({share:.0%} of queries at it)",
                100 * above,
                0.1 if "refined" in name else 1.0,
                at_least=False,
                unit="%",
            )
        else:
            report.note(f"  {name}: {above:.2%} above the optimum, {share:.0%} of queries at it")


def _growth(report: Report, quick: bool) -> list[Point]:
    """Seconds of one query as it grows, of rankings that agree a little, one after another."""
    limit = 10.0 if quick else 20.0
    methods: dict[str, Callable[[Scores], float]] = {
        "Supervised Kemeny": lambda votes: _no_gap(supervised_kemeny(votes)),
        "refined": lambda votes: _no_gap(supervised_kemeny(votes, refine=True)),
        "exact Kemeny": lambda votes: float(exact_kemeny(votes, time_limit=limit).gaps[0]),
    }
    points = []
    for rankers in (4, 25):
        for method, run in methods.items():
            run(_noisy(30, rankers, 0))  # compiles
            most = 1000 if "exact" not in method else 50 if quick else 150
            for documents in (10, 25, 50, 75, 100, 150, 250, 500, 1000):
                if documents > most:
                    break
                seconds, gaps = [], []
                for seed in range(3):
                    votes = _noisy(documents, rankers, seed)
                    start = time.perf_counter()
                    gaps.append(run(votes))
                    seconds.append(time.perf_counter() - start)
                points.append(Point(method, rankers, documents, median(seconds), max(gaps)))
                if points[-1].seconds > limit / 2:
                    break
    for point in points:
        if point.documents >= 50:
            left = "" if np.isnan(point.gap) else f", gap at most {point.gap:.3%}"
            report.note(
                f"  {point.method}, {point.rankers} rankers of {point.documents} documents: "
                f"{point.seconds:.4f} s{left}"
            )
    largest = max(p.seconds for p in points if p.method == "refined" and p.documents == 1000)
    report.check("Supervised Kemeny, refined, 1,000 documents", largest, 1.0, False, "s")
    size = 50 if quick else 100
    hard = [p for p in points if p.method == "exact Kemeny" and p.documents == size]
    report.check(f"exact Kemeny, {size} documents", max(p.seconds for p in hard), limit, False, "s")
    report.check(
        f"exact Kemeny, {size} documents, its gap", 100 * max(p.gap for p in hard), 0.5, False, "%"
    )
    return points


def _no_gap(_: Scores) -> float:
    return float("nan")


def _noisy(documents: int, rankers: int, seed: int) -> Scores:
    """Rankings of evenly spaced documents with noise as wide as the whole list."""
    random = np.random.default_rng(seed)
    return np.arange(documents)[:, None] / documents + random.normal(size=(documents, rankers))


def _draw(points: list[Point]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "podium"  # the same picture has the same bytes
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.2))
    for color, method in enumerate(dict.fromkeys(point.method for point in points)):
        for rankers, style in ((4, "--"), (25, "-")):
            chosen = [p for p in points if p.method == method and p.rankers == rankers]
            axis.plot(
                [point.documents for point in chosen],
                [point.seconds for point in chosen],
                style,
                color=f"C{color}",
                marker=".",
                label=f"{method}, {rankers} rankers",
            )
    axis.set(xscale="log", yscale="log", xlabel="documents of a query", ylabel="seconds")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    PICTURE.parent.mkdir(exist_ok=True)
    with atomic_write(PICTURE) as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})
