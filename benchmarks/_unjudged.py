"""Unjudged documents: are bounds bounds, and do expectations and chances come true?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from unittest.mock import patch

import numpy as np

from benchmarks._gates import TREC, GateRow, dl21
from benchmarks._null_queries import Doubles
from podium.data import Judgments, Rankings
from podium.measures import conventions_named, parse_measure
from podium.measures.comparison import unjudged as tested
from podium.measures.comparison.next_judgments import JudgingPlan, judging_plan
from podium.measures.comparison.unjudged import unjudged_documents

BOUNDED = (
    "nDCG@3", "nDCG", "DCG@3", "NGain", "LevelNDCG", "kNDCG(k=3)", "ERR@3", "ERR",
    "kERR(k=3)", "AP", "AP@2", "YAAP", "bpref", "InfAP", "RR", "Success@2", "P@2", "P", "R@2",
    "Rprec", "RelP@2", "SetAP", "SetF", "RBP", "GradedRBP", "IPrec(recall=0.5)", "AvgIPrec",
    "BinGain", "Compat", "TopKLoss(k=2)", "WKT(k=3)", "Utility", "Judged@2",
)  # fmt: skip
"""The measures that have bounds however many documents are unjudged."""
_THIRDS = {"nDCG@10": 8, "P@10": 3, "RR@10": 3}
"""How often a third is drawn; the 66 pairs of one third are not independent of each other."""
_BOUNDS = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
_BINS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99, 1.0 + 1e-9)
_FEWEST = 30
_ROUNDING = 1e-6


def _cases(random: np.random.Generator, cases: int) -> tuple[Judgments, Rankings, Rankings]:
    """Queries with two runs, of up to five documents, up to four of which are not judged."""
    columns: list[list[tuple[str, str, float]]] = [[], [], []]
    grades = int(random.integers(1, 4))
    for number in range(cases):
        documents = [f"d{each}" for each in range(int(random.integers(2, 6)))]
        judged = documents[: max(1, len(documents) - int(random.integers(1, 5)))]
        query = f"q{number}"
        columns[0] += [(query, each, float(random.integers(0, grades + 1))) for each in judged]
        for run in columns[1:]:
            size = int(random.integers(1, len(documents) + 1))
            listed = random.permutation(documents)[:size].tolist()
            # Few scores, so some are tied.
            run += [(query, each, float(random.integers(0, 8))) for each in listed]
    judged, *runs = (list(zip(*rows, strict=True)) for rows in columns)
    return Judgments.from_columns(*judged), *(Rankings.from_columns(*run) for run in runs)  # type: ignore[return-value]


def bound_violations(name: str, cases: int, *, seed: int, conventions: str = "podium") -> int:
    """In how many small cases a difference exists that is outside of the bounds.

    All labels in use are given to the unjudged documents. Each case is bounded twice: by trying
    all labels, which must be exact, and as if there were too many to do so.
    """
    random = np.random.default_rng(seed)
    measure, chosen = parse_measure(name), conventions_named(conventions)
    violations = 0
    for _ in range(4):
        trial = tested._Trial.of(measure, chosen, *_cases(random, cases // 4))
        _, first, sizes = np.unique(trial.query, return_index=True, return_counts=True)
        within = np.arange(len(trial.query)) - np.repeat(first, sizes)
        labels = np.array(list(product(trial.levels, repeat=int(sizes.max()))))
        every = trial.of_draws(labels[:, within])
        for most in (tested._MOST_LABELINGS, 1):
            with patch.object(tested, "_MOST_LABELINGS", most):
                bounds = trial.bounds()
            assert bounds is not None
            for bound in bounds:
                values = every[:, bound.query]
                values = values[~np.isnan(values)]
                if len(values):
                    low, high = bound.least - values.min(), values.max() - bound.most
                    far = abs(low) + abs(high) if bound.exact else max(low, high)
                    violations += bool(far > _ROUNDING)
    return violations


def thirds(judgments: Judgments, seeds: int) -> Iterator[Judgments]:
    """A third of the judgments: every third line, then at random."""
    for seed in range(seeds):
        rows = np.arange(judgments.rows)
        kept = rows % 3 == 0
        if seed:
            kept = np.random.default_rng(seed).random(len(rows)) < 1 / 3
        yield _only(judgments, kept)


def pooled(judgments: Judgments, runs: list[Rankings], depth: int) -> Judgments:
    """The judgments of the first documents of some runs."""
    known: set[tuple[str, str]] = set()
    for run in runs:
        query = np.array(run.query_ids.to_pylist())[run.query_of_row]
        order = np.lexsort((-run.scores, run.query_of_row))
        first = order[np.arange(len(order)) - np.repeat(run.offsets[:-1], run.sizes) < depth]
        documents = np.array(run.document_ids.to_pylist())
        known |= set(zip(query[first].tolist(), documents[first].tolist(), strict=True))
    ids = np.array(judgments.query_ids.to_pylist())[judgments.query_of_row].tolist()
    pairs = zip(ids, judgments.document_ids.to_pylist(), strict=True)
    return _only(judgments, np.array([pair in known for pair in pairs]))


def _only(judgments: Judgments, kept: np.ndarray) -> Judgments:  # type: ignore[type-arg]
    ids = np.array(judgments.query_ids.to_pylist())[judgments.query_of_row]
    documents = np.array(judgments.document_ids.to_pylist())
    return Judgments.from_columns(ids[kept], documents[kept], judgments.labels[kept])


def outcome(
    name: str, full: Judgments, part: Judgments, baseline: Rankings, system: Rankings
) -> tuple[JudgingPlan, float]:
    """The plan with a part of the judgments, and the difference once it is followed."""
    measure, conventions = parse_measure(name), conventions_named("podium")
    # Bounds and swings take most of the time, and are not what is measured here.
    with patch.multiple(tested, _MOST_BOUNDED=0, _TRIALS=1):
        unjudged = unjudged_documents(measure, conventions, part, baseline, system)
    plan = judging_plan(measure, unjudged, count=1, bound=0.0)
    trial = tested._Trial.of(measure, conventions, part, baseline, system)
    ids = part.query_ids.to_pylist()
    known = {}
    queries = np.array(full.query_ids.to_pylist())[full.query_of_row].tolist()
    for query, document, label in zip(
        queries, full.document_ids.to_pylist(), full.labels.tolist(), strict=True
    ):
        known[query, document] = label
    labels = [
        known.get((ids[query], document), 0.0)
        for query, document in zip(trial.query.tolist(), trial.document_ids, strict=True)
    ]
    return plan, float(np.nanmean(trial.of_draws(np.array([labels]))))


def calibration(quick: bool) -> list[GateRow]:
    """``plan --next`` for the pairs of the twelve runs with a third judged."""
    full, runs = dl21()
    pairs = list(combinations(runs.values(), 2))
    held, known, cases = [], [], []
    for name, count in {"nDCG@10": 1}.items() if quick else _THIRDS.items():
        for part in thirds(full, count):
            for baseline, system in pairs[:: 11 if quick else 1]:
                plan, truth = outcome(name, full, part, baseline, system)
                known.append(plan.expected is not None)
                if plan.expected is None or plan.deviation is None:
                    continue
                held.append(abs(truth - plan.expected) <= 1.96 * plan.deviation)
                cases += [(name, bound, *_turned(plan, bound, truth)) for bound in (0.0, *_BOUNDS)]
    share = 100 * float(np.mean(held))
    rows = [
        GateRow("a third judged: 95 % statements that hold", share, 90.0, True, "%"),
        GateRow(
            "a third judged: plans with an expectation",
            100 * float(np.mean(known)),
            85.0,
            True,
            "%",
        ),
    ]
    if not quick:  # of few pairs, all may hold
        rows.append(GateRow("a third judged: 95 % statements, at most", share, 98.0, False, "%"))
    for what, zero in (("0", True), ("others", False)):
        chances, turns = np.array([(c, t) for _, b, c, t in cases if (b == 0.0) == zero]).T
        rows.append(
            GateRow(
                f"chance to turn, bound {what}: largest gap of a bin",
                _gap(chances, turns),
                0.05,
                False,
                "",
            )
        )
    return rows


def _turned(plan: JudgingPlan, bound: float, truth: float) -> tuple[float, bool]:
    chance = replace(plan, bound=bound, could_turn=True).chance_to_turn
    assert chance is not None
    return chance, (plan.difference > bound) != (truth > bound)


def _gap(chances: Doubles, turns: Doubles) -> float:
    """The largest distance between the mean chance and the share that turned, over the bins."""
    bins = np.digitize(chances, _BINS)
    gaps = [
        abs(float(np.mean(turns[bins == each])) - float(np.mean(chances[bins == each])))
        for each in np.unique(bins)
        if np.sum(bins == each) >= _FEWEST
    ]
    return max(gaps, default=0.0)


def pools(quick: bool) -> list[GateRow]:
    """Where judged documents are no sample, nothing may be expected."""
    full, runs = dl21()
    random = np.random.default_rng(5)
    said = {"two other runs": [], "the baseline and another run": [], "depth 3 of both": []}  # type: ignore[var-annotated]
    for baseline, system in list(combinations(runs.values(), 2))[:: 22 if quick else 2]:
        others = [run for run in runs.values() if run is not baseline and run is not system]
        one, two = random.permutation(len(others))[:2].tolist()
        for way, chosen, depth in (
            ("two other runs", [others[one], others[two]], 10),
            ("the baseline and another run", [baseline, others[one]], 10),
            ("depth 3 of both", [baseline, system], 3),
        ):
            part = pooled(full, chosen, depth)
            plan, _ = outcome("nDCG@10", full, part, baseline, system)
            said[way].append(plan.expected is not None)
    return [
        GateRow(
            f"pool of {way}: plans with an expectation",
            100 * float(np.mean(each)),
            10.0,
            False,
            "%",
        )
        for way, each in said.items()
    ]


def unjudged_rows(quick: bool) -> list[GateRow]:
    """Every figure of unjudged documents with its target."""
    rows = [
        GateRow(
            f"bounds of {name} against brute force, violations",
            bound_violations(name, 100 if quick else 2_000, seed=7),
            0.0,
            False,
            "cases",
        )
        for name in BOUNDED[:: 4 if quick else 1]
    ]
    if TREC.exists():
        rows += calibration(quick) + pools(quick)
    return rows
