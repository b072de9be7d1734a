"""How one evaluation of each loss grows with the documents of a query and with k."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks._report import Report
from podium.losses import (
    Focused,
    LambdaLoss,
    ListMLE,
    ListNet,
    Loss,
    PairExponential,
    PairHinge,
    PairLogistic,
    PairRounded,
    RankCosine,
    StructuralHinge,
    loss,
)

Order = Callable[[float, float], float]

# Stated orders, of n documents and k; the top of a query without k is all of it.
LINEAR: Order = lambda n, k: n * math.log2(min(n, k) + 1)  # noqa: E731
PAIRS: Order = lambda n, k: n * min(n, k)  # noqa: E731
COUNTED: Order = lambda n, k: n * min(k, math.log2(n) * 20)  # noqa: E731
SORTED: Order = lambda n, k: n * min(n, k) + n * math.log2(n)  # noqa: E731

SLACK = 0.35
"""How much steeper than its order a curve may be: caches end, and logarithms are steps."""


@dataclass(frozen=True)
class Curve:
    """What to measure: a loss for each k, and the order its cost is stated to have."""

    name: str
    make: Callable[[int | None], Loss]
    order: Order
    largest: int = 100_000
    """Documents of the largest full order worth waiting for."""


@dataclass(frozen=True)
class Point:
    """One measurement."""

    loss: str
    documents: int
    k: int | None
    seconds: float


CURVES = [
    Curve("PairHinge", PairHinge, COUNTED),
    Curve("PairRounded", lambda k: PairRounded(k=k), PAIRS, largest=10_000),
    Curve("PairLogistic", PairLogistic, PAIRS, largest=10_000),
    Curve("PairExponential", PairExponential, LINEAR),
    Curve("ListMLE", ListMLE, LINEAR),
    Curve("ListNet", ListNet, LINEAR),
    Curve("RankCosine", RankCosine, LINEAR),
    Curve("NDCG margin", partial(StructuralHinge, "ndcg", "margin"), LINEAR),
    Curve("NDCG slack", partial(StructuralHinge, "ndcg", "slack"), LINEAR),
    Curve("AP margin", partial(StructuralHinge, "ap", "margin"), SORTED, largest=0),
    Curve("AP slack", partial(StructuralHinge, "ap", "slack"), SORTED, largest=0),
    Curve("LambdaLoss", lambda k: LambdaLoss(k=k), PAIRS, largest=10_000),
    Curve("FocusedNet", lambda k: Focused(ListNet(), PairLogistic(), k=k), PAIRS, largest=0),
]


@loss(convex=True)
def own_list_net(scores, labels, gradient, curvature):  # type: ignore[no-untyped-def]
    """ListNet as a user would write it."""
    peak, most = scores.max(), labels.max()
    total = target_total = 0.0
    for row in range(len(scores)):
        gradient[row] = math.exp(scores[row] - peak)
        curvature[row] = math.exp(labels[row] - most)
        total += gradient[row]
        target_total += curvature[row]
    value = 0.0
    for row in range(len(scores)):
        share, target = gradient[row] / total, curvature[row] / target_total
        value += target * (peak + math.log(total) - scores[row])
        gradient[row] = share - target
        curvature[row] = share * (1.0 - share)
    return value


def growth(report: Report, quick: bool) -> list[Point]:
    """Measure every loss, hold slopes against the stated orders, and return what was measured."""
    before = os.environ.get("PODIUM_THREADS")
    os.environ["PODIUM_THREADS"] = "1"  # a single query would not be spread, many would
    try:
        return _measure_all(report, quick)
    finally:
        os.environ.pop("PODIUM_THREADS")
        if before is not None:
            os.environ["PODIUM_THREADS"] = before


def _measure_all(report: Report, quick: bool) -> list[Point]:
    report.note("growth of one evaluation: processor time of one thread, logarithmic slopes")
    sizes = [10, 100, 1_000, 10_000] if quick else [10, 100, 1_000, 10_000, 100_000]
    orders = [30, 100, 1_000, 3_000] if quick else sizes  # pairs of all documents take long
    tops = [10, 30, 100] if quick else [10, 30, 100, 300, 1_000]
    points: list[Point] = []
    for curve in CURVES:
        by_size = [_measure(curve, size, 10) for size in sizes]
        by_k = [_measure(curve, sizes[-1], k) for k in tops]
        full = [_measure(curve, size, None) for size in orders if size <= curve.largest]
        points += by_size + by_k + full
        nanoseconds = by_size[1].seconds / by_size[1].documents * 1e9
        report.note(f"{curve.name}: {nanoseconds:.0f} ns a document at n = 100, k = 10")
        _check(report, f"{curve.name}, k = 10, by n", curve, by_size[2:])
        _check(report, f"{curve.name}, n = {sizes[-1]:,}, by k", curve, by_k)
        if len(full) > 3:
            # A short range of sizes is steeper by chance.
            slack = SLACK + 0.15 if quick else SLACK
            _check(report, f"{curve.name}, all, by n", curve, full[2:], slack)
    _check_permutations(report, 10 if quick else 12)
    _check_own(report)
    return points


def _measure(curve: Curve, documents: int, k: int | None) -> Point:
    """Time full orders of the documents: many queries of few, few of many."""
    queries = max(1, 20_000 // documents)
    random = np.random.default_rng(documents)
    scores = random.normal(size=queries * documents)
    ranks = np.tile(np.arange(documents, 0, -1.0), (queries, 1))
    labels = random.permuted(ranks, axis=1).ravel()
    offsets = documents * np.arange(queries + 1)
    evaluate = partial(curve.make(k).evaluate, scores, labels, offsets)
    evaluate()
    return Point(curve.name, documents, k, _processor_seconds(evaluate) / queries)


def _processor_seconds(function: Callable[[], object]) -> float:
    """The least of a few runs: what neighbors on the machine take is not the loss's cost."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _check(
    report: Report, what: str, curve: Curve, points: Sequence[Point], slack: float = SLACK
) -> None:
    """Hold the slope over some points against that of the stated order over the same."""
    sizes = [(point.documents, point.k or point.documents) for point in points]
    moving = [n for n, _ in sizes] if sizes[0][0] != sizes[-1][0] else [k for _, k in sizes]
    measured = _slope(moving, [point.seconds for point in points])
    stated = _slope(moving, [curve.order(n, k) for n, k in sizes])
    report.check(what, measured, stated + slack, at_least=False, unit="slope")


def _slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _check_permutations(report: Report, largest: int) -> None:
    """ListNet of whole orders: n 2^n, so a little over twice as much for each document more."""
    curve = Curve("ListNet of whole orders", lambda _k: ListNet(permutations=True), LINEAR)
    points = [_measure(curve, size, None) for size in (largest - 4, largest)]
    factor = (points[1].seconds / points[0].seconds) ** 0.25
    stated = 2 * (largest / (largest - 4)) ** 0.25
    report.check("ListNet of whole orders, per document", factor, 1.1 * stated, at_least=False)


def _check_own(report: Report) -> None:
    """A user's own loss costs what Podium's costs."""
    random = np.random.default_rng(0)
    scores, labels = random.normal(size=200_000), random.integers(0, 5, 200_000)
    offsets = 100 * np.arange(2_001)
    functions = {
        kind.__name__: partial(kind().evaluate, scores, labels, offsets)
        for kind in (ListNet, own_list_net)
    }
    for function in functions.values():
        function()
    seconds = {name: _processor_seconds(function) for name, function in functions.items()}
    ratio = seconds["own_list_net"] / seconds["ListNet"]
    report.check("a user's own ListNet beside Podium's, time", ratio, 1.1, at_least=False)
