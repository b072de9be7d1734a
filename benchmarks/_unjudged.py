"""Unjudged documents: are bounds bounds, and do expectations come true?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from benchmarks._gates import TREC, GateRow, dl21
from podium.data import Judgments, Rankings
from podium.measures.comparison.next_judgments import stays
from podium.measures.comparison.unjudged import LabelTrial
from podium.measures.names import parse_measure
from podium.measures.presets import conventions_named

BOUNDED = (
    "nDCG@3", "nDCG", "DCG@3", "LevelNDCG", "kNDCG(k=3)", "ERR@3", "ERR",
    "kERR(k=3)", "AP", "AP@2", "YAAP", "bpref", "InfAP", "RR", "Success@2", "P@2", "P", "R@2",
    "Rprec", "RelP@2", "SetAP", "SetF", "RBP", "GradedRBP", "IPrec(recall=0.5)", "AvgIPrec",
    "BinGain", "Compat", "TopKLoss(k=2)", "WKT(k=3)", "SetUtility", "Judged@2",
)  # fmt: skip
"""The measures that have bounds however many documents are unjudged."""
_THIRDS = {"nDCG@10": 8, "P@10": 3, "RR@10": 3}
"""How often a third is drawn; the 66 pairs of one third are not independent of each other."""
_BOUNDS = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
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
    labeled, *runs = (list(zip(*rows, strict=True)) for rows in columns)
    return Judgments.from_columns(*labeled), *(Rankings.from_columns(*run) for run in runs)  # type: ignore[return-value]


def bound_violations(name: str, cases: int, *, seed: int, conventions: str = "podium") -> int:
    """In how many small cases a difference exists that is outside of the bounds.

    All labels in use are given to the unjudged documents. Each case is bounded twice: by trying
    all labels, which must be exact, and as if there were too many to do so.
    """
    random = np.random.default_rng(seed)
    measure, chosen = parse_measure(name), conventions_named(conventions)
    violations = 0
    for _ in range(4):
        trial = LabelTrial.of(measure, chosen, *_cases(random, cases // 4))
        _, first, sizes = np.unique(trial.query, return_index=True, return_counts=True)
        within = np.arange(len(trial.query)) - np.repeat(first, sizes)
        labels = np.array(list(product(trial.levels, repeat=int(sizes.max()))))
        every = trial.of_draws(labels[:, within])
        for bounds in (trial.bounds(), trial.bounds(most_tried=1)):
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


def _only(judgments: Judgments, kept: np.ndarray) -> Judgments:
    ids = np.array(judgments.query_ids.to_pylist())[judgments.query_of_row]
    documents = np.array(judgments.document_ids.to_pylist())
    return Judgments.from_columns(ids[kept], documents[kept], judgments.labels[kept])


@dataclass(frozen=True)
class Outcome:
    """What is expected of a difference with a part of the judgments, and what it is with all."""

    why_unknown: str
    difference: float
    expected: float
    deviation: float
    truth: float


def outcome(
    name: str,
    full: Judgments,
    part: Judgments,
    baseline: Rankings,
    system: Rankings,
    *,
    chosen: int = 0,
) -> Outcome:
    """What is expected with a part of the judgments, after some documents more are chosen."""
    measure, conventions = parse_measure(name), conventions_named("podium")
    queries = np.array(full.query_ids.to_pylist())[full.query_of_row].tolist()
    pairs = zip(queries, full.document_ids.to_pylist(), strict=True)
    known = dict(zip(pairs, full.labels.tolist(), strict=True))
    ids = part.query_ids.to_pylist()
    trial = LabelTrial.of(measure, conventions, part, baseline, system)
    likely = trial.likely_labels()
    labels = np.array(
        [
            known.get((ids[query], document), 0.0)
            for query, document in zip(trial.query.tolist(), trial.document_ids, strict=True)
        ]
    )
    if chosen:
        best = np.argsort(-trial.swings(likely), kind="stable")[:chosen]
        more = Judgments.from_columns(
            [*np.array(ids)[part.query_of_row], *np.array(ids)[trial.query[best]]],
            [*part.document_ids.to_pylist(), *np.array(trial.document_ids)[best]],
            [*part.labels, *labels[best]],
        )
        return outcome(name, full, more, baseline, system)
    return Outcome(
        likely.why_unknown,
        float(np.nanmean(trial.as_judged())),
        *trial.expectation(likely),
        float(np.nanmean(trial.of_draws(labels[None]))),
    )


def calibration(quick: bool) -> list[GateRow]:
    """``plan --next`` for the pairs of the twelve runs with a third judged."""
    full, runs = dl21()
    pairs = list(combinations(runs.values(), 2))
    held, known = [], []
    turns: dict[str, list[bool]] = {"0": [], "others": []}
    for name, count in {"nDCG@10": 1}.items() if quick else _THIRDS.items():
        for part in thirds(full, count):
            for baseline, system in pairs[:: 11 if quick else 1]:
                plan = outcome(name, full, part, baseline, system)
                known.append(not plan.why_unknown)
                if plan.why_unknown:
                    continue
                held.append(abs(plan.truth - plan.expected) <= 1.96 * plan.deviation)
                for bound in (0.0, *_BOUNDS):
                    if stays(plan.difference, plan.expected, plan.deviation, bound):
                        turned = (plan.difference > bound) != (plan.truth > bound)
                        turns["others" if bound else "0"].append(turned)
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
    for bounds, cases in turns.items():
        what = f'"unlikely to turn", bound {bounds}'
        rows.append(GateRow(f"{what}: turned", 100 * float(np.mean(cases)), 5.0, False, "%"))
        if not quick:
            rows.append(GateRow(f"{what}: cases", len(cases), 30.0, True, "cases"))
    return rows


def pools(quick: bool) -> list[GateRow]:
    """Where judged documents are not a sample, nothing may be expected."""
    full, runs = dl21()
    random = np.random.default_rng(5)
    third = next(thirds(full, 1))
    known: dict[str, list[bool]] = {}
    for baseline, system in list(combinations(runs.values(), 2))[:: 22 if quick else 2]:
        others = [run for run in runs.values() if run is not baseline and run is not system]
        one, two = random.permutation(len(others))[:2].tolist()
        for way, part, chosen in (
            ("pool of two other runs", pooled(full, [others[one], others[two]], 10), 0),
            ("pool of the baseline and another run", pooled(full, [baseline, others[one]], 10), 0),
            ("pool of depth 3 of both", pooled(full, [baseline, system], 3), 0),
            ("first of both, 100 chosen", pooled(full, [baseline, system], 1), 100),
            ("a third judged, 100 chosen", third, 100),
        ):
            plan = outcome("nDCG@10", full, part, baseline, system, chosen=chosen)
            known.setdefault(way, []).append(not plan.why_unknown)
    return [
        GateRow(
            f"{way}: plans with an expectation",
            100 * float(np.mean(each)),
            10.0,
            False,
            "%",
        )
        for way, each in known.items()
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
