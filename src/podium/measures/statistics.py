"""Paired tests, intervals, effect sizes, and corrections for many comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import checked_seed
from podium.errors import DataError
from podium.kernels import Doubles, kernel
from podium.threads import ordered_map

TestName = Literal["t", "randomisation", "wilcoxon", "sign"]

RESAMPLES = 10_000
_TIE = 1e-12


@dataclass(frozen=True)
class Difference:
    """How one system's values differ from another's, query by query.

    Attributes:
        mean: The mean difference.
        low: The lower end of its 95 % interval (Student's t).
        high: The upper end.
        effect: Cohen's d of the differences (mean over standard deviation).
        wins: Queries where the first system is ahead.
        ties: Queries where both are equal.
        losses: Queries where it is behind.
        p_values: The two-sided p-value of each test asked for.
    """

    mean: float
    low: float
    high: float
    effect: float
    wins: int
    ties: int
    losses: int
    p_values: Mapping[TestName, float]


def paired_difference(
    ours: Doubles,
    theirs: Doubles,
    *,
    tests: tuple[TestName, ...] = ("t", "randomisation", "wilcoxon", "sign"),
    seed: int = 0,
) -> Difference:
    """Compare two systems on the same queries.

    Example:
        >>> found = paired_difference(np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.7, 0.5]))
        >>> round(found.mean, 3), found.wins, found.ties, found.losses
        (0.167, 2, 1, 0)
    """
    differences = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    if differences.ndim != 1 or not len(differences) or np.isnan(differences).any():
        raise DataError(
            "the values to compare are not of the same queries",
            hint="Leave out queries that a measure has no value for in both systems.",
        )
    differences = np.where(np.abs(differences) < _TIE, 0.0, differences)
    mean, low, high = mean_interval(differences)
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    return Difference(
        mean,
        low,
        high,
        effect=mean / spread if spread > 0 else 0.0,
        wins=int(np.sum(differences > 0)),
        ties=int(np.sum(differences == 0)),
        losses=int(np.sum(differences < 0)),
        p_values={name: TESTS[name](differences, checked_seed(seed)) for name in tests},
    )


def mean_interval(values: Doubles, level: float = 0.95) -> tuple[float, float, float]:
    """The mean and the ends of its confidence interval by Student's t.

    Example:
        >>> tuple(round(end, 3) for end in mean_interval(np.array([1.0, 2.0, 3.0])))
        (2.0, -0.484, 4.484)
    """
    from scipy import stats

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, mean, mean
    error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    half = float(stats.t.ppf(0.5 + level / 2, len(values) - 1)) * error
    return mean, mean - half, mean + half


def holm(p_values: Doubles) -> Doubles:
    """Holm's correction: adjusted p-values that keep the family-wise error.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).round(6).tolist()
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    count = len(p_values)
    stepped = np.maximum.accumulate(p_values[order] * (count - np.arange(count)))
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def tukey(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tukey's honestly significant differences of all pairs of systems over the same queries.

    The residual of a two-way analysis of variance without replication (queries and systems) is
    the yardstick, as information retrieval has it (Sakai 2018).

    Args:
        values: A row for each query, a column for each system.

    Returns:
        The p-value of each pair of systems, 1 on the diagonal.

    Example:
        >>> tukey(np.array([[0.1, 0.2], [0.5, 0.6], [0.3, 0.5]])).round(4).tolist()
        [[1.0, 0.0572], [0.0572, 1.0]]
    """
    from scipy import stats

    queries, systems = values.shape
    if queries < 2 or systems < 2:
        return np.ones((systems, systems))
    means = values.mean(axis=0)
    residuals = values - values.mean(axis=1, keepdims=True) - means + values.mean()
    freedom = (queries - 1) * (systems - 1)
    error = np.sqrt(np.sum(residuals**2) / freedom / queries)
    gaps = np.abs(means[:, None] - means[None, :])
    if error == 0.0:
        return np.where(gaps > _TIE, 0.0, 1.0)
    found = np.asarray(stats.studentized_range.sf(gaps / error, systems, freedom), np.float64)
    np.fill_diagonal(found, 1.0)
    return np.clip(found, 0.0, 1.0)


def _t_test(differences: Doubles, _seed: int) -> float:
    from scipy import stats

    if np.ptp(differences) == 0.0:  # no spread: either nothing differs, or everything alike
        return 1.0 if differences[0] == 0.0 else 0.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def _randomisation_test(differences: Doubles, seed: int) -> float:
    """Fisher's: how often random signs give a mean as far from 0 as the one seen."""
    changed = differences[differences != 0.0]
    if not len(changed):
        return 1.0
    if len(changed) <= 13:  # all 2^n signs are fewer than the resamples
        signs = np.array([[1.0], [-1.0]])
        sums = np.zeros(1)
        for value in changed:
            sums = (sums + signs * value).ravel()
        observed = abs(changed.sum())
        return float(np.mean(np.abs(sums) >= observed - 1e-9))
    seeds = range(seed * 64 + 1, seed * 64 + 65)
    each = -(-RESAMPLES // len(seeds))
    extreme = sum(ordered_map(lambda start: _random_signs(changed, each, start), seeds))
    return (extreme + 1) / (each * len(seeds) + 1)


@kernel
def _random_signs(differences: Doubles, resamples: int, seed: int) -> int:
    """How many of so many sums with random signs are as far from 0 as the plain sum."""
    observed = 0.0
    for value in differences:
        observed += value
    bound = abs(observed) - 1e-9
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    extreme = 0
    for _ in range(resamples):
        total = 0.0
        bits = np.uint64(0)
        for row in range(len(differences)):
            if row % 64 == 0:  # SplitMix64: one number gives the signs of 64 queries
                state += np.uint64(0x9E3779B97F4A7C15)
                bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                bits = bits ^ (bits >> np.uint64(31))
            total += differences[row] if bits & np.uint64(1) else -differences[row]
            bits >>= np.uint64(1)
        extreme += abs(total) >= bound
    return extreme


def _wilcoxon_test(differences: Doubles, _seed: int) -> float:
    from scipy import stats

    changed = differences[differences != 0.0]
    return float(stats.wilcoxon(changed).pvalue) if len(changed) else 1.0


def _sign_test(differences: Doubles, _seed: int) -> float:
    from scipy import stats

    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


TESTS: dict[TestName, Callable[[Doubles, int], float]] = {
    "t": _t_test,
    "randomisation": _randomisation_test,
    "wilcoxon": _wilcoxon_test,
    "sign": _sign_test,
}
