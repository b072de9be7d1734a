"""Lan et al. (2013), theorems 1 and 2: which of their inequalities hold, and which does not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.labels import to_full_order, to_top_k
from podium.losses import ListMLE, Loss, PairExponential, PairHinge, PairLogistic
from podium.measures import evaluate
from podium.measures.names import parse_measure
from studies.arrays import Doubles
from studies.claims import Claim, ClaimVerdict, table
from studies.collections import load_folds
from studies.parts import Part
from studies.plots import Panel, PlotLine, draw_panels
from studies.study import Setup, Study, Written

_LN2 = math.log(2)
_ROUNDING = 1e-9
_SCALES = (0.01, 0.3, 1.0, 5.0)
_QUANTILES = 200

INEQUALITIES = {
    "(14)": "1 - NDCG@k ≤ WKT / N",
    "(17) hinge": "WKT ≤ max alpha · hinge loss",
    "(17) exponential": "WKT ≤ max alpha · exponential loss",
    "(17) logistic, natural": "WKT ≤ max alpha · logistic loss, natural logarithm",
    "(17) logistic, base 2": "WKT ≤ max alpha · logistic loss, base 2",
    "(18) as printed": "WKT ≤ max alpha / ln 2 · ListMLE loss",
    "(18) corrected": "WKT ≤ max alpha (n - 1) / ln n · ListMLE loss",
    "(14) and (18) together": "1 - NDCG@k ≤ max alpha / (N ln 2) · ListMLE loss",
}
"""What is tested: the left side over the right side may not be above 1."""


def ratios(scores: Doubles, labels: Doubles, offsets: Any, k: int) -> dict[str, Doubles]:
    """For each inequality its left side over its right side, query by query.

    Args:
        scores: The score of each row, without ties.
        labels: A full order of each query, n - 1 for the best down to 0.
        offsets: Where each query begins.
        k: The k of the top k; queries with k documents or fewer are left out.

    Example:
        >>> result = ratios(np.array([0.0, 1e-9, 2e-9]), np.array([2.0, 1.0, 0.0]), [0, 3], 1)
        >>> result["(18) as printed"].round(3).tolist()  # 2 ln 2 / ln 3
        [1.262]
    """
    sizes = np.diff(offsets)
    top = to_top_k(labels.astype(np.float32), np.asarray(offsets), k).astype(float)
    wkt_of, ndcg_of = parse_measure(f"WKT(k={k})"), parse_measure(f"nDCG@{k}")
    evaluation = evaluate([wkt_of, ndcg_of], labels, scores, group=sizes)
    wkt, short = np.asarray(evaluation[wkt_of]), 1 - np.asarray(evaluation[ndcg_of])
    # WKT as evaluated is divided by N, the sum of all alpha; so is the largest alpha here.
    largest = np.array([_largest_weight(int(size), k) for size in sizes])
    losses: dict[str, Loss] = {
        "hinge": PairHinge(k=k),
        "exponential": PairExponential(k=k),
        "logistic, natural": PairLogistic(k=k),
        "ListMLE": ListMLE(k=k),
    }
    value = {name: loss.evaluate(scores, top, offsets).values for name, loss in losses.items()}
    value["logistic, base 2"] = value["logistic, natural"] / _LN2
    likely = value.pop("ListMLE")
    right = {f"(17) {name}": _over(wkt, largest * each) for name, each in value.items()} | {
        "(14)": _over(short, wkt),
        "(18) as printed": _over(wkt, largest * likely / _LN2),
        "(18) corrected": _over(wkt, largest * likely * (sizes - 1) / np.log(np.maximum(sizes, 2))),
        "(14) and (18) together": _over(short, largest * likely / _LN2),
    }
    return {name: right[name][sizes > k] for name in INEQUALITIES}


def _over(left: Doubles, right: Doubles) -> Doubles:
    """The ratio, and 0 where there is nothing to bound."""
    quotients: Doubles = np.divide(left, right, out=np.zeros(len(left)), where=left > _ROUNDING)
    return quotients


def _largest_weight(size: int, k: int) -> float:
    labels = np.arange(size - 1.0, -1.0, -1.0)[:k]
    gains = np.exp2(labels - labels.max()) - np.exp2(-labels.max())  # in units of the largest power
    weights = gains / np.log2(2 + np.arange(len(labels)))
    return float(weights[0] / weights.sum()) if weights.sum() > 0 else 1.0


def random_cases(count: int, seed: int) -> dict[str, Any]:
    """Queries of 2 to 30 documents with random scores, from nearly equal ones to far apart."""
    random = np.random.default_rng(seed)
    ratios_by_inequality: dict[str, list[Doubles]] = {name: [] for name in INEQUALITIES}
    sizes = random.integers(2, 31, 60)
    for size in sizes:
        k = int(random.integers(1, size))
        queries = count // len(sizes)
        rows = queries * int(size)
        labels = np.argsort(random.random((queries, size)), axis=1).ravel().astype(float)
        scales = np.repeat(random.choice(_SCALES, queries), size)
        scores = scales * random.standard_normal(rows)
        offsets = np.arange(0, rows + 1, size)
        for name, values in ratios(scores, labels, offsets, k).items():
            ratios_by_inequality[name].append(values)
    return _summary({name: np.concatenate(values) for name, values in ratios_by_inequality.items()})


def real_cases(data: Path, collection: str, features: int) -> dict[str, Any]:
    """Real queries ranked by single features, with the order of their labels."""
    fold = load_folds(collection, data)[0]
    test = fold.test
    order = to_full_order(test.labels, test.offsets) - 1.0
    random = np.random.default_rng(0)
    ratios_by_inequality: dict[str, list[Doubles]] = {name: [] for name in INEQUALITIES}
    columns = random.permutation(test.features.shape[1])[:features]
    for column_index in columns:
        column = test.features[:, int(column_index)].astype(float)
        scores = column + 1e-6 * random.standard_normal(len(column))
        for k in (1, 3, 10):
            for name, values in ratios(scores, order.astype(float), test.offsets, k).items():
                ratios_by_inequality[name].append(values)
    return _summary({name: np.concatenate(values) for name, values in ratios_by_inequality.items()})


def _summary(ratios_by_inequality: Mapping[str, Doubles]) -> dict[str, Any]:
    return {
        name: {
            "cases": len(values),
            "violations": int((values > 1 + _ROUNDING).sum()),
            "worst": float(values.max()),
            "quantiles": np.quantile(values, np.linspace(0, 1, _QUANTILES + 1)).round(6).tolist(),
        }
        for name, values in ratios_by_inequality.items()
    }


def counter_examples(most: int) -> list[dict[str, float]]:
    """One document preferred to m others that all score a little more: exact in m."""
    examples = []
    for m in range(1, most + 1):
        scores = np.concatenate([[0.0], 1e-9 * np.arange(1, m + 1)])
        labels = np.arange(m, -1.0, -1.0)
        value = ratios(scores, labels, [0, m + 1], 1)["(18) as printed"][0]
        examples.append(
            {"inversions": m, "ratio": float(value), "exact": m * _LN2 / math.log(1 + m)}
        )
    return examples


def _parts(setup: Setup) -> list[Part]:
    count = 6_000 if setup.quick else 60_000
    parts = [
        Part("random", random_cases, (count, 0)),
        Part("counter-example", counter_examples, (10 if setup.quick else 100,)),
    ]
    for name, folder in (("MQ2008", "letor/MQ2008"), ("Yandex", "yandex")):
        if setup.has(folder) and not (setup.quick and name == "Yandex"):
            parts.append(Part(name, real_cases, (setup.data, name, 3 if setup.quick else 20)))
    return parts


def _write(results: Mapping[str, Any], _setup: Setup, images: Path) -> Written:
    cases = {name: results[name] for name in ("random", "MQ2008", "Yandex") if name in results}
    drawn = cases.get("random", {})
    claims = [
        Claim("Lan'13", "Theorem 1", "1 - NDCG@k ≤ WKT / N, eq. (14)", *_fared(cases, ["(14)"])),
        Claim(
            "Lan'13",
            "Theorem 2, eq. (17)",
            "WKT ≤ max alpha times the pairwise loss",
            *_pairs(cases),
        ),
        Claim(
            "Lan'13",
            "Theorem 2, eq. (18)",
            "WKT ≤ max alpha / ln 2 times ListMLE's",
            *_lists(cases),
        ),
    ]
    sections = [_violations(cases)]
    if "counter-example" in results:
        sections.append(_worked_out(results["counter-example"]))
    if drawn:
        _draw(drawn, results.get("counter-example", []), images / "bounds.svg")
        sections.append(_CAPTION)
    return Written(claims, sections)


def _count(cases: Mapping[str, Any], names: list[str]) -> tuple[int, int, float]:
    rows = [case[name] for case in cases.values() for name in names]
    return (
        sum(row["violations"] for row in rows),
        sum(row["cases"] for row in rows),
        max((row["worst"] for row in rows), default=0.0),
    )


def _fared(cases: Mapping[str, Any], names: list[str]) -> tuple[str, ClaimVerdict]:
    broken, total, worst = _count(cases, names)
    measured = f"{broken:,} violations in {total:,} cases; left over right is at most {worst:.3f}"
    return measured, "reproduced" if total and not broken else "not reproduced"


def _pairs(cases: Mapping[str, Any]) -> tuple[str, ClaimVerdict, str]:
    measured, verdict = _fared(cases, ["(17) hinge", "(17) exponential", "(17) logistic, base 2"])
    broken, total, worst = _count(cases, ["(17) logistic, natural"])
    return (
        f"hinge, exponential, logistic in base 2: {measured}",
        "partly" if broken and verdict == "reproduced" else verdict,
        f"RankNet's loss with the natural logarithm breaks it in {broken:,} of {total:,} cases, "
        f"by up to {worst:.3f}: the proof needs a loss of 1 at 0, and ln 2 is less (1 / ln 2 = "
        f"{1 / _LN2:.3f})",
    )


def _lists(cases: Mapping[str, Any]) -> tuple[str, ClaimVerdict, str]:
    broken, total, worst = _count(cases, ["(18) as printed"])
    corrected, _, most = _count(cases, ["(18) corrected"])
    whole, _, _ = _count(cases, ["(14) and (18) together"])
    return (
        f"as printed it fails in {broken:,} of {total:,} cases, by up to {worst:.2f} times",
        "not reproduced" if broken else "reproduced",
        "m inversions of one document cost at least ln(1 + m), not m ln 2. With (n - 1) / ln n "
        f"for 1 / ln 2 it holds ({corrected:,} violations, at most {most:.3f}), and so does what "
        f"the paper needs it for, the bound of 1 - NDCG@k by ListMLE's loss ({whole:,} violations)",
    )


def _violations(cases: Mapping[str, Any]) -> str:
    head = ["inequality", *(f"{name}: violated" for name in cases), "largest left over right"]
    rows = []
    for name, formula in INEQUALITIES.items():
        _, _, worst = _count(cases, [name])
        cells = [
            f"{case[name]['violations']:,} of {case[name]['cases']:,}" for case in cases.values()
        ]
        rows.append([f"{name}: {formula}", *cells, f"{worst:.4f}"])
    return (
        "## Every inequality\n\nalpha is the weight of a position (gain times discount), N their "
        "sum over "
        "the top k. Random cases have 2 to 30 documents and scores from nearly equal to far apart; "
        "real ones are test queries ranked by single features, k = 1, 3 and 10.\n\n"
        + table(head, rows)
    )


def _worked_out(rows: list[dict[str, float]]) -> str:
    shown = [row for row in rows if row["inversions"] in (1, 2, 3, 5, 10, 30, 100)]
    lines = [
        [f"{row['inversions']:.0f}", f"{row['exact']:.4f}", f"{row['ratio']:.4f}"] for row in shown
    ]
    return (
        "## The counter-example to eq. (18)\n\nThree documents and k = 1: the best one scores 0, "
        "the two others marginally more. WKT counts 2 inversions, alpha = 1. ListMLE's loss is "
        "ln 3, so the right side is ln 3 / ln 2 = 1.585, and 2 ≤ 1.585 is false. With m others it "
        "is m against log2(1 + m): the printed bound can be off by any factor.\n\n"
        + table(["inversions m", "m ln 2 / ln(1 + m)", "measured"], lines)
    )


_CAPTION = """![How tight the inequalities are](../images/bounds.svg)

Left: the left side of each inequality as a share of its right side, over the random cases in order;
whatever rises above 1 breaks it. Right: how far the counter-example breaks eq. (18).
"""


def _draw(drawn: Mapping[str, Any], rows: list[dict[str, float]], file: Path) -> None:
    shares = np.linspace(0, 100, _QUANTILES + 1)
    lines = [
        PlotLine(
            name,
            shares.tolist(),
            drawn[name]["quantiles"],
            dashed="corrected" in name or "base 2" in name,
        )
        for name in INEQUALITIES
        if name not in ("(17) hinge", "(17) exponential")
    ]
    m = [row["inversions"] for row in rows]
    panels = [
        Panel(
            "Left side over right side",
            "cases, in order (%)",
            "ratio (above 1: violated)",
            lines,
            marks={"bound": 1.0},
        ),
        Panel(
            "Eq. (18) as printed: the counter-example",
            "inversions of one document",
            "left side over right side",
            [PlotLine("measured", m, [row["ratio"] for row in rows])],
            marks={"bound": 1.0},
        ),
    ]
    draw_panels(file, panels)


STUDY = Study(
    "bounds",
    "Bounds of 1 - NDCG by losses",
    "Lan et al. 2013, theorems 1 and 2: which inequalities hold.",
    """
Lan et al. (*Is top-k sufficient for ranking?*, CIKM 2013) bound 1 - NDCG@k by a weighted Kendall's
tau (WKT), and that by the losses of RankSVM, RankBoost, RankNet and ListMLE on the top k. Each
inequality is tested with Podium's own measures and losses, on random and on real queries.
""",
    "test queries of the first fold of MQ2008 and Yandex.",
    _parts,
    _write,
)
