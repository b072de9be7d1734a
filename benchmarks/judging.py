"""How many judgments the ordered top k takes, and how good it is when judges err.

    python -m benchmarks.judging [--quick]

A perfect judge without a prior and with priors of unknown quality; judges who err, one kind of
them as real people do; agreement of real people; and the replay of a long session. At full size it
draws the plots of ``docs/explanation/judging.md`` too.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks._judging_agreement import report_agreement
from benchmarks._judging_noise import draw, lead
from benchmarks._report import Report, wants_quick
from podium.judging import (
    HABITS,
    Outcome,
    Session,
    SimulatedAssessor,
    judge_session,
)
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.selection import run_selection
from studies.heap_readings import papers_heap
from studies.judging_ways import (
    BUDGETS,
    NOISES,
    OTHERS,
    PODIUM,
    SMALL,
    mean_and_error,
    play_ways,
)

_SIZES = {(50, 10): 92, (100, 10): 152, (200, 20): 330, (1000, 10): 1082}
_PRIORS = (0, 0.02, 0.05, 0.1, 0.2, 0.5, 5)
_PLOTS = Path(__file__).parents[1] / "docs/explanation"


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report("judging", quick, packages=["numpy", "scipy", "numba"])
    _without_prior(report, quick)
    report.note("the heap of Niu et al. 2012, 10 of 50, whose people took 142.76 judgments:")
    for line in papers_heap(100 if quick else 1000):
        report.note(f"  {line}")
    _with_priors(report, 150 if quick else 1000)
    _replay(report)
    report_agreement(report, 20 if quick else 200)
    _erring_judges(report, quick)
    report.finish()


def _counts(
    algorithm: str, items: int, k: int, runs: int, noise: float | None, *, infer: bool = True
) -> list[int]:
    """Judgments with a perfect judge; the prior is the true rank plus noise times n."""
    random = np.random.default_rng(0)
    counts = []
    for _ in range(runs):
        relevance = random.permutation(items).astype(float)
        if noise is not None:
            relevance = relevance[
                np.argsort(-relevance - noise * items * random.standard_normal(items))
            ]
        values = relevance.tolist()

        def judge(left: int, right: int, values: list[float] = values) -> Outcome:
            return Outcome.LEFT if values[left] > values[right] else Outcome.RIGHT

        selected = run_selection(ALGORITHMS[algorithm], items, k, judge, infer=infer)
        if [values[item] for item in selected.top] != sorted(values, reverse=True)[:k]:
            raise SystemExit(f"{algorithm} found a wrong top {k} of {items}")
        counts.append(selected.judgments)
    return counts


def _without_prior(report: Report, quick: bool) -> None:
    for (items, k), most in _SIZES.items():
        runs = max(1000 // (items // 10), 20) if quick else 1000
        means = {name: np.mean(_counts(name, items, k, runs, None)) for name in ALGORITHMS}
        means["heap, nothing inferred"] = np.mean(
            _counts("heap", items, k, runs, None, infer=False)
        )
        figures = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
        report.note(f"no prior, {k} of {items}, {runs} orders: {figures}")
        report.check(
            f"judgments, {k} of {items}, no prior", float(means["adaptive"]), most, False, ""
        )


def _with_priors(report: Report, runs: int) -> None:
    for noise in _PRIORS:
        means = {name: float(np.mean(_counts(name, 50, 10, runs, noise))) for name in ALGORITHMS}
        figures = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
        report.note(f"prior with noise {noise:g} n, 10 of 50, {runs} orders: {figures}")
        adaptive = means.pop("adaptive")
        report.check(
            f"adaptive against the best other, prior noise {noise:g}",
            adaptive / min(means.values()),
            1.05,
            at_least=False,
        )
        if noise in (0, 0.05):
            most = 49 if noise == 0 else 61
            report.check(f"judgments, prior noise {noise:g}", adaptive, most, False, "")


def _replay(report: Report) -> None:
    """Two people of a crowd who err, so that verdicts contradict each other too, half way."""
    items = [f"d{number:04d}" for number in range(1000)]
    relevance = dict(zip(items, np.random.default_rng(0).standard_normal(1000), strict=True))
    session = Session(items, 200)
    crowd = [SimulatedAssessor(relevance, HABITS["crowd"], name=name) for name in ("one", "two")]
    judge_session(session, crowd, max_judgments=2000)
    log = session.log
    seconds = []
    for _ in range(25):
        start = perf_counter()
        Session(items, 200, log=log).open_pairs()
        seconds.append(perf_counter() - start)
    report.note(f"replay: {1e3 * float(np.median(seconds)):.1f} ms by median of {len(seconds)}")
    # The fastest run is the one that other programs disturbed least.
    what = f"replay, {len(items)} items, {len(log)} verdicts, fastest of {len(seconds)}"
    report.check(what, 1e3 * min(seconds), 20, False, "ms")


def _erring_judges(report: Report, quick: bool) -> None:
    budgets = tuple(budget for budget in BUDGETS if budget <= 100) if quick else BUDGETS
    simulations = 9 if quick else 180
    for number, (noise, habits) in enumerate(NOISES.items(), 1):
        quality = play_ways(PODIUM | OTHERS, habits, simulations, budgets)
        report.note(
            f"κ-NDCG@10, {noise}, {simulations} simulations ({simulations // 3} beyond {SMALL} "
            f"judgments), after {' '.join(map(str, budgets))}"
        )
        for name, values in quality.items():
            means = " ".join(f"{mean:.3f}" for mean in mean_and_error(values)[0])
            report.note(f"  {name:24}{means}")
        ahead, errors = lead(quality)
        report.note("  lead of Podium's best   " + " ".join(f"{value:+.3f}" for value in ahead))
        report.note("  its standard error      " + " ".join(f"{value:.3f}" for value in errors))
        # With as few simulations as in a quick run, only large differences show.
        doubt, grace = (2 * errors, ", plus two standard errors") if quick else (0, "")
        report.check(
            f"lead in κ-NDCG@10 at every budget{grace}, {noise}",
            float((ahead + doubt).min()),
            0,
            unit="",
        )
        if not quick:
            draw(_PLOTS / f"judging-noise-{number}.svg", f"{noise}, top 10 of 50", quality)


if __name__ == "__main__":
    main()
