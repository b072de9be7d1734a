"""Whether every p-value and interval that Podium prints is what it says it is.

    python -m benchmarks.statistics [--quick]

Systems that do not differ are compared again and again. A p-value is calibrated if it is below a
level as often as the level says: for .05, .01 and .001, within the 99.9 % range of a binomial.
Tests of discrete data cannot have every size; they are held to the exact size that they can have,
or where that is beyond counting, to be no larger than the level. 95 % intervals must cover 93 to
97 %. What is not calibrated by its nature (a t-test on 20 skewed values) is printed without
a target.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, field
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from benchmarks._audits import audit_rows
from benchmarks._gate_calibration import GATES
from benchmarks._gates import GateRow
from benchmarks._null_queries import SYMMETRIC, Doubles, Draw, ndcg, normal, reciprocal_rank, skewed
from benchmarks._report import Report, cores, wants_quick
from benchmarks._unjudged import unjudged_rows
from podium.data import Dataset
from podium.judging.agreement import Agreement, Ratings
from podium.judging.agreement.coefficients import bootstrap_agreement, fleiss_kappa
from podium.judging.agreement.matrix import compare_agreement
from podium.judging.workload import Workload
from podium.measures.comparison import statistics as tested
from podium.measures.comparison.coherence import coherence
from podium.measures.comparison.statistics import (
    TestName,
    holm,
    mean_interval,
    paired_difference,
    tukey,
)
from podium.utility import DCGLearn, RankingPreferences
from podium.utility.bootstrap import position_test
from podium.utility.report import _ends

LEVELS = (0.05, 0.01, 0.001)
SIZES = (20, 50, 200, 1000)
_RANGE = 0.999
_WIDEST = 0.125
"""A share of .05 that may be anything between 0 and .17 says nothing: such a row has no target."""
_TESTS: tuple[TestName, ...] = ("t", "randomization", "wilcoxon", "sign")


@dataclass
class Row:
    """How often a p-value was below each level, or how often an interval covered.

    Attributes:
        what: The test or interval.
        data: What it was tried on.
        size: How many queries.
        shares: Measured, for each level; for an interval one share.
        low: What each may be at least.
        high: What each may be at most.
        target: Whether that is a target.
    """

    what: str
    data: str
    size: int
    shares: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    target: bool = True

    @property
    def telling(self) -> bool:
        """Whether there are enough repeats for the range to rule anything out."""
        is_share = self.high[0] <= 1.0
        return not is_share or self.high[0] - self.low[0] <= _WIDEST

    @property
    def right(self) -> list[bool]:
        """Which shares are in their range."""
        return [
            low <= share <= high
            for share, low, high in zip(self.shares, self.low, self.high, strict=True)
        ]


@dataclass
class Findings:
    """Rows of shares, and figures that have one bound each."""

    rows: list[Row] = field(default_factory=list)
    figures: list[GateRow] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Keep a row."""
        self.rows.append(row)

    def print(self) -> None:
        """Print every row."""
        table = Table("what", "data", "queries", "share", "range", "holds", title="calibration")
        for row in self.rows:
            table.add_row(
                row.what,
                row.data,
                f"{row.size:,}",
                "  ".join(f"{share:.4f}" for share in row.shares),
                "  ".join(f"{a:.4f}-{b:.4f}" for a, b in zip(row.low, row.high, strict=True)),
                _holds(row),
            )
        Console(width=150).print(table)

    def check(self, report: Report) -> None:
        """Hold every test's targets, on each kind of data, together."""
        groups: dict[tuple[str, str], list[bool]] = {}
        for row in self.rows:
            if row.target and row.telling:
                groups.setdefault((row.what, row.data), []).extend(row.right)
        for (what, data), right in groups.items():
            report.check(
                f"{what}, {data}: in range", sum(right), len(right), unit=f"of {len(right)}"
            )
        for figure in self.figures:
            report.check(*astuple(figure))


def _holds(row: Row) -> str:
    if not row.target:
        return "as it is"
    if not row.telling:
        return "too few"
    return "yes" if all(row.right) else "[bold red]NO[/]"


def binomial_range(chance: float, repeats: int) -> tuple[float, float]:
    """The shares that so many repeats of an event have, in 99.9 % of cases."""
    low, high = stats.binom.interval(_RANGE, repeats, chance)
    return float(low) / repeats, float(high) / repeats


def sizes_of(
    p_values: Doubles, expected: Sequence[float], *, exact: bool
) -> tuple[list[float], list[float], list[float]]:
    """The share of p-values below each level, and the range that it may be in.

    Args:
        p_values: The p-values of systems that do not differ.
        expected: The size that the test has at each level.
        exact: Whether it is known, or only its upper bound.
    """
    ranges = [binomial_range(each, len(p_values)) for each in expected]
    shares = [float(np.mean(p_values < level)) for level in LEVELS]
    return shares, [low if exact else 0.0 for low, _ in ranges], [high for _, high in ranges]


def sign_sizes(differences: Iterable[Doubles]) -> list[float]:
    """The mean exact size of the sign test, given how many queries differ."""
    changed = [int(np.count_nonzero(each)) for each in differences]
    return _mean([_sign_size(count) for count in changed])


@cache
def _sign_size(count: int) -> tuple[float, ...]:
    if count == 0:
        return (0.0,) * len(LEVELS)
    wins = np.arange(count + 1)
    p_values = np.minimum(2 * stats.binom.cdf(np.minimum(wins, count - wins), count, 0.5), 1.0)
    chances = stats.binom.pmf(wins, count, 0.5)
    return tuple(float(chances[p_values < level].sum()) for level in LEVELS)


@cache
def wilcoxon_size(count: int) -> tuple[float, ...]:
    """The exact size of the signed-rank test of so many differences without ties."""
    ways = np.ones(1)
    for rank in range(1, count + 1):
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] += ways / 2
        longer[rank:] += ways / 2
        ways = longer
    below = np.cumsum(ways)
    p_values = np.minimum(2 * np.minimum(below, below[::-1]), 1.0)
    return tuple(float(ways[p_values < level].sum()) for level in LEVELS)


def randomization_sizes(differences: Iterable[Doubles]) -> list[float]:
    """The mean exact size of the randomization test, given the sizes of the differences."""
    return _mean([_randomization_size(np.abs(each)) for each in differences])


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    return [float(np.mean(column)) for column in zip(*rows, strict=True)]


def _randomization_size(sizes: Doubles) -> list[float]:
    sums, ways = np.zeros(1), np.ones(1)
    for value in sizes[sizes > 1e-12]:
        # Differences of a few kinds have few sums: equal ones, but for rounding, are one.
        both = np.round(np.concatenate((sums + value, sums - value)), 9)
        sums, group = np.unique(both, return_inverse=True)
        ways = np.asarray(np.bincount(group, np.concatenate((ways, ways)) / 2), np.float64)
    _, group = np.unique(np.round(np.abs(sums), 8), return_inverse=True)
    tails = np.cumsum(np.bincount(group, ways)[::-1])[::-1]
    return [float(tails[tails < level].max(initial=0.0)) for level in LEVELS]


_KINDS: dict[str, Draw] = {**SYMMETRIC, "skewed": skewed}


def paired_tests(
    findings: Findings, repeats: dict[int, int], kinds: Iterable[str] = tuple(_KINDS)
) -> None:
    """The four tests of ``compare`` and the interval of a difference.

    Of the hundreds of shares here one is outside its 99.9 % range every few runs by chance
    alone. So a row that is outside is drawn once more, independently and with twice the repeats,
    and the second draw decides.
    """
    for name in kinds:
        for size, count in repeats.items():
            rows = _paired_rows(name, size, count, draws=1)
            if not all(all(row.right) for row in rows if row.target and row.telling):
                second = _paired_rows(name, size, 2 * count, draws=2)
                rows = [
                    one if all(one.right) or not one.target else other
                    for one, other in zip(rows, second, strict=True)
                ]
            for row in rows:
                findings.add(row)


def _paired_rows(name: str, size: int, count: int, *, draws: int) -> list[Row]:
    random = np.random.default_rng([size, len(name), *([] if draws == 1 else [draws])])
    pairs = [_KINDS[name](random, size, 2) for _ in range(count)]
    results = [
        paired_difference(pair[:, 1], pair[:, 0], random_state=number)
        for number, pair in enumerate(pairs)
    ]
    differences = [pair[:, 1] - pair[:, 0] for pair in pairs]
    rows = []
    data = name if draws == 1 else f"{name}, 2nd draw"
    for test in _TESTS:
        p_values = np.array([each.p_values[test] for each in results])
        expected, exact, target = _expectation(test, name, size, differences)
        shares, low, high = sizes_of(p_values, expected, exact=exact)
        rows.append(Row(test, data, size, shares, low, high, target))
    covered = float(np.mean([each.low <= 0.0 <= each.high for each in results]))
    # Differences that are 0 but for a few, or skewed, need more queries than that.
    target = name in ("normal", "like nDCG", "like RR") or size >= 200
    rows.append(_coverage("interval of the difference", data, size, covered, count, target))
    return rows


def _expectation(
    test: TestName, name: str, size: int, differences: Sequence[Doubles]
) -> tuple[Sequence[float], bool, bool]:
    """What a test's sizes should be, whether that is exact, and whether it is a target."""
    if name == "skewed":
        return LEVELS, True, test == "t" and size >= 1000
    if test == "sign":
        return sign_sizes(differences), True, True
    if name == "normal":
        if test == "wilcoxon" and size <= 50:
            return wilcoxon_size(size), True, True
        return LEVELS, True, True
    if name == "like nDCG" and test == "randomization":
        return LEVELS, True, True
    if test == "randomization" and size <= 20:
        return randomization_sizes(differences), True, True
    # A t-test of so few and so discrete differences is not what the book says.
    return LEVELS, False, test != "t" or size >= 50


def _coverage(
    what: str, data: str, size: int, share: float, repeats: int, target: bool = True
) -> Row:
    """A row for 95 % intervals: 93 to 97 %, and the error of so many repeats beyond."""
    low, high = _within(0.95, repeats)
    return Row(what, data, size, [share], [low], [high], target)


def _within(level: float, repeats: int) -> tuple[float, float]:
    """Two points around a level, and the error of so many repeats beyond."""
    return binomial_range(level - 0.02, repeats)[0], binomial_range(level + 0.02, repeats)[1]


def monte_carlo(findings: Findings, cases: int) -> None:
    """Signs drawn at random give the exact p-value within their error."""
    squares = []
    for case in range(cases):
        random = np.random.default_rng([4, case])
        differences = normal(random, 30, 1)[:, 0] + random.uniform(0, 0.5)
        bound = abs(differences.sum()) - 1e-10
        exact = tested._exact_share(differences, bound)
        drawn = np.mean(np.abs(tested._random_sums(differences, case)) >= bound)
        squares.append((drawn - exact) ** 2 / (exact * (1 - exact) / tested.RESAMPLES))
    low, high = stats.chi2.interval(_RANGE, cases)
    share = float(np.mean(squares))
    bounds = [low / cases], [high / cases]
    findings.add(
        Row("drawn p-values: squared error over its variance", "normal", 30, [share], *bounds)
    )


def families(findings: Findings, repeats: dict[int, int]) -> None:
    """Holm's and Tukey's corrections: how often any of several systems is called different."""
    for size, count in repeats.items():
        random = np.random.default_rng([5, size])
        by_holm, by_tukey = np.empty(count), np.empty(count)
        for number in range(count):
            values = normal(random, size, 4)
            p_values = [
                paired_difference(values[:, system], values[:, 0], tests=("t",)).p_values["t"]
                for system in (1, 2, 3)
            ]
            by_holm[number] = holm(np.array(p_values)).min()
            by_tukey[number] = tukey(values).min()
        # Its first step is Bonferroni's, which loses a little where systems share a baseline.
        shares, _, high = sizes_of(by_holm, LEVELS, exact=False)
        low = [binomial_range(0.7 * level, count)[0] for level in LEVELS]
        findings.add(Row("Holm, any of 3 systems", "normal", size, shares, low, high))
        shares, low, high = sizes_of(by_tukey, LEVELS, exact=True)
        findings.add(Row("Tukey, any pair of 4 systems", "normal", size, shares, low, high))


def means(findings: Findings, repeats: int) -> None:
    """The interval of a system's mean."""
    kinds: dict[str, Draw] = {"normal": normal, "like nDCG": ndcg, "like RR": reciprocal_rank}
    for name, draw in kinds.items():
        truth = float(draw(np.random.default_rng(6), 1_000_000, 1).mean())
        for size in SIZES:
            random = np.random.default_rng([7, size])
            ends = [mean_interval(draw(random, size, 1)[:, 0]) for _ in range(repeats)]
            covered = float(np.mean([low <= truth <= high for _, low, high in ends]))
            findings.add(_coverage("interval of a mean", name, size, covered, repeats))


def coherences(findings: Findings, repeats: int) -> None:
    """The share of members of the family under which a system is ahead with p < 0.05."""
    size, documents = 50, 8
    shares = []
    for number in range(repeats):
        random = np.random.default_rng([8, number])
        labels = random.choice(4, size * documents, p=[0.5, 0.25, 0.15, 0.1])
        data = Dataset.from_arrays(np.zeros((len(labels), 1)), labels, group=[documents] * size)
        ours, theirs = random.random((2, len(labels)))
        tried = coherence("nDCG@5", data, ours, theirs)
        shares.append(tried.keeps_clearly + tried.turns)
    # Members agree nearly always, so that the mean over them scatters no more than one of them.
    low, high = binomial_range(0.05, repeats)
    share = float(np.mean(shares))
    findings.add(Row("coherence: clearly ahead", "nDCG@5, made up", size, [share], [low], [high]))


def agreement(findings: Findings, repeats: int, tests: int) -> None:
    """Judging: the bootstrap of Fleiss' kappa, and the test of two agreements."""
    for size in (50, 200):
        truth = _kappa_of(np.random.default_rng(9), 100_000)
        covered = []
        for number in range(repeats):
            votes = _votes(np.random.default_rng([10, size, number]), size)
            ends = bootstrap_agreement(
                fleiss_kappa, Ratings.from_table(votes), draws=200, random_state=number
            )
            covered.append(ends.low <= truth <= ends.high)
        share = float(np.mean(covered))
        # Percentiles of so few things judged fall short by their nature.
        findings.add(
            _coverage("bootstrap of kappa", "3 people", size, share, repeats, target=size >= 200)
        )
    random = np.random.default_rng(11)
    p_values = np.empty(tests)
    for number in range(tests):
        one, other = (_agreement(random, 300) for _ in range(2))
        p_values[number] = compare_agreement(one, other).p_value
    shares, low, high = sizes_of(p_values, LEVELS, exact=True)
    findings.add(Row("compare_agreement", "pairs of votes", 300, shares, low, high))


def _votes(random: np.random.Generator, units: int) -> list[list[int]]:
    truth = random.random((units, 1)) < 0.4
    votes = np.where(random.random((units, 3)) < 0.8, truth, ~truth)
    table: list[list[int]] = votes.astype(int).tolist()
    return table


def _kappa_of(random: np.random.Generator, units: int) -> float:
    return fleiss_kappa(Ratings.from_table(_votes(random, units)))


def _agreement(random: np.random.Generator, pairs: int) -> Agreement:
    agreed = int(random.binomial(pairs, 0.7))
    table = np.zeros((3, 3), np.int64)
    table[0, 0], table[2, 2] = 2 * (agreed // 2), 2 * (agreed - agreed // 2)
    table[0, 2] = table[2, 0] = pairs - agreed
    return Agreement(table)


def utility(findings: Findings, repeats: int) -> None:
    """The interval of a utility's accuracy: whole queries are drawn, each with several pairs."""
    for size in (50, 200):
        covered = []
        for number in range(repeats):
            random = np.random.default_rng([12, size, number])
            chances = np.repeat(random.beta(7.0, 3.0, size), 4)
            right = (random.random(4 * size) < chances).astype(float)
            queries = np.repeat(np.arange(size), 4)
            low, high = _ends(queries, np.ones(4 * size), right[None, :], number)
            covered.append(low[0] <= 0.7 <= high[0])
        share = float(np.mean(covered))
        findings.add(
            _coverage("interval of a utility's accuracy", "4 pairs a query", size, share, repeats)
        )


def positions(findings: Findings, repeats: int) -> None:
    """The test of gains that depend on the position, for people whose gains do not."""
    size, resamples = 300, 19
    p_values = np.empty(repeats)
    for number in range(repeats):
        random = np.random.default_rng([13, number])
        pairs = RankingPreferences.from_arrays(*random.integers(0, 3, (2, size, 3)))
        leads = pairs.leads(np.outer([1.0, 0.6, 0.4], [0.0, 1.0, 3.0]))
        left = random.random(size) < 1.0 / (1.0 + np.exp(-1.5 * leads))
        tried = pairs.with_choices(np.where(left, 1, -1))
        model = DCGLearn(C=1.0)
        p_values[number] = position_test(
            model, tried, resamples=resamples, random_state=number
        ).p_value
    # The truth is more extreme than 19 draws once in 20 times.
    share = float(np.mean(p_values <= 1 / (resamples + 1)))
    low, high = binomial_range(1 / (resamples + 1), repeats)
    findings.add(
        Row("test of positions, p <= .05", "logistic people", size, [share], [low], [high])
    )


def workloads(findings: Findings, repeats: int) -> None:
    """The 90 % range of a project's hours: prediction from a few simulated queries."""
    random = np.random.default_rng(14)
    for size, runs in ((50, 20), (500, 20), (500, 200)):
        covered = 0
        for _ in range(repeats):
            judgments = np.rint(random.gamma(9.0, 10.0, size + runs)).astype(np.int64)
            simulated, real = judgments[:runs], judgments[runs:]
            work = Workload("x", size, simulated, simulated, np.ones(runs), None, seconds=3600.0)
            low, high = work.hours_within(0.9)
            covered += low <= real.sum() <= high
        least, most = _within(0.9, repeats)
        share = [covered / repeats]
        findings.add(Row("90 % range of hours", f"{runs} simulated", size, share, [least], [most]))


def parts(quick: bool) -> dict[str, Callable[[Findings], object]]:
    """What is measured, by name: each part adds its rows, and needs no other."""
    few = {20: 400, 50: 250, 200: 200, 1000: 20}
    many = {20: 20_000, 50: 10_000, 200: 4_000, 1000: 1_500}
    families_of = {20: 300, 50: 200} if quick else {20: 4_000, 50: 2_000, 200: 2_000, 1000: 1_000}
    calls: dict[str, Callable[[Findings], object]] = {
        f"paired tests, {kind}": partial(paired_tests, repeats=few if quick else many, kinds=[kind])
        for kind in _KINDS
    }
    calls |= {
        "drawn p-values": partial(monte_carlo, cases=40 if quick else 1_000),
        "Holm and Tukey": partial(families, repeats=families_of),
        "intervals of means": partial(means, repeats=400 if quick else 10_000),
        "coherence": partial(coherences, repeats=200 if quick else 2_000),
        "agreement": partial(
            agreement, repeats=20 if quick else 1_000, tests=2_000 if quick else 50_000
        ),
        "utility": partial(utility, repeats=20 if quick else 1_000),
    }
    for gate in GATES:
        calls[gate] = partial(_extend, gate, quick)
    calls["workloads"] = partial(workloads, repeats=500 if quick else 10_000)
    if not quick:  # each of its p-values takes some 60 fits
        calls["positions"] = partial(positions, repeats=300)
    calls["audits"] = lambda findings: findings.figures.extend(audit_rows(quick))
    calls["unjudged documents"] = lambda findings: findings.figures.extend(unjudged_rows(quick))
    return calls


def _extend(gate: str, quick: bool, findings: Findings) -> None:
    findings.rows.extend(Row(*row) for row in GATES[gate](quick))


def _measured(name: str, quick: bool) -> tuple[Findings, float]:
    """Measure one part; its rows, and how many seconds that took."""
    findings, start = Findings(), time.perf_counter()
    parts(quick)[name](findings)
    return findings, time.perf_counter() - start


def main() -> None:
    """Measure the parts, each in a process of its own, and report."""
    quick = wants_quick(__doc__)
    report = Report("statistics", quick, packages=["numpy", "scipy"])
    with ProcessPoolExecutor(cores(), get_context("spawn")) as processes:
        measured = {name: processes.submit(_measured, name, quick) for name in parts(quick)}
        names = {future: name for name, future in measured.items()}
        for future in as_completed(names):
            report.note(f"{names[future]}: {future.result()[1]:.0f} s")
    findings = Findings()
    for future in measured.values():
        part, _ = future.result()
        findings.rows += part.rows
        findings.figures += part.figures
    findings.print()
    findings.check(report)
    report.finish()


if __name__ == "__main__":
    main()
