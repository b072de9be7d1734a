"""Learning DCG from preferences: the claims of Zhou et al. (2012), real verdicts, and speed.

    python -m benchmarks.utility [--quick]

At full size it also draws the growth with the number of pairs into docs/images; the paper's figures
are drawn by ``python -m studies metric``. Figures 11 and 23 take the grades of MQ2007 and of the
MSLR sample, and real verdicts those of image search, where ../shared/data has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks._report import Report, median_seconds, wants_quick
from benchmarks._utility_draw import draw_growth
from benchmarks._utility_retrain import GAINS, retrain, synthetic, verdicts
from benchmarks._utility_speed import cvxpy_slacks, cvxpy_smooth, million, noisy, ours, seconds_of
from podium.utility import DCGLearn, RankingPreferences, utility_report
from podium.utility.learned_utility import accuracy
from studies.image_search_pages import read_pages
from studies.metric_curves import (
    LIST,
    PAPER,
    AccuracyCurve,
    Setting,
    accuracy_over_pairs,
    active,
    best_against,
    consistency,
    noisy_pairs,
    one_curve,
    paper_settings,
)
from studies.metric_grades import grade_settings

_DATA = Path(__file__).parents[2] / "shared" / "data"
_PAGES = "preferences/image-search"
_PACKAGES = ["numpy", "scipy", "numba", "cvxpy", "clarabel", "lightgbm"]


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report("utility", quick, packages=_PACKAGES)
    _speed(report, quick)
    _claims(report, quick)
    _optimal_rankings(report, quick)
    _real_grades(report, quick)
    _real_verdicts(report)
    _retraining(report, quick)
    report.finish()


def _speed(report: Report, quick: bool) -> None:
    for count in (800, 20_000):
        pairs = noisy(count)
        ours(pairs)
        objective = ours(pairs).objective
        objectives: dict[str, float] = {}
        peers = {"slacks": cvxpy_slacks, "smooth": cvxpy_smooth}
        runs = {name: partial(_keep, objectives, name, peer, pairs) for name, peer in peers.items()}
        seconds = median_seconds(runs, 1 if quick else 3)
        mine = seconds_of(pairs, 9)
        worst = max(abs(value - objective) / objective for value in objectives.values())
        report.note(
            f"{count:,} pairs: podium {1e3 * mine:.1f} ms; cvxpy with Clarabel "
            f"{seconds['slacks']:.2f} s with slacks, {seconds['smooth']:.2f} s without"
        )
        report.check(
            f"{count:,} pairs: objective against cvxpy with Clarabel, apart by",
            1e6 * worst,
            1,
            at_least=False,
            unit="ppm",
        )
        if count == 20_000:
            report.check(
                "20,000 pairs: times as fast as the faster of cvxpy's two forms",
                min(seconds.values()) / mine,
                30,
            )
    taken, memory = million(1_000_000)
    report.check("1,000,000 pairs, one process", taken, 3, at_least=False, unit="s")
    report.check("1,000,000 pairs, most memory", memory, 0.5, at_least=False, unit="GiB")
    sizes = [30_000, 100_000, 300_000, 1_000_000]
    pairs = noisy(sizes[-1])
    growth = [seconds_of(pairs.take(np.arange(size)), 3) for size in sizes[:-1]]
    growth.append(seconds_of(pairs, 1 if quick else 3))
    power = float(np.polyfit(np.log(sizes), np.log(growth), 1)[0])
    report.note(
        "growth: " + ", ".join(f"{n:,} in {s:.3f} s" for n, s in zip(sizes, growth, strict=True))
    )
    report.check("time grows with pairs to the power of", power, 1.15, at_least=False, unit="")
    if not quick:
        draw_growth(sizes, growth)


def _keep(
    objectives: dict[str, float],
    name: str,
    peer: Callable[[RankingPreferences], float],
    pairs: RankingPreferences,
) -> None:
    objectives[name] = peer(pairs)


def _claims(report: Report, quick: bool) -> None:
    """What figures 2, 3, 7, 21 and 22 claim, and how often gains agree (figure 1)."""
    sizes = (20, 100, 800) if quick else (20, 50, 100, 200, 300, 400, 500, 600, 700, 800)
    labels = (50, 100, 200) if quick else (20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 400)
    repeats, tests = (3, 4000) if quick else (10, 20_000)
    models = {"DCGLearn": PAPER, "DCGLearn, rank-one": DCGLearn()}
    _wrong_parameters(report, quick)
    first = consistency(20_000 if quick else 200_000, 20)
    report.note(f"figure 1: the closest pairs are judged alike {first[0].means[0]:.1%} of the time")
    for setting in paper_settings():
        curves, _similar = accuracy_over_pairs(setting, sizes, repeats, models, tests)
        _hold_claims(report, setting, curves)
        report.check(
            f"{setting.name}: right with 200 of 800 pairs flipped",
            100 * float(noisy_pairs(setting, (200,), 800, repeats, tests).means[-1]),
            85,
            unit="%",
        )
        _hold_active(report, setting.name, active(setting, labels, repeats, 2000, tests))


def _hold_claims(report: Report, setting: Setting, curves: Sequence[AccuracyCurve]) -> None:
    learned, single = curves[0], curves[1]
    for curve in (learned, single):
        report.check(
            f"{setting.name}: {curve.name}, right at 800 pairs",
            100 * float(curve.means[-1]),
            97.5,
            unit="%",
        )


def _wrong_parameters(report: Report, quick: bool) -> None:
    """How often the two usual gains agree: the accuracy of either where the other is the truth."""
    one, other = paper_settings()
    random = np.random.default_rng(0)
    right = []
    for _ in range(1 if quick else 10):
        pairs = one.test(50_000 if quick else 1_000_000, random)
        right.append(100 * accuracy(pairs, pairs.leads(other.table)))
    share, count = float(np.mean(right)), len(right) * len(pairs)
    error = 2 * float(np.sqrt(share * (100 - share) / count))
    report.note(
        f"wrong parameters are right on {share:.2f} ± {error:.2f} % of {count:,} pairs; the paper "
        "says less than 90 %"
    )
    report.check(
        "wrong parameters, right on (to a whole per cent)",
        round(share),
        90,
        at_least=False,
        unit="%",
    )


def _hold_active(report: Report, name: str, curves: Sequence[AccuracyCurve]) -> None:
    """Ahead from 100 labels on: the smallest lead over random at any of the steps."""
    plain, *others = curves
    steps = np.array(plain.steps) >= 100
    for curve in others:
        leads = 100 * (curve.means - plain.means)[steps]
        report.check(
            f"{name}: {curve.name} ahead of random from 100 labels on, least lead",
            float(leads.min()),
            0.1,
            unit="points",
        )
    report.note(
        f"{name}, labels {', '.join(f'{step:g}' for step in plain.steps)}: "
        + "; ".join(f"{c.name} {' '.join(f'{m:.3f}' for m in c.means)}" for c in curves)
    )


def _optimal_rankings(report: Report, quick: bool) -> None:
    """Figure 9: pairs with the best order teach little (proposition 1)."""
    sizes = (20, 800) if quick else (20, 100, 200, 300, 400, 500, 600, 700, 800)
    repeats, tests = (2, 4000) if quick else (10, 20_000)
    # Proposition 1 takes decreasing discounts for granted, and so does the model that is held to
    # it; the paper's own, whose discounts are free, is shown beside it.
    knows = DCGLearn(form="by-position", decreasing=True)
    nine, unknowing = [], []
    for setting in paper_settings():
        same = replace(setting, make=best_against(LIST))
        nine.append(one_curve(same, "best order", knows, sizes, repeats, tests))
        unknowing.append(one_curve(same, "discounts free", PAPER, sizes, repeats, tests))
    for each in (*nine, *unknowing):
        report.note(f"figure 9, {each.name}: " + " ".join(f"{mean:.3f}" for mean in each.means))
    for curve in nine:
        report.check(
            f"figure 9, {curve.name}: 800 pairs add to 20",
            100 * float(curve.means[-1] - curve.means[0]),
            2,
            at_least=False,
            unit="points",
        )


def _real_grades(report: Report, quick: bool) -> None:
    """Figures 11 and 23."""
    settings = grade_settings(_DATA)
    if len(settings) < 2:
        report.note("figures 11 and 23: MQ2007 or the MSLR sample is not in ../shared/data")
    sizes = (100, 1000) if quick else (20, 50, 100, 200, 400, 600, 800, 1000)
    labels = (50, 100, 200) if quick else (20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 400)
    repeats, tests = (2, 4000) if quick else (5, 10_000)
    for setting in settings:
        curves, _ = accuracy_over_pairs(setting, sizes, repeats, {"DCGLearn": PAPER}, tests)
        report.note(
            f"{setting.name}: DCGLearn {curves[0].means[-1]:.3f} at {sizes[-1]} pairs, gains l "
            f"{curves[1].means[-1]:.3f}"
        )
        report.check(
            f"{setting.name}: DCGLearn ahead of gains l at 1000 pairs",
            100 * float((curves[0].means - curves[1].means)[-1]),
            0,
            unit="points",
        )
        asked = active(setting, labels, repeats, 2000, tests)
        _hold_active(report, setting.name, asked)


def _real_verdicts(report: Report) -> None:
    """Whole result pages of image search, by five-fold cross-validation."""
    if not (_DATA / _PAGES).exists():
        report.note("real verdicts: image-search is not in ../shared/data")
        return
    pages = read_pages(_DATA / _PAGES, depth=10, grades=5)
    learned = utility_report(pages, resamples=200, test_position=False)
    report.note(
        f"image search: {len(pages)} queries, {int(pages.strict.sum())} strict preferences, "
        f"C = {learned.learned.C:g}, ten positions, five grades"
    )
    for each in learned.accuracies:
        report.note(
            f"  {each.name}: right on {each.share:.1%} (95 % interval {each.low:.1%} to "
            f"{each.high:.1%})"
        )
    for note in learned.notes():
        report.note(f"  {note}")


def _retraining(report: Report, quick: bool) -> None:
    """Verdicts of people with a utility of their own, and a ranker trained for what they want."""
    result = retrain(synthetic(300, 1), synthetic(500 if quick else 2000, 2), 1500, 100)
    report.note(
        f"retraining: mean true utility {result.usual:.3f} trained for nDCG@5, {result.ours:.3f} "
        f"for {result.learned.measure}, {result.best:.3f} for the truth itself; difference "
        f"{result.difference.mean:+.3f} ({result.difference.low:+.3f} to "
        f"{result.difference.high:+.3f}), randomization test "
        f"p = {result.difference.p_values['randomization']:.2g}"
    )
    many = DCGLearn(C=1.0).fit(verdicts(synthetic(300, 1), 40_000, seed=3)).learned_
    report.note(
        f"gains {GAINS} of people who err, learned from 40,000 verdicts: "
        f"{tuple(many.gains.round(3).tolist())}"
    )
    report.check(
        "retrained ranker: gain in true utility, lower end of its 95 % interval",
        result.difference.low,
        0.01,
        unit="",
    )
    report.check(
        "retrained ranker: p of the paired randomization test",
        result.difference.p_values["randomization"],
        0.01,
        at_least=False,
        unit="",
    )


if __name__ == "__main__":
    main()
