"""Requirements, plans and slices: how often they are wrong, and how much work they save."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks._null_queries import Doubles, Draw, ndcg, reciprocal_rank, success
from podium.data import Judgments, Rankings, read_qrels, read_run
from podium.measures import evaluate, require, slice_differences
from podium.measures.comparison.one_sided import mean_above
from podium.measures.comparison.power import difference_power, queries_needed
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slice_differences import search_slices
from podium.measures.comparison.unjudged import LabelTrial, trial_bounds
from podium.measures.evaluation import ByMeasure
from podium.measures.names import parse_measure
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


def judgments_until_certain(
    judgments: Judgments, baseline: Rankings, system: Rankings, *, by_plan: bool, seed: int
) -> int:
    """Hide the judgments of two runs, and count how many it takes until the sign cannot turn.

    At first the documents that either has at rank 1 are judged. Then 50 at a time are, chosen as
    ``next_judgments`` does or at random among those that one of the runs has in its top 10.
    """
    measure, conventions = parse_measure(_MEASURE), conventions_named("podium")
    random = np.random.default_rng(seed)
    queries = np.array(judgments.query_ids.to_pylist())[judgments.query_of_row].tolist()
    pairs = zip(queries, judgments.document_ids.to_pylist(), strict=True)
    labels = dict(zip(pairs, judgments.labels.tolist(), strict=True))
    known: set[tuple[str, str]] = set()
    for run in (_first(baseline, 1), _first(system, 1)):
        known |= set(zip(run.query_ids.to_pylist(), run.document_ids.to_pylist(), strict=True))
    known = {pair for pair in known if pair[0] in set(queries)}
    trials = []
    while True:
        rows = sorted(known)
        part = Judgments.from_columns(
            [query for query, _ in rows],
            [document for _, document in rows],
            [labels.get(row, 0.0) for row in rows],
        )
        trial = LabelTrial.of(measure, conventions, part, baseline, system)
        trials.append((len(known), trial))
        if not len(trial.query):
            break
        swings = trial.swings(trial.likely_labels()) if by_plan else random.random(len(trial.query))
        best, ids = np.argsort(-swings, kind="stable")[:50].tolist(), part.query_ids.to_pylist()
        known |= {(ids[trial.query[row]], trial.document_ids[row]) for row in best}
    # Bounds take long, and only narrow.
    index = bisect_left(trials, True, key=lambda each: not _may_turn(each[1]))
    return trials[index][0]


def _may_turn(trial: LabelTrial) -> bool:
    return trial_bounds(trial, trial.as_judged(), name="").could_turn


def judgments_against_random(quick: bool) -> float:
    """The judgments of chosen documents for pairs of the twelve runs, over those of random ones."""
    judgments, runs = dl21()
    totals = {True: 0, False: 0}
    for seed, pair in enumerate(list(combinations(runs.values(), 2))[:: 33 if quick else 6]):
        for by_plan in totals:
            totals[by_plan] += judgments_until_certain(judgments, *pair, by_plan=by_plan, seed=seed)
    return totals[True] / totals[False]


def _comparison(values: Doubles) -> Comparison:
    """A comparison of values as they are, without documents."""
    measure = parse_measure(_MEASURE)
    return Comparison(
        systems=("old", "new"),
        measures=(measure,),
        query_ids=tuple(f"q{query}" for query in range(len(values))),
        left_out=0,
        values=ByMeasure({measure: values}),
        empty_values=ByMeasure({measure: np.zeros(len(values))}),
        conventions="podium",
        test="t",
    )


def slice_discoveries(repeats: int, *, planted: int, seed: int) -> tuple[list[float], float]:
    """Slices by three columns, in some of which the new system loses.

    Returns:
        The share of false ones among the slices that are called different, of each repeat; and the
        share of planted slices that are among them.
    """
    random = np.random.default_rng(seed)
    shares, hits = [], 0
    for _ in range(repeats):
        kind = random.integers(0, 10, 400)
        values = ndcg(random, 400, 2)
        values[:, 1] -= np.where(kind < planted, 0.12, 0.0)
        properties = {
            "kind": {f"q{query}": f"k{each}" for query, each in enumerate(kind.tolist())},
        }
        rows = slice_differences(_comparison(values), properties)
        called = [row.name for row in rows if row.q_value < _LEVEL]
        true = [name for name in called if int(name.removeprefix("kind=k")) < planted]
        shares.append((len(called) - len(true)) / max(len(called), 1))
        hits += len(true)
    return shares, hits / max(repeats * planted, 1)


def searched_discoveries(repeats: int, *, seed: int) -> float:
    """How often a search in systems that do not differ calls any slice different."""
    random = np.random.default_rng(seed)
    false = 0
    for repeat in range(repeats):
        properties = {
            "words": dict(_numbered(random.integers(1, 20, 200).tolist())),
            "kind": dict(_numbered([f"k{each}" for each in random.integers(0, 4, 200)])),
        }
        rows = search_slices(_comparison(ndcg(random, 200, 2)), properties, random_state=repeat)
        false += any(row.q_value < _LEVEL for row in rows)
    return false / repeats


def _numbered(values: Sequence[object]) -> list[tuple[str, object]]:
    return [(f"q{query}", value) for query, value in enumerate(values)]


def false_alarms(repeats: int, draw: Draw, queries: int, *, margin: float, seed: int) -> float:
    """How often a system passes whose true loss is the margin itself."""
    random = np.random.default_rng([seed, queries])
    requirement = f"{_MEASURE} >= baseline - {margin}"
    passed = 0
    for _ in range(repeats):
        values = draw(random, queries, 2)
        values[:, 1] -= margin
        passed += require(_comparison(values), requirement).shown
    return passed / repeats


def dl21_values() -> Doubles:
    """The values of the twelve runs: a row per query, a column per run."""
    judgments, runs = dl21()
    columns = [evaluate(_MEASURE, judgments, run)[_MEASURE] for run in runs.values()]
    table = np.column_stack(columns)
    return np.asarray(table[~np.isnan(table).any(axis=1)])


def resampled_false_alarms(values: Doubles, repeats: int, queries: int, seed: int) -> list[float]:
    """For each pair of runs: how often a loss of exactly the margin passes.

    Topics are drawn with replacement, so the true difference is that of all topics, and a margin
    of just this loss is on the edge: whatever passes is a false alarm.
    """
    random = np.random.default_rng(seed)
    shares = []
    for one, other in combinations(range(values.shape[1]), 2):
        differences = values[:, other] - values[:, one]
        bound = float(differences.mean())
        least = -float(values[:, one].max())
        draws = differences[random.integers(0, len(differences), (repeats, queries))]
        p_values = [mean_above(row, bound, _LEVEL, least).p_value for row in draws]
        shares.append(float(np.mean(np.array(p_values) < _LEVEL)))
    return shares


def power_gaps(values: Doubles, repeats: int, seed: int) -> list[float]:
    """For each pair of runs: how far the power that was measured is from the one planned.

    Topics are drawn with replacement, as many as show the pair's difference with 80 % power by
    the plan, 20 at least and 2,000 at most, and tested by the paired t-test.
    """
    random = np.random.default_rng(seed)
    gaps = []
    for one, other in combinations(range(values.shape[1]), 2):
        differences = values[:, other] - values[:, one]
        differences *= np.sign(differences.mean())
        mean, deviation = float(differences.mean()), float(np.std(differences))
        needed = queries_needed(mean, deviation)
        queries = min(max(needed or 2000, 20), 2000)
        draws = differences[random.integers(0, len(differences), (repeats, queries))]
        test = stats.ttest_1samp(draws, 0.0, axis=1)
        measured = float(np.mean((test.pvalue < _LEVEL) & (test.statistic > 0)))
        gaps.append(measured - difference_power(mean, deviation, queries))
    return gaps


def gate_rows(quick: bool) -> list[GateRow]:
    """Every figure of requirements, plans and slices with its target."""
    rows = []
    repeats = 400 if quick else 20_000
    draws: dict[str, Draw] = {"nDCG": ndcg, "RR": reciprocal_rank, "Success": success}
    for name, draw in draws.items():
        for queries in (50, 200):
            share = false_alarms(repeats, draw, queries, margin=0.02, seed=1)
            rows.append(
                _alarm(
                    f"false alarms at the margin, like {name}, {queries} queries", share, repeats
                )
            )
    shares, power = slice_discoveries(100 if quick else 1_000, planted=2, seed=2)
    rows.append(
        GateRow(
            "false discoveries of slices, 2 of 10 planted",
            100 * float(np.mean(shares)),
            5.0,
            False,
            "%",
        )
    )
    rows.append(GateRow("planted slices that are found", 100 * power, 80.0, True, "%"))
    repeats = 100 if quick else 1_000
    share = searched_discoveries(repeats, seed=3)
    rows.append(_alarm("searches that find a slice in noise", share, repeats))
    if TREC.exists():
        rows += _dl21_rows(quick)
    return rows


def _dl21_rows(quick: bool) -> list[GateRow]:
    values = dl21_values()
    repeats = 500 if quick else 10_000
    alarms = resampled_false_alarms(values, repeats, 53, seed=4)
    gaps = np.abs(power_gaps(values, min(repeats, 4_000), seed=5))
    return [
        GateRow(
            "judgments until the sign cannot turn, against random ones",
            100 * judgments_against_random(quick),
            90.0,
            False,
            "%",
        ),
        _alarm(
            "false alarms at the margin, 66 pairs of DL21 runs, mean",
            float(np.mean(alarms)),
            66 * repeats,
        ),
        GateRow(
            "power against plan, 66 pairs, mean gap", 100 * float(gaps.mean()), 3.0, False, "points"
        ),
    ]


def _alarm(what: str, share: float, repeats: int) -> GateRow:
    """A share that is to be at most 5 %, and the error of so many repeats beyond."""
    bound = float(stats.binom.ppf(0.999, repeats, _LEVEL)) / repeats
    return GateRow(what, 100 * share, 100 * bound, False, "%")
