"""Which loss and which sizes of trees are a good default: `TreeRanker()` beside LightGBM's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers import TreeRanker
from studies.arrays import Doubles
from studies.claims import table
from studies.collections import Fold, available, graded, load_folds
from studies.leaderboard_models import K, Truth
from studies.parts import Part
from studies.peers import PeerRanker
from studies.study import Setup, Study, Written

DATA = ("MSLR-sample", "OHSUMED-2", "OHSUMED", "MQ2008", "MQ2007", "Yandex")
MEASURES: dict[Truth, str] = {"graded": "nDCG@10", "top-k": f"kNDCG(k={K})@10"}
SIZES = {"31 leaves, rate 0.1": (31, 0.1), "15 leaves, rate 0.05": (15, 0.05)}
"""LightGBM's defaults, and smaller and slower trees."""

OBJECTIVES = ("LightGBM lambdarank", "LightGBM rank_xendcg", "LightGBM regression")
LOSSES = (
    "SquaredError()",
    "PairLogistic()",
    "ListNet()",
    "ListMLE(k=10)",
    "LambdaLoss(k=10)",
    "LambdaLoss()",
)
OTHERS = ("XGBoost rank:ndcg", "CatBoost YetiRank")
"""Engines whose trees have other sizes: they are trained with their own defaults only."""

DEFAULTS = "31 leaves, rate 0.1"
"""LightGBM's own."""

_BESIDE = (
    *("data", "TreeRanker()", "best at defaults", "difference", "p"),
    *("best of six", "difference", "p"),
)
CHOSEN = "SquaredError(), 15 leaves, rate 0.05"
"""What `TreeRanker()` does."""


def measure_fold(data: Path, collection: str, truth: Truth, fold: int) -> dict[str, Any]:
    """Train every candidate on one fold: the mean on validation, the values of test queries."""
    queries = load_folds(collection, data)[fold].map(
        lambda part: graded(collection, part) if truth == "graded" else part.top_k(K)
    )
    measure = parse_measure(MEASURES[truth])
    results = {}
    for size, (leaves, rate) in SIZES.items():
        engine_params = {"num_leaves": leaves, "learning_rate": rate}
        candidates: dict[str, Any] = {
            name: PeerRanker(name, engine_params=engine_params) for name in OBJECTIVES
        }
        for loss in LOSSES:
            candidates[loss] = TreeRanker(
                loss,
                learning_rate=rate,
                measure=measure,
                engine_params={"num_leaves": leaves},
            )
        for name, ranker in candidates.items():
            results[f"{name}, {size}"] = _measured(ranker, queries, measure)
    for name in OTHERS:
        results[name] = _measured(PeerRanker(name), queries, measure)
    return results


def _measured(ranker: Any, queries: Fold, measure: Measure) -> dict[str, Any]:
    ranker.fit(queries.train, eval_set=queries.validation)
    validation, test = (
        evaluate(measure, part, ranker.predict(part))[measure]
        for part in (queries.validation, queries.test)
    )
    return {
        "validation": float(validation.mean()),
        "test": [round(float(value), 6) for value in test],
    }


def _cases(setup: Setup) -> list[tuple[str, Truth]]:
    names = [] if setup.data is None else [name for name in DATA if name in available(setup.data)]
    if setup.quick:
        names = names[:1]
    ground_truths: tuple[Truth, ...] = ("graded", "top-k")
    return [(name, truth) for name in names for truth in ground_truths]


def _parts(setup: Setup) -> list[Part]:
    return [
        Part(f"{name} {truth} {fold}", measure_fold, (setup.data, name, truth, fold))
        for name, truth in _cases(setup)
        for fold in range(1 if setup.quick else 5)
    ]


def _write(values: Mapping[str, Any], setup: Setup, _images: Path) -> Written:
    cases = {
        f"{name}, {truth}": [
            value for part, value in values.items() if part.startswith(f"{name} {truth} ")
        ]
        for name, truth in _cases(setup)
    }
    every = 1 if setup.quick else 5
    cases = {
        case if len(folds) == every else f"{case} ({len(folds)} of {every} folds)": folds
        for case, folds in cases.items()
        if folds
    }
    if not cases:
        return Written([], ["Nothing has run yet.\n"])
    names = list(next(iter(cases.values()))[0])
    validation = np.array(
        [
            [np.mean([fold[name]["validation"] for fold in folds]) for folds in cases.values()]
            for name in names
        ]
    )
    spread = validation.std(axis=0)
    standard = (validation - validation.mean(axis=0)) / np.where(spread > 0, spread, 1)
    order = np.argsort(-standard.mean(axis=1))
    test = {
        (name, case): np.concatenate([fold[name]["test"] for fold in folds])
        for case, folds in cases.items()
        for name in names
    }
    peers = [name for name in names if name.startswith("LightGBM")]
    at_defaults = [name for name in peers if name.endswith(DEFAULTS)] + list(OTHERS)
    return Written(
        [],
        [
            "## By validation queries\n",
            "Mean over the data sets of the standardized measure; these decided the default. A "
            "data set without a column has not run.\n",
            table(
                ("candidate", "mean", *cases),
                (
                    (names[i], f"{standard[i].mean():+.2f}", *(f"{x:.4f}" for x in validation[i]))
                    for i in order
                ),
            ),
            f"## {CHOSEN}, beside LightGBM\n",
            "The best of LightGBM's three objectives, picked on the test queries themselves: with "
            "its own default sizes, and of all six. Paired t-tests.\n",
            table(
                _BESIDE,
                (_beside(case, test, peers) for case in cases),
            ),
            _behind(test, list(cases), peers),
            "## Beside every engine's own defaults\n",
            "Difference of `TreeRanker()`, and *p* of a paired t-test, not corrected for their "
            "number. All stop early on the validation queries and have at most 300 trees.\n",
            table(
                ("data", *(name.removesuffix(f", {DEFAULTS}") for name in at_defaults)),
                (
                    (
                        case,
                        *(
                            _difference(test[CHOSEN, case], test[name, case])
                            for name in at_defaults
                        ),
                    )
                    for case in cases
                ),
            ),
        ],
    )


def _beside(case: str, test: Mapping[tuple[str, str], Doubles], peers: Sequence[str]) -> list[str]:
    ours = test[CHOSEN, case]
    row = [case, f"{ours.mean():.4f}"]
    for group in ([name for name in peers if name.endswith(DEFAULTS)], peers):
        best = max(group, key=lambda name: test[name, case].mean())
        theirs = test[best, case]
        p = stats.ttest_rel(ours, theirs).pvalue
        row += [f"{best} {theirs.mean():.4f}", f"{ours.mean() - theirs.mean():+.4f}", f"{p:.2g}"]
    return row


def _behind(
    test: Mapping[tuple[str, str], Doubles], cases: Sequence[str], peers: Sequence[str]
) -> str:
    """Where the aim is missed, in a sentence."""
    rows = {case: _beside(case, test, peers) for case in cases}
    texts = []
    for difference, what in ((3, "the best at defaults"), (6, "the best of six")):
        missed = [
            f"{case} (p = {row[difference + 1]})"
            for case, row in rows.items()
            if row[difference].startswith("-") and float(row[difference + 1]) < 0.05
        ]
        texts.append(f"{what} on {', '.join(missed) or 'no data'}")
    return f"Significantly behind (p < 0.05, not corrected) {texts[0]}, and {texts[1]}.\n"


def _difference(ours: Doubles, theirs: Doubles) -> str:
    p = stats.ttest_rel(ours, theirs).pvalue
    return f"{ours.mean() - theirs.mean():+.4f} (p {p:.2g})"


STUDY = Study(
    "defaults",
    "The default of TreeRanker",
    "Which loss and sizes of trees are a good default, beside LightGBM's objectives.",
    """
The aim: `TreeRanker()` is at least level with the best of LightGBM's objectives on any data.
Six losses and LightGBM's `lambdarank`, `rank_xendcg` and `regression` are trained with two sizes of
trees on graded labels and on the order of the top 10, five folds each, at most 300 trees, stopped
early on validation queries. The choice is made on the validation queries of all folds,
which in other folds are test queries; test queries only report.
XGBoost and CatBoost are trained with their own defaults.
""",
    "the data sets of the leaderboard but for LightGBM's example.",
    _parts,
    _write,
    needs_data=True,
)
