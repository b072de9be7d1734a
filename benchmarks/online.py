"""Interleaving and A/B tests: false alarms with a look after every search, searches to a decision.

    python -m benchmarks.online [--quick]

Reads ../shared/data/clicks/interleaved where it is present.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks._online_faults import check_online_faults
from benchmarks._online_simulation import CROWDS, METRICS, simulate
from benchmarks._report import Report, run_measured, wants_quick
from podium.clicks import SimulatedUser
from podium.data import Judgments
from podium.data.sources import as_judgments, as_rankings
from podium.kernels import Doubles, Ints
from podium.online import compare_groups, compare_interleaved, interleave
from podium.online.comparison import query_outcomes
from podium.online.drafts import METHODS, Method
from podium.online.planning import online_preferences
from podium.online.sequence import widening
from podium.utility import DCGLearn

PUBLISHED = Path("../shared/data/clicks/interleaved/a-pref.csv.gz")
_DEPTH, _DOCUMENTS, _DRAFTS = 10, 20, 12
_GRADES = (0.5, 0.25, 0.15, 0.07, 0.03)
_WEIGHTS = ((1.0, 1.1), (1.0, 1.2), (1.2, 1.0), (1.0, 1.5), (1.0, 3.0))
"""Pairs of rankers with the same noise: how much labels weigh beside it."""


def alarm_rows(report: Report, quick: bool) -> None:
    """Check how often equal rankings are ever told apart, beside a t-test at every look."""
    runs, searches = (200, 3000) if quick else (10_000, 20_000)
    # With few runs a share of 5 % is at most this in 99 %.
    target = 0.05 + (2.33 * (0.05 * 0.95 / runs) ** 0.5 if quick else 0.0)
    report.note(f"{runs:,} runs of {searches:,} searches, a look after each")
    for metric, name in enumerate(METRICS):
        alarms, naive = [], []
        for users in CROWDS.values():
            counts = simulate(1, runs, searches, users, metric, 0.0)
            alarms.append(counts[0] / runs)
            naive.append(counts[1] / runs)
        listed = ", ".join(f"{n} {a:.1%}" for n, a in zip(CROWDS, alarms, strict=True))
        report.note(f"{name}: {listed}; t-test {min(naive):.0%} to {max(naive):.0%}")
        report.check(f"false alarms, {name}", 100 * max(alarms), 100 * target, False, "%")
    for metric, effect in ((0, 0.2), (1, 0.1), (2, 0.05)):
        missed = [
            simulate(2, runs, searches, users, metric, effect)[0] / runs
            for users in CROWDS.values()
            if not users.taste  # with tastes the truth of a preference is not the effect
        ]
        report.check(
            f"intervals that ever miss {effect:g}, {METRICS[metric]}", 100 * max(missed),
            100 * target, False, "%",
        )  # fmt: skip


def _orders(labels: Doubles, noise: Doubles, weight: float) -> Ints:
    return np.argsort(-(weight * labels + 1.5 * noise), axis=1)[:, :_DEPTH]


def _first(values: Doubles, variances: Doubles) -> float:
    """Return the number of values after which their sum is beyond its interval; NaN if never."""
    number = np.unique(np.geomspace(30, len(values), 4000).astype(int))  # at most .3 % apart
    reach = np.array([widening(n) for n in number])
    beyond = np.abs(np.cumsum(values)[number - 1]) > reach * np.sqrt(variances[number - 1])
    return float(number[beyond][0]) if beyond.any() else np.nan


def decision_rows(report: Report, quick: bool) -> None:
    """Compare how many searches each way takes on the same simulated users."""
    random = np.random.default_rng(0)
    queries, searches, crowds = (60, 50_000, 3) if quick else (300, 300_000, 21)
    user = SimulatedUser()
    labels = random.choice(np.arange(5.0), (queries, _DOCUMENTS), p=_GRADES)
    likes = user.attractiveness(labels, 4.0)
    seen = user.examination(_DEPTH)
    agrees: list[bool] = []
    ratios: dict[str, list[float]] = {method: [] for method in METHODS}
    noise = random.normal(size=labels.shape)
    for weights in _WEIGHTS:
        old, new = (_orders(labels, noise, weight) for weight in weights)
        rows = np.arange(queries)[:, None]
        truth = float(((likes[rows, new] - likes[rows, old]) * seen).sum(1).mean())
        drafts = {
            method: [
                [interleave(old[q].tolist(), new[q].tolist(), _DEPTH, method=method, random_state=s)
                 for s in range(_DRAFTS)] for q in range(queries)
            ] for method in METHODS
        }  # fmt: skip
        needed: dict[str, list[float]] = {way: [] for way in ("A/B", *METHODS)}
        for _ in range(crowds):
            query = random.integers(0, queries, searches)
            looked = random.random((searches, _DEPTH)) < seen
            arm = random.random(searches) < 0.5
            shown = np.where(arm[:, None], new[query], old[query])
            clicks = (looked & (random.random(shown.shape) < likes[query[:, None], shown])).sum(1)
            centered = (clicks - clicks.mean()) * np.where(arm, 2.0, -2.0)
            needed["A/B"].append(_first(centered, np.cumsum(centered**2)))
            draw = random.integers(0, _DRAFTS, searches)
            for method in METHODS:
                documents, credit = (
                    np.array([[getattr(d, name) for d in each] for each in drafts[method]])[
                        query, draw
                    ]
                    for name in ("documents", "credits")
                )
                clicked = looked & (
                    random.random(documents.shape) < likes[query[:, None], documents]
                )
                total = (credit * clicked).sum(1)
                says = (
                    np.ones(searches, bool)
                    if method == "balanced"
                    else (clicked & (credit != 0)).any(1)
                )
                values = total[says] if method == "balanced" else np.sign(total[says])
                needed[method].append(_first(values, np.cumsum(values**2)) / says.mean())
                agrees.append(bool(np.sign(values.mean()) == np.sign(truth)))
        # A test that does not end takes more searches than there are.
        median = {way: float(np.median(np.nan_to_num(n, nan=np.inf))) for way, n in needed.items()}
        for method in METHODS:
            ratios[method].append(min(median["A/B"], searches) / median[method])
        report.note(
            f"weight {weights[1]:g} against {weights[0]:g}, clicks {truth:+.3f}, searches: "
            + ", ".join(f"{way} {number:,.0f}" for way, number in median.items())
        )
    for way, values in ratios.items():
        report.note(f"A/B searches per {way} search: {min(values):.1f} to {max(values):.1f}")
    report.note(f"searches are medians of {crowds} crowds")
    report.check(
        "verdicts with the sign of true clicks", 100 * float(np.mean(agrees)), 90, unit="%"
    )
    report.check("A/B searches per interleaved search, median of team draft",
                 float(np.median(ratios["team-draft"])), 2)  # fmt: skip


def bias_rows(report: Report, quick: bool) -> None:
    """Check that users who like all documents alike prefer none, beside the Workbench's rule."""
    draws = 3000 if quick else 100_000
    first = list(range(10))
    for name, second, size in (
        ("a list of three", [20, 21, 22], 10),
        ("the second page", [1, 2, 3, 4, 5, 6, 7, 8, 9, 0], 5),
    ):
        for method in ("team-draft", "probabilistic"):
            totals = np.array([_credit(first, second, size, method, seed) for seed in range(draws)])
            error = float(totals.std() / draws**0.5) or 1.0
            report.check(f"{method}, {name}: mean credit in standard errors",
                         abs(float(totals.mean())) / error, 4, False, "")  # fmt: skip
        both = {_credit(first, second, size, "balanced", seed) for seed in range(50)}  # one coin
        shown = f"{size} of {len({*first, *second})} documents"
        report.note(f"{name}, balanced credits of {shown}: mean {np.mean(list(both)):+.3f}")
        theirs = np.array([_picked_by(first, second, size, seed) for seed in range(draws)])
        report.note(f"{name}, every document is of who picked it: mean credit {theirs.mean():+.3f}")


def _credit(first: list[int], second: list[int], size: int, method: Method, seed: int) -> float:
    draft = interleave(first, second, size, method=method, random_state=seed)
    return sum(value / rank for rank, value in enumerate(draft.credits, 1))


def _picked_by(first: list[int], second: list[int], size: int, seed: int) -> float:
    """Return the credit where each document belongs to who picked it, also after a list's end."""
    random = np.random.default_rng(seed)
    left, taken, total = [list(first), list(second)], set[int](), 0.0
    while len(taken) < size and any(left):
        for side in (0, 1) if random.random() < 0.5 else (1, 0):
            while left[side] and left[side][0] in taken:
                left[side].pop(0)
            if left[side] and len(taken) < size:
                taken.add(left[side].pop(0))
                total += (2 * side - 1) / len(taken)
        left = [[each for each in rest if each not in taken] for rest in left]
    return total


def published_rows(report: Report) -> None:
    """Reproduce the published answer of a made-up log."""
    if not PUBLISHED.exists():
        report.note(f"{PUBLISHED} is not there: its example was not reproduced")
        return
    with gzip.open(PUBLISHED) as file:
        rows = pa.csv.read_csv(file)
    rows = rows.filter(pa.compute.equal(rows["event"], "click"))
    table = {"search_id": rows["search_id"], "team": rows["ranking_function"],
             "clicked": [True] * len(rows)}  # fmt: skip
    value = compare_interleaved(table, pair=("B", "A")).first.difference
    report.note(
        f"published: 906 searches, 74.3 %, 70.0 to 77.9 (bootstrap, one look); here "
        f"{value.searches}, {value.value:.1%}, {value.low:.1%} to {value.high:.1%} at any time"
    )
    report.check("published preference, difference", abs(round(100 * value.value, 1) - 74.3), 0,
                 False, "points")  # fmt: skip


def past_rows(report: Report) -> None:
    """Check what CUPED saves: the squared correlation with what clients did before."""
    random = np.random.default_rng(0)
    past = random.gamma(2.0, 1.0, 20_000)
    outcome = past + random.normal(0, 1.0, len(past))
    group = random.choice(["a", "b"], len(past))
    table = {"group": group, "revenue": outcome, "before": past, "client": np.arange(len(past))}
    gain = compare_groups(table, assignment="group", past="before", metrics=["revenue"]).first.gain
    expected = float(np.corrcoef(past, outcome)[0, 1]) ** 2
    report.note(f"past saves {gain:.1%} of the variance; squared correlation {expected:.1%}")
    report.check("CUPED: away from the squared correlation", 100 * abs(gain - expected), 1, False,
                 "points")  # fmt: skip


def utility_rows(report: Report, quick: bool) -> None:
    """Print the gains that are learned from rare clicks, beside those that users click by."""
    random = np.random.default_rng(0)
    queries, searches = 300, 30 if quick else 300
    gains = np.array([0.0, 0.1, 0.3, 1.0])
    grades, runs = {}, (dict[str, dict[str, float]](), dict[str, dict[str, float]]())
    log: dict[str, list[Any]] = {name: [] for name in ("search_id", "query", "credit", "clicked")}
    for number in range(queries):
        query = f"q{number}"
        labels = random.choice(4, 10, p=(0.4, 0.3, 0.2, 0.1))
        grades[query] = {f"d{at}": int(label) for at, label in enumerate(labels)}
        orders = [random.permutation(10).tolist() for _ in runs]
        for run, order in zip(runs, orders, strict=True):
            run[query] = {f"d{at}": 10.0 - rank for rank, at in enumerate(order)}
        for search in range(searches):
            draft = interleave(orders[0], orders[1], random_state=search)
            chances = 0.3 * gains[labels[draft.documents]] / np.arange(1, 11)
            log["search_id"] += [f"{query} {search}"] * 10
            log["query"] += [query] * 10
            log["credit"] += draft.credits
            log["clicked"] += (random.random(10) < chances).tolist()
    outcomes, _ = query_outcomes(log)
    judgments = as_judgments(grades)
    assert isinstance(judgments, Judgments)
    pairs, _, _ = online_preferences(outcomes, judgments, *map(as_rankings, runs))
    learned = DCGLearn(C=1.0).fit(pairs).learned_.gains
    listed = ", ".join(f"{each:.2f}" for each in learned[1:3] / learned[3])
    report.note(f"users click by gains .1, .3 and 1: learned from their searches {listed} and 1")


def size_rows(report: Report, quick: bool) -> None:
    """Check the memory of a large table."""
    searches = 1_000_000 if quick else 100_000_000
    with tempfile.TemporaryDirectory() as folder:
        code = f"""
import os, time, duckdb
os.environ["PODIUM_CLICKS_MEMORY"] = "2GB"
duckdb.connect(config=dict(memory_limit="2GB", temp_directory={folder!r})).execute(
    "COPY (SELECT i AS search_id, hash(i) % {searches // 10} AS client, "
    "epoch_ms(1700000000000 + i) AS time, if(hash(i, 1) % 100 < 51, 'new', 'old') "
    "AS team, hash(i, 2) % 3 = 0 AS clicked FROM range({searches}) r(i)) TO '{folder}/t.parquet'")
from podium.online import compare_interleaved
start = time.perf_counter()
report = compare_interleaved('{folder}/t.parquet', pair=("old", "new"))
print(time.perf_counter() - start, report.counts["read"])
"""
        printed, gib = run_measured(code)
    seconds, read = printed.split()[-2:]
    report.note(f"{int(read):,} searches of {searches // 10:,} clients in {float(seconds):.0f} s")
    report.check("memory of a report", gib, 4, False, "GiB")


def main() -> None:
    """Run all of it."""
    quick = wants_quick(__doc__)
    report = Report("online", quick, packages=["duckdb"])
    os.environ.setdefault("PODIUM_CLICKS_MEMORY", "2GB")
    alarm_rows(report, quick)
    decision_rows(report, quick)
    bias_rows(report, quick)
    published_rows(report)
    past_rows(report)
    utility_rows(report, quick)
    size_rows(report, quick)
    if quick:
        report.note("faults over time need an engine: without --quick")
    else:
        check_online_faults(report, 15)
    report.finish()


if __name__ == "__main__":
    main()
