"""Requirements, plans and slices: how often they are wrong, and how much work they save."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium.data import Judgments, Rankings, read_qrels, read_run
from podium.measures import evaluate, parse_measure
from podium.measures.comparison.next_judgments import judging_plan
from podium.measures.comparison.unjudged import unjudged_documents
from podium.measures.presets import conventions_named

TREC = Path(__file__).parents[2] / "shared" / "data" / "trec"
_MEASURE = "nDCG@10"
_LEVEL = 0.05


@dataclass(frozen=True)
class GateRow:
    """A figure and its target, in the order of ``Report.check``'s arguments."""

    what: str
    measured: float
    target: float
    at_least: bool
    unit: str


def dl21() -> tuple[Judgments, dict[str, Rankings]]:
    """The judgments and the twelve runs of the Deep Learning track of 2021, their first 20."""
    runs = sorted((TREC / "dl21-runs").glob("*.run.gz"))
    judgments = read_qrels(TREC / "qrels.dl21-passage.txt.gz")
    return judgments, {path.name.removesuffix(".run.gz"): _first(read_run(path)) for path in runs}


def _first(run: Rankings, count: int = 20) -> Rankings:
    query = np.repeat(np.arange(len(run)), run.sizes)
    order = np.lexsort((-run.scores, query))
    rows = order[np.arange(len(order)) - np.repeat(run.offsets[:-1], run.sizes) < count]
    ids, documents = np.array(run.query_ids.to_pylist()), np.array(run.document_ids.to_pylist())
    return Rankings.from_columns(ids[query[rows]], documents[rows], run.scores[rows], name=run.name)


def judgments_until_decided(
    judgments: Judgments, baseline: Rankings, system: Rankings, *, by_plan: bool, seed: int
) -> tuple[int, bool]:
    """Hide the judgments of two runs, and uncover them until the sign is decided.

    At first the documents that the baseline has at rank 1 are judged. Then ten at a time are,
    chosen by ``next_judgments`` or at random among those that one of the runs has in its top 10,
    until the chance that the sign turns is at most 5 %.

    Returns:
        How many judgments that took, and whether the sign is that of all judgments.
    """
    measure, conventions = parse_measure(_MEASURE), conventions_named("podium")
    random = np.random.default_rng(seed)
    pool, first = _pool(judgments, baseline, system)
    known = set(first)
    values = [
        evaluate(measure, _labelled(pool, set(pool)), run)[measure] for run in (baseline, system)
    ]
    truth = float(np.nanmean(values[1]) - np.nanmean(values[0]))
    while True:
        unjudged = unjudged_documents(
            measure, conventions, _labelled(pool, known), baseline, system
        )
        plan = judging_plan(measure, unjudged, count=10, bound=0.0)
        if plan.chance_to_turn <= _LEVEL:
            return len(known), bool(plan.expected * truth > 0)
        if by_plan:
            known |= {(each.query_id, each.document_id) for each in plan.documents}
        else:
            hidden = sorted(set(pool) - known)
            chosen = random.permutation(len(hidden))[:10]
            known |= {hidden[index] for index in chosen.tolist()}


def _pool(
    judgments: Judgments, baseline: Rankings, system: Rankings
) -> tuple[dict[tuple[str, str], float], list[tuple[str, str]]]:
    """The labels of the documents in the top 10 of either run, and those first in the baseline."""
    pool: dict[tuple[str, str], float] = {}
    first = []
    for run in (baseline, system):
        joined = run.join(judgments)
        documents = joined.document_ids.to_pylist()
        for index, query in enumerate(joined.query_ids.to_pylist()):
            rows = np.arange(joined.offsets[index], joined.offsets[index + 1])
            best = rows[np.argsort(-joined.scores[rows], kind="stable")][:10].tolist()
            pool |= {
                (query, documents[row]): float(np.nan_to_num(joined.labels[row])) for row in best
            }
            if run is baseline and best:
                first.append((query, documents[best[0]]))
    return pool, first


def _labelled(pool: dict[tuple[str, str], float], known: set[tuple[str, str]]) -> Judgments:
    rows = sorted(known)
    queries, documents = zip(*rows, strict=True)
    return Judgments.from_columns(queries, documents, [pool[row] for row in rows])
