"""Models of the literature beside published figures and peers, and rank aggregation.

    python -m benchmarks.models [--quick]

At full size this is the leaderboard (an hour or two, continued where it was stopped, results in
build/leaderboard) and every check that can be made of it; `python -m studies leaderboard` writes
its page. The quick form trains the four models that LETOR 2.0 published, on all folds of OHSUMED.
Without the data sets, which the project does not hold, that part is left out.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks._aggregation import aggregation
from benchmarks._report import Report, wants_quick
from studies.leaderboard import LeaderboardPlan, run
from studies.standings import Standing, beside_published, choices, collect

_DATA = Path(__file__).parents[2] / "shared" / "data"
_RESULTS = Path(__file__).parents[1] / "build" / "leaderboard"
_LETOR_2 = ("RankSVM", "RankBoost", "ListNet", "AdaRank")


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    packages = ["numpy", "numba", "lightgbm", "xgboost-cpu", "catboost", "scikit-learn", "scipy"]
    report = Report("models", quick, packages=packages)
    if not (_DATA / "letor" / "OHSUMED-2").is_dir():
        report.note(f"{_DATA} has no data sets: the leaderboard is left out")
    elif quick:
        with tempfile.TemporaryDirectory() as folder:
            plan = LeaderboardPlan(
                _DATA, Path(folder), ("OHSUMED-2",), _LETOR_2, ground_truths=("graded",)
            )
            _published(report, collect(run(plan), plan.results))
    else:
        start = time.perf_counter()
        plan = LeaderboardPlan(_DATA, _RESULTS)
        standings = collect(run(plan), plan.results)
        report.note(f"leaderboard: {(time.perf_counter() - start) / 60:.1f} minutes in this run")
        seconds = sum(row.seconds for each in standings for row in each.rows.values())
        report.check("leaderboard, hours of two cores", seconds / 7200, 3, at_least=False, unit="h")
        _published(report, standings)
        _beside_peers(report, standings)
    aggregation(report, quick)
    report.finish()


def _published(report: Report, standings: list[Standing]) -> None:
    for published, measure, figure, mean, low, high in beside_published(standings):
        name = f"{published.collection}, {published.entry}, {measure.removeprefix('letor:')}"
        if published.entry in _LETOR_2 and measure == "letor:nDCG@10":
            what = f"{name}: {mean:.4f}, from the published {figure:.4f}"
            report.check(what, abs(mean - figure), 0.015, at_least=False, unit="")
        elif published.entry in _LETOR_2:
            outside = max(low - figure, figure - high, 0.0)
            what = f"{name}: {mean:.4f}, published {figure:.4f}, outside of 95 %"
            report.check(what, outside, 0.0, at_least=False, unit="")
        else:
            report.note(f"{name}: {mean:.4f}, published {figure:.4f} ({published.source})")


def _beside_peers(report: Report, standings: list[Standing]) -> None:
    """On how many data sets Podium's choice is ahead by the top k, and not behind on grades."""
    wins: dict[str, list[bool]] = {}
    for choice in choices(standings):
        collection, truth = choice.standing.collection, choice.standing.truth
        report.note(
            f"{collection}, {truth}, {choice.measure}: "
            f"{choice.ours.entry} {choice.ours.mean(choice.measure):.4f}, "
            f"{choice.theirs.entry} {choice.theirs.mean(choice.measure):.4f}, "
            f"{choice.difference:+.4f}, p {choice.p:.2g}"
        )
        if truth == "top-k":
            wins.setdefault(collection, []).append(choice.difference > 0)
        elif choice.measure == choice.standing.measure:
            wins.setdefault(collection, []).append(choice.difference > 0 or choice.p >= 0.05)
    held = sum(len(won) == 3 and all(won) for won in wins.values())
    report.check(
        "data sets with Podium's choice ahead of every peer by the top k, and on grades not "
        "significantly behind",
        held,
        2,
        unit="",
    )


if __name__ == "__main__":
    main()
