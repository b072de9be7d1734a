"""Explanations of rankers: they add up, they are Shapley values, and what they cost.

    python -m benchmarks.explain [--quick]

Every kind of ranker is fitted on the first part of MQ2008 and of OHSUMED, and every query of the
last part is explained (the quick form: 10 queries). Brute force goes through all subsets of six
features. Times are those of a list of 100 documents beside the engine's own ``pred_contrib`` on the
same rows. The last figures are those of requirements, plans and slices of comparisons. Without the
data sets, which the project does not hold, their parts are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks._gates import gate_rows
from benchmarks._planted import coverage, planted
from benchmarks._report import Report, median_seconds, wants_quick
from benchmarks._shapley import mean_document_shapley, tree_shapley
from podium.data import Dataset, read_letor
from podium.explain import permutation_importance, smallest_changes
from podium.explain.changes import FeatureChange
from podium.kernels import Floats
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
)

_LETOR = Path(__file__).parents[2] / "shared" / "data" / "letor"


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report("explain", quick, packages=["numpy", "lightgbm", "xgboost-cpu", "torch"])
    for collection in ("MQ2008", "OHSUMED"):
        folder = _LETOR / collection
        if folder.is_dir():
            train, test = (read_letor(folder / f"S{number}.txt.gz") for number in (1, 5))
            _adding_up(report, collection, train, test, quick)
        else:
            report.note(f"{folder} is not here: {collection} is left out")
    _shapley_values(report)
    _times(report, quick)
    _planted_features(report, quick)
    for row in gate_rows(quick):
        report.check(row.what, row.measured, row.target, row.at_least, row.unit)
    report.finish()


def _rankers(quick: bool) -> dict[str, Ranker]:
    trees, epochs = (30, 4) if quick else (300, 30)
    return {
        "linear": LinearRanker(),
        "LightGBM": TreeRanker(n_estimators=trees),
        "XGBoost": TreeRanker(engine="xgboost", n_estimators=trees),
        "network": NeuralRanker(epochs=epochs),
        "boosted thresholds": BoostedRanker(n_estimators=trees),
        "boosted features": BoostedRanker(beta=1.0, weak_ranker="feature", n_estimators=10),
        "cascade": CascadeRanker(
            LinearRanker(), [LinearRanker("ListNet()"), BoostedRanker(n_estimators=30)]
        ),
    }


def _swaps(
    ranker: Ranker, test: Dataset, query: str, row: int, change: FeatureChange, target: float
) -> bool:
    """Score a document anew with one feature changed: is it above the other one?"""
    data = test.select([query])
    features = data.features[[row]].copy()
    features[0, data.feature_names.index(change.feature)] = change.changed
    changed = Dataset.from_arrays(features, [0], group=[1], feature_names=data.feature_names)
    return bool(ranker.predict(changed)[0] > target)


def _adding_up(report: Report, collection: str, train: Dataset, test: Dataset, quick: bool) -> None:
    queries = [
        query for query in test.query_ids.to_pylist() if len(test.select([query]).labels) > 1
    ]
    queries = queries[:10] if quick else queries
    for name, ranker in _rankers(quick).items():
        ranker.fit(train)
        worst, left_by_rounding, swaps, wrong = 0.0, 0.0, 0, 0
        for number, query in enumerate(queries):
            explanation = ranker.explain(test, query=query)
            order = explanation.order
            if name != "cascade":
                left_by_rounding = max(left_by_rounding, _left_by_rounding(ranker, test, query))
            for first, second in pairwise(order):
                pair = explanation.pair(int(first), int(second))
                worst = max(worst, abs(float(pair.contributions.sum()) - pair.difference))
            for part in explanation.parts.values():
                left = part.contributions.sum(axis=1) - (part.scores - part.scores.mean())
                worst = max(worst, float(np.abs(left).max()))
            changes = name != "cascade" and number < (3 if quick else 50)
            if changes and explanation.scores[order[0]] > explanation.scores[order[1]]:
                for change in smallest_changes(ranker, test, query, int(order[0]), int(order[1])):
                    swaps += 1
                    wrong += not _swaps(
                        ranker,
                        test,
                        query,
                        int(order[1]),
                        change,
                        float(explanation.scores[order[0]]),
                    )
        what = f"{collection}, {name}: contributions of neighbors miss the difference by"
        report.check(what, worst, 1e-6, at_least=False, unit="")
        if left_by_rounding > 1e-12:
            what = f"{collection}, {name}: left by rounding and spread, as a share of the scores"
            report.check(what, left_by_rounding, 1e-5, at_least=False, unit="")
        if swaps:
            what = f"{collection}, {name}: of {swaps} smallest changes do not swap"
            report.check(what, wrong, 0, at_least=False, unit="")


def _left_by_rounding(ranker: Ranker, data: Dataset, query: str) -> float:
    """How much contributions miss the scores before the rest is spread over the features."""
    rows = data.select([query])
    scores, sums = ranker.predict(rows), ranker._contributions(rows.features).sum(axis=1)
    left = (scores - scores.mean()) - (sums - sums.mean())
    return float(np.abs(left).max() / np.abs(scores).max())


def _shapley_values(report: Report) -> None:
    random = np.random.default_rng(0)
    X = random.random((600, 6)).astype(np.float32)
    y = np.round(3 * X[:, 0] + X[:, 1] * X[:, 2])
    data = Dataset.from_arrays(X, y, group=[20] * 30)
    rows = data[0].features[:6]
    for name, ranker, bound in (
        ("LightGBM", TreeRanker(n_estimators=10), 1e-9),
        # It computes them in single precision.
        ("XGBoost", TreeRanker(engine="xgboost", n_estimators=10), 1e-5),
    ):
        exact = tree_shapley(ranker.fit(data), rows)
        off = np.abs(ranker.explain(rows).contributions - (exact - exact.mean(axis=0))).max()
        what = f"{name}: from path-dependent Shapley values by brute force"
        report.check(what, float(off), bound, at_least=False, unit="")
    for name, sums in (
        ("linear", LinearRanker()),
        ("boosted thresholds", BoostedRanker(n_estimators=30)),
        ("boosted features", BoostedRanker(beta=1.0, weak_ranker="feature", n_estimators=5)),
    ):
        contributions = sums.fit(data).explain(rows).contributions
        exact = np.array([mean_document_shapley(sums.predict, rows, row) for row in range(6)])
        off = np.abs(contributions - exact).max()
        report.check(f"{name}: from Shapley values by brute force", float(off), 1e-9,
                     at_least=False, unit="")  # fmt: skip


def _own(ranker: TreeRanker, rows: Floats) -> object:
    """The engine's own function, as its users call it."""
    import xgboost

    if ranker.engine == "lightgbm":
        return ranker.booster_.predict(rows, pred_contrib=True)
    return ranker.booster_.predict(
        xgboost.DMatrix(rows), pred_contribs=True, validate_features=False
    )


def _times(report: Report, quick: bool) -> None:
    random = np.random.default_rng(1)
    X = random.random((4_000, 46)).astype(np.float32)
    y = np.round(3 * X[:, 0] + 2 * X[:, 1] * X[:, 2] + random.random(4_000))
    data = Dataset.from_arrays(X, y, group=[100] * 40)
    rows, query = data[0].features, data.select(["0"])
    trees = 100 if quick else 300
    for engine in ("lightgbm", "xgboost"):
        ranker = TreeRanker(engine=engine, n_estimators=trees).fit(data)
        functions: dict[str, Callable[[], object]] = {
            "own": partial(_own, ranker, rows),
            "explain": partial(ranker.explain, query),
        }
        median_seconds(functions, 2)
        seconds = median_seconds(functions, 15 if quick else 51)
        report.note(
            f"{engine}, {trees} trees, 100 documents: pred_contrib {1e3 * seconds['own']:.1f} ms, "
            f"explain {1e3 * seconds['explain']:.1f} ms (medians)"
        )
        report.check(f"{engine}: explain beside pred_contrib", seconds["explain"] / seconds["own"],
                     1.3, at_least=False)  # fmt: skip


def _planted_features(report: Report, quick: bool) -> None:
    ranker = TreeRanker(n_estimators=60).fit(planted(300))
    result = permutation_importance(ranker, planted(300, seed=1), "nDCG@10")
    groups = {group.features[0]: group for group in result.groups}
    together = "copy" in groups["strong"].features
    report.check("a copy of a feature is in its group", together, 1, unit="")
    report.check("importance of a strong feature and its copy", groups["strong"].low, 0.1, unit="")
    report.check("importance of a weak feature, lower end", groups["weak"].low, 0.0, unit="")
    noise = groups["noise"]
    report.check("importance of noise", abs(noise.importance), 0.01, at_least=False, unit="")
    report.check("what is constant in each query is unused", groups["constant"].unused, 1, unit="")
    samples = 200 if quick else 1000
    covered, truth = coverage(samples)
    low, high = (float(stats.binom.ppf(share, samples, 0.95)) for share in (0.0005, 0.9995))
    what = f"95 % intervals of an importance of {truth:.3f} that contain it, of {samples}"
    report.check(what, covered, low, unit="")
    report.check(what, covered, high, at_least=False, unit="")


if __name__ == "__main__":
    main()
