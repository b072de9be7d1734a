"""Hybrid search: gains on queries that chose nothing, intervals, requirements, and time.

    python -m benchmarks.hybrid [--quick]

Reads ../shared/data/trec, ../shared/data/preferences and ../shared/data/text/cacm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks._report import Report, median_seconds, wants_quick
from podium.data import Dataset
from podium.hybrid import Fusion
from podium.hybrid.fusion import fuse
from podium.hybrid.objectives import SHARES, balance_fusion, balance_ranker
from podium.hybrid.tuning import JudgedLists, tune_fusion
from podium.measures import evaluate
from podium.measures.comparison.statistics import mean_interval
from podium.rankers import LinearRanker
from studies.hybrid import NEEDED, STUDY, comparisons, parts, run_quick
from studies.parts import read_parts
from studies.study import RESULTS, Setup, run_study

BUILD = Path("build")
_DATA = Path("../shared/data")
_DOCUMENTS = 20
_FEW = 20
"""Fewer samples show the means of prices only."""

_Dicts = dict[str, dict[str, float]]


def gain_rows(report: Report, quick: bool) -> None:
    """Compare the choice with baselines and with ranx on queries that chose nothing."""
    if quick:
        cells = run_quick(_DATA)
    else:
        setup = Setup(BUILD, _DATA)
        run_study(STUDY, setup)
        cells = read_parts(parts(setup), setup.folder(STUDY.name) / RESULTS).values
    if not cells:
        report.note(f"{_DATA} is not here: no gains are measured")
        return
    if not quick and not all(map(find_spec, NEEDED)):
        report.note(f"CACM is left out: it needs {', '.join(NEEDED)}")
    for name, cell in cells.items():
        report.note(f"{name}: {cell['queries']} queries. {cell['verdict']}")
        for row in cell["rows"]:
            optimism = row["in_sample"] - row["held_out"]
            line = f"  {row['name']}: {row['held_out']:.4f}, optimism {optimism:+.4f}"
            if "p" in row:
                line += f", gain {row['gain']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
            report.note(line)
    every = comparisons(cells)
    ahead = [name for name, row, p in every if p < 0.05 and row["gain"] > 0]
    report.note(
        f"{len(every)} comparisons, Holm-corrected together: significantly ahead in {len(ahead)}"
        + "".join(f"; {name}" for name in ahead)
    )
    behind = [(p, row["p"]) for _, row, p in every if row["gain"] < 0]
    report.check("comparisons significantly behind", sum(p < 0.05 for p, _ in behind), 0, False, "")
    report.check("the same without correction", sum(p < 0.05 for _, p in behind), 0, False, "")


def requirement_rows(report: Report, quick: bool) -> None:
    """Draw queries from a collection, and look on all of it whether what ships keeps its word."""
    queries, sample, splits, level = 4000, 400, 8 if quick else 1000, 0.05
    rng = np.random.default_rng(0)
    labels = rng.choice(4, (queries, _DOCUMENTS), p=(0.6, 0.2, 0.15, 0.05))
    scores = 1.2 * labels + rng.normal(size=labels.shape)
    margin = rng.random(labels.shape)
    offsets = np.arange(queries + 1) * _DOCUMENTS
    columns = np.column_stack([scores.ravel(), margin.ravel()])
    true: list[float] = []
    for share in (0.0, *SHARES):
        fusion = Fusion(("run", "margin"), weights=(1 - share, share), columns=("margin",))
        fused = fuse(columns, offsets, fusion)
        values = evaluate("nDCG@10", labels.ravel(), fused, group=np.diff(offsets))["nDCG@10"]
        true.append(float(values.mean()))
    relevance = true[0]
    holds = dict(zip((0.0, *SHARES), (each / relevance for each in true), strict=True))
    documents = [[f"{query}.{at}" for at in range(_DOCUMENTS)] for query in range(queries)]
    margins = dict(zip((d for row in documents for d in row), margin.ravel().tolist(), strict=True))
    broken, naive, shipped, gains, prices, after = 0, 0, 0, [], [], []
    for _ in range(splits):
        drawn = rng.choice(queries, sample, replace=False)
        truth = {f"q{q}": dict(zip(documents[q], labels[q].tolist(), strict=True)) for q in drawn}
        run = {f"q{q}": dict(zip(documents[q], scores[q].tolist(), strict=True)) for q in drawn}
        result = balance_fusion(
            truth, {"run": run}, "mean(margin)@10", ["nDCG@10 >= baseline - 2%"],
            {"margin": margins}, folds=2, level=level,
        )  # fmt: skip
        if result.chosen is not None:
            shipped += 1
            broken += holds[result.chosen.share] < 0.98
            gains.append(result.chosen.gain.mean)
            prices.append((result.price, result.chosen.price.mean))
            after.append((holds[result.chosen.share] - 1.0) * relevance)
        # What is done otherwise: the largest share whose mean on the sample meets the bound.
        base = result.baseline[1]
        within = [each.share for each in result.shares if each.value >= 0.98 * base]
        naive += bool(within) and holds[max(within)] < 0.98
    report.note(
        f"{splits} samples of {sample} queries: {shipped} ship a share, with a gain of "
        f"{np.mean(gains or [np.nan]):.3f} in a margin of 0 to 1; by the sample's mean alone "
        f"{naive / splits:.0%} break the requirement"
    )
    _price_row(report, "price of fusions", prices, after)
    target = level + 2.33 * (level * (1 - level) / splits) ** 0.5
    report.check("shipped shares that break it", 100 * broken / splits, 100 * target, False, "%")
    report.check("samples that ship a share", 100 * shipped / splits, 25, True, "%")


def ranker_rows(report: Report, quick: bool) -> None:
    """Train rankers on samples under a requirement, and look on new queries whether it holds."""
    sample, splits, level = 300, 3 if quick else 300, 0.05
    rng = np.random.default_rng(1)
    new = _featured(rng, 4000)
    sizes = np.diff(new.offsets)
    broken, shipped, gains, prices, after = 0, 0, [], [], []
    for _ in range(splits):
        data = _featured(rng, sample)
        ranker = LinearRanker("PairLogistic(k=10)")
        result = balance_ranker(
            ranker, data, "mean(margin)@10", ["nDCG@10 >= baseline - 2%"], folds=2, level=level
        )
        assert isinstance(result.model, LinearRanker)
        if result.chosen is None:
            continue
        value, base = (
            float(evaluate("nDCG@10", new.labels, each.predict(new), group=sizes)["nDCG@10"].mean())
            for each in (result.model, ranker.fit(data))
        )
        shipped += 1
        broken += value < 0.98 * base
        gains.append(result.chosen.gain.mean)
        prices.append((result.price, result.chosen.price.mean))
        after.append(value - base)
    report.note(
        f"linear rankers on {splits} samples of {sample} queries: {shipped} ship a share; gain "
        f"{np.mean(gains or [np.nan]):.3f} in a margin of 0 to 1"
    )
    _price_row(report, "price of rankers", prices, after)
    target = level + 2.33 * (level * (1 - level) / splits) ** 0.5
    report.check("trained shares that break it", 100 * broken / splits, 100 * target, False, "%")
    report.check("rankers with a share", 100 * shipped / splits, 25, True, "%")


def _price_row(
    report: Report, name: str, prices: list[tuple[float, float]], after: list[float]
) -> None:
    """Compare prices as reported, and those of the chosen row, with the price on new queries."""
    if not prices:
        return
    reported, row = np.mean(prices, axis=0)
    error = float(np.std(np.subtract([each for each, _ in prices], after))) / len(after) ** 0.5
    report.note(
        f"{name}: {reported:+.4f} nDCG@10 reported, {row:+.4f} in the chosen row, "
        f"{np.mean(after):+.4f} on new queries"
    )
    if len(after) >= _FEW:
        most = 0.001 + 2.33 * error
        report.check(f"{name}, too good by", float(reported - np.mean(after)), most, False, "")


def interval_rows(report: Report, quick: bool) -> None:
    """Draw queries from collections, and look how often intervals have the gain on new queries."""
    samples, new = (1, 200) if quick else (200, 2000)
    settings = {
        "uneven": ((1.3, 0.6), 50, "normal"), "20 queries": ((1.3, 0.6), 20, "normal"),
        "200 queries": ((1.3, 0.6), 200, "normal"), "flat": ((1.0, 1.0), 50, "shared"),
        "dominant": ((2.0, 0.0), 50, "normal"), "heavy tails": ((1.3, 0.8), 50, "heavy"),
        "ties": ((1.2, 0.8), 50, "ties"), "half without gain": ((1.2, 0.7), 50, "empty"),
        "three lists": ((1.3, 0.8, 0.4), 50, "normal"),
    }  # fmt: skip
    rates, plain = [], []
    for name, (weights, size, kind) in list(settings.items())[: 2 if quick else None]:
        rng = np.random.default_rng(2)
        covered, without, equal = np.zeros(0), np.zeros(0), 0
        truth, runs = _lists(rng, new, weights, kind)
        judged = JudgedLists.of(truth, runs, "nDCG@10", None)
        for _ in range(samples):
            drawn = [f"q{each}" for each in rng.choice(new, size, replace=False)]
            result = tune_fusion(
                {each: truth[each] for each in drawn},
                {at: {each: run[each] for each in drawn} for at, run in runs.items()},
            )
            means = [float(judged.values(row.fusion)[judged.usable].mean()) for row in result.rows]
            values = result.comparison.values["nDCG@10"]
            for at, row in enumerate(result.rows[1:], start=1):
                assert row.gain is not None
                gain, fixed = means[0] - means[at], mean_interval(values[:, 0] - values[:, at])
                if np.isnan(row.gain.low):
                    equal += 1
                    continue
                covered = np.append(covered, row.gain.low <= gain <= row.gain.high)
                without = np.append(without, fixed[1] <= gain <= fixed[2])
        rates.append(covered.mean())
        plain.append(without.mean())
        report.note(
            f"intervals, {name}: {rates[-1]:.1%} of {len(covered)} have the gain on new queries, "
            f"{plain[-1]:.1%} without the optimism; {equal} gains are 0 without an interval"
        )
    if not quick:
        report.check("coverage of 95 % intervals", 100 * float(np.mean(rates)), 93, True, "%")
        report.check("lowest of a setting", 100 * min(rates), 91, True, "%")


def _lists(
    rng: np.random.Generator, queries: int, weights: tuple[float, ...], kind: str
) -> tuple[_Dicts, dict[str, _Dicts]]:
    """Return labels, and lists that see them with noise and lack some documents."""
    labels = rng.choice(4, (queries, 12), p=(0.6, 0.2, 0.15, 0.05))
    if kind == "empty":  # one document with a grade for each query: a value, and often no gain
        labels[rng.random(queries) < 0.5] = 0
        labels[:, 0] = np.maximum(labels[:, 0], 1)
    shared = rng.normal(size=labels.shape)
    runs = {}
    for at, weight in enumerate(weights):
        noise = (
            rng.standard_t(2, labels.shape) if kind == "heavy" else rng.normal(size=shared.shape)
        )
        if kind == "shared":
            noise = 0.9 * shared + 0.44 * noise
        scores = weight * labels + noise
        if kind == "ties":
            scores = np.round(scores)
        kept = rng.random(labels.shape) < 0.85
        runs[f"list{at}"] = {
            f"q{q}": {f"d{d}": float(scores[q, d]) for d in np.flatnonzero(kept[q])}
            for q in range(queries)
        }
    truth = {f"q{q}": {f"d{d}": float(x) for d, x in enumerate(r)} for q, r in enumerate(labels)}
    return truth, runs


def _featured(rng: np.random.Generator, queries: int) -> Dataset:
    rows = queries * _DOCUMENTS
    labels = rng.choice(4, rows, p=(0.6, 0.2, 0.15, 0.05)).astype(np.float64)
    words, clicks = (scale * labels + rng.normal(size=rows) for scale in (1.0, 0.7))
    features = np.column_stack([words, clicks, rng.random(rows)])
    return Dataset.from_arrays(
        features, labels, group=[_DOCUMENTS] * queries, feature_names=["words", "clicks", "margin"]
    )


def time_rows(report: Report, quick: bool) -> None:
    """Time the fusion of 3 lists of 100 documents beside one pass over the data."""
    block, lists, returned, union = 10_000 if quick else 100_000, 3, 100, 200
    rng = np.random.default_rng(0)
    votes = rng.random((block * union, lists), np.float32)
    kept = np.arange(union) < returned
    for column in range(lists):
        of_query = rng.permutation(union)
        votes[~np.tile(kept[of_query], block), column] = np.nan
    offsets = np.arange(block + 1) * union
    names = ("bm25", "dense", "sparse")
    forms = {
        "min-max": Fusion(names), "l2": Fusion(names, "l2"), "z-score": Fusion(names, "z-score"),
        "rrf": Fusion(names, "rank", "rrf"),
    }  # fmt: skip
    functions: dict[str, Callable[[], object]] = {
        name: partial(fuse, votes, offsets, fusion) for name, fusion in forms.items()
    }
    functions["pass"] = lambda: np.nansum(votes, axis=1)
    for function in functions.values():
        function()
    seconds = median_seconds(functions, 3)
    million = {name: value * 1_000_000 / block for name, value in seconds.items()}
    report.note(
        f"1,000,000 queries in blocks of {block:,}, {lists} lists of {returned} documents, {union} "
        "in all: " + ", ".join(f"{name} {value:.1f} s" for name, value in million.items())
    )
    report.check("min-max beside NumPy's nansum", seconds["min-max"] / seconds["pass"], 2, False)


def main() -> None:
    """Run all of it."""
    quick = wants_quick(__doc__)
    report = Report("hybrid", quick, packages=["ranx"])
    time_rows(report, quick)
    requirement_rows(report, quick)
    ranker_rows(report, quick)
    interval_rows(report, quick)
    gain_rows(report, quick)
    report.finish()


if __name__ == "__main__":
    main()
