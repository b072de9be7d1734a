"""Paired tests, intervals, effect sizes, and corrections for many comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import checked_seed, generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles

TestName = Literal["t", "randomization", "wilcoxon", "sign"]

RESAMPLES = 10_000
"""How many choices of signs the randomization test draws where there are too many to try all."""

# All 2^36 choices of signs take a tenth of a second: 2^18 sums of each half.
_EXACT = 36
# Differences below this share of the values are rounding.
_TIE = 1e-12


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class OnRequest(Mapping[_Key, _Value], Generic[_Key, _Value]):
    """A mapping whose values are computed when they are read, each of them once.

    Example:
        >>> squares = OnRequest([2, 3], lambda number: number**2)
        >>> squares[3], 4 in squares, squares
        (9, False, {2: 4, 3: 9})
    """

    def __init__(self, keys: Iterable[_Key], compute: Callable[[_Key], _Value]) -> None:
        self._keys = dict.fromkeys(keys)
        self._compute = compute
        self._known: dict[_Key, _Value] = {}

    def __getitem__(self, key: _Key) -> _Value:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self._known:
            self._known[key] = self._compute(key)
        return self._known[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)
class Difference:
    """How one system's values differ from another's, query by query.

    Attributes:
        mean: The mean difference.
        low: The lower end of its 95 % interval (Student's t); NaN for a single query, and if all
            differences are the same.
        high: The upper end.
        effect: Cohen's d of the differences (mean over standard deviation): infinite if all are
            the same and not 0, NaN for a single query.
        wins: Queries where the first system is ahead.
        ties: Queries where both are equal, but for rounding.
        losses: Queries where it is behind.
        p_values: The two-sided p-value of each test, computed when it is read.
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
    tests: tuple[TestName, ...] = ("t", "randomization", "wilcoxon", "sign"),
    random_state: int = 0,
    weights: Doubles | None = None,
    larger_is_better: bool = True,
) -> Difference:
    """Compare two systems on the same queries.

    With a weight above 0 for each query, mean, interval and effect are weighted, and the
    randomization test is the only one: its hypothesis, that the sign of each difference is
    arbitrary, makes all signs of weighted differences equally likely, so it is as exact as without
    weights. The others test a median, or a mean of equal weights. Of losses, the system with the
    smaller value is ahead.

    Example:
        >>> difference = paired_difference(np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.7, 0.5]))
        >>> round(difference.mean, 3), difference.wins, difference.ties, difference.losses
        (0.167, 2, 1, 0)
    """
    one, other = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise DataError(
            "the values to compare are not of the same queries",
            hint="Give one value per query for both systems, in the same order.",
        )
    if not (np.isfinite(one) & np.isfinite(other)).all():
        raise DataError(
            "a value to compare is NaN or infinite",
            hint="Leave out queries that a measure has no value for in both systems.",
        )
    unit = _unit(one, other)
    one, other = one / unit, other / unit
    differences = differences_of(one, other)
    mean, low, high = weighted_interval(differences, weights)
    effect = _effect(differences, mean)
    tested = differences if weights is None else differences * (weights / weights.max())
    drawn = checked_seed(random_state)
    ahead = differences if larger_is_better else -differences
    return Difference(
        mean * unit,
        low * unit,
        high * unit,
        effect=effect,
        wins=int(np.sum(ahead > 0)),
        ties=int(np.sum(ahead == 0)),
        losses=int(np.sum(ahead < 0)),
        p_values=OnRequest(
            tests if weights is None else ("randomization",),
            lambda name: TESTS[name](tested, drawn),
        ),
    )


def differences_of(one: Doubles, other: Doubles) -> Doubles:
    """Return the differences of values, query by query; those that are rounding are 0.

    Example:
        >>> differences_of(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25])).tolist()
        [0.0, 0.25]
    """
    differences = one - other
    rounding = _TIE * np.maximum(np.abs(one), np.abs(other))
    return np.where(np.abs(differences) <= rounding, 0.0, differences)


def mean_interval(values: Doubles, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean and the bounds of its confidence interval by Student's t.

    The bounds are NaN for a single value, and for values that are all the same: they say nothing
    about how far others are from them.

    Example:
        >>> tuple(round(end, 3) for end in mean_interval(np.array([1.0, 2.0, 3.0])))
        (2.0, -0.484, 4.484)
    """
    return weighted_interval(values, None, level)


def weighted_interval(
    values: Doubles, weights: Doubles | None, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the weighted mean and the bounds of its confidence interval.

    It is the interval of the mean over queries with just these weights. Its error is the
    jackknife's, which holds where the values of heavy queries vary more than others; the degrees of
    freedom are those of the effective number of queries, and with fewer than two of these the
    bounds are NaN. Of queries drawn at random it may be far too narrow if heavy ones have another
    mean, and few are among them. With equal weights it is ``mean_interval``.

    Example:
        >>> ends = weighted_interval(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]))
        >>> tuple(round(end, 3) for end in ends)
        (2.25, -1.44, 5.94)
    """
    from scipy import special  # stats takes half a second to import

    if not 0 < level < 1:
        raise ArgumentError(f"level is {level}", hint="Give a number in (0, 1).")
    unit = _unit(values)
    mean, deviations, freedom = weighted_deviations(values / unit, weights)
    if not freedom or _no_spread(values):
        return mean * unit, math.nan, math.nan
    count = len(values)
    error = math.sqrt(float(np.sum(deviations**2)) / (count - 1) / count)
    half = float(special.stdtrit(freedom, 0.5 + level / 2)) * error
    return mean * unit, (mean - half) * unit, (mean + half) * unit


def effective_queries(weights: Doubles) -> float:
    """Return Kish's number: of how many queries of equal weight a mean would vary as much.

    Example:
        >>> effective_queries(np.array([2.0, 1.0, 1.0])).round(6)
        2.666667
    """
    return float(weights.sum()) ** 2 / float(np.sum(weights**2))


def weighted_deviations(values: Doubles, weights: Doubles | None) -> tuple[float, Doubles, float]:
    """Return the mean, how far each value moves it, and the degrees of freedom of its error.

    A value moves the mean by what the mean loses without it, n - 1 times (the jackknife); without
    weights that is its distance from the mean. There are 0 degrees of freedom for a single value,
    and where one has so much of the weight that it is nearly alone (fewer than two effective ones).
    """
    count = len(values)
    if weights is None:
        mean = float(np.mean(values))
        return mean, values - mean, count - 1.0
    shares = weights / weights.sum()
    mean = float(shares @ values)
    freedom = effective_queries(shares) - 1.0
    if freedom < 1.0 - _TIE:
        return mean, values - mean, 0.0
    return mean, (count - 1) * shares * (values - mean) / (1.0 - shares), freedom


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
    the error term, as is usual in information retrieval (Sakai 2018).

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
    values = values / _unit(values)
    means = values.mean(axis=0)
    residuals = values - values.mean(axis=1, keepdims=True) - means + values.mean()
    freedom = (queries - 1) * (systems - 1)
    error = np.sqrt(np.sum(residuals**2) / freedom / queries)
    gaps = np.abs(means[:, None] - means[None, :])
    rounding = _TIE * np.abs(values).max()
    if error <= rounding:
        return np.where(gaps > rounding, 0.0, 1.0)
    p_matrix = np.ones((systems, systems))
    one, other = np.triu_indices(systems, 1)  # each value takes milliseconds
    p_values = stats.studentized_range.sf(gaps[one, other] / error, systems, freedom)
    p_matrix[one, other] = p_matrix[other, one] = np.clip(p_values, 0.0, 1.0)
    return p_matrix


def _unit(*values: NDArray[np.float64]) -> float:
    """A power of two to measure values in: squares do not overflow, and nothing is rounded by it.

    DCG of an order of 1,000 documents is about 1e300.
    """
    largest = max(float(np.abs(each).max(initial=0.0)) for each in values)
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def _effect(differences: Doubles, mean: float) -> float:
    if len(differences) < 2:
        return math.nan
    if _no_spread(differences):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / float(np.std(differences, ddof=1))


def _no_spread(differences: Doubles) -> bool:
    """Whether all differences are the same but for rounding."""
    return float(np.ptp(differences)) <= _TIE * float(np.abs(differences).max())


def _t_test(differences: Doubles, _seed: int) -> float:
    from scipy import stats

    if len(differences) < 2:  # the variance is unknown, so nothing can be significant
        return 1.0
    if _no_spread(differences):
        # t is 0 or infinite, even for two queries; the randomization test has a value.
        return 1.0 if differences[0] == 0.0 else 2.0 ** (1 - len(differences))
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def _randomization_test(differences: Doubles, random_state: int) -> float:
    """Fisher's: how often random signs give a sum as far from 0 as the one observed."""
    changed = np.sort(differences[differences != 0.0])  # the order of queries must not matter
    if not len(changed):
        return 1.0
    # Sums that are equal but for rounding count as equal.
    bound = abs(float(changed.sum())) - 1e-10 * float(np.abs(changed).sum())
    if len(changed) <= _EXACT:
        return _exact_share(changed, bound)
    extreme = int(np.sum(np.abs(_random_sums(changed, random_state)) >= bound))
    return (extreme + 1) / (RESAMPLES + 1)


def _exact_share(values: Doubles, bound: float) -> float:
    """The share of all 2^n sums with signs that are at least ``bound`` away from 0.

    Every sum is one of the first half's plus one of the second half's. With the second half's
    sorted, a binary search counts those that complete a sum to ``bound`` or more, so 2^(n/2) sums
    are looked at, not 2^n. Sums below -bound are as many, by symmetry.
    """
    if bound <= 0.0:
        return 1.0
    middle = len(values) // 2
    first, second = _signed_sums(values[:middle]), np.sort(_signed_sums(values[middle:]))
    below = np.searchsorted(second, bound - first, side="left")
    extreme = len(first) * len(second) - int(below.sum())
    return 2.0 * extreme / 2.0 ** len(values)


def _signed_sums(values: Doubles) -> Doubles:
    """The sums of some values with every choice of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums + value, sums - value))
    return sums


def _random_sums(values: Doubles, random_state: int) -> Doubles:
    """Sums with random signs, one for each resample.

    A random byte holds the signs of eight values, and a table the 256 sums they can make. Memory
    is that of the resamples and of some tables, however many values there are.
    """
    random = generator(random_state)
    padded = np.zeros(-(-len(values) // 8) * 8)
    padded[: len(values)] = values
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1.0
    sums = np.zeros(RESAMPLES)
    for eights in np.array_split(padded.reshape(-1, 8), -(-len(padded) // 8192)):
        for table in eights @ signs.T:
            sums += table[random.integers(0, 256, RESAMPLES, np.uint8)]
    return sums


def _wilcoxon_test(differences: Doubles, _seed: int) -> float:
    from scipy import stats

    mantissas, exponents = np.frexp(differences[differences != 0.0])
    changed = np.ldexp(np.round(mantissas, 12), exponents)  # equal but for rounding is a tie
    if not len(changed):
        return 1.0
    if len(changed) > _EXACT:
        return float(stats.wilcoxon(changed).pvalue)
    ranks = np.copysign(stats.rankdata(np.abs(changed)), changed)
    return _exact_share(ranks, abs(float(ranks.sum())) - 0.25)  # ranks of ties are halves


def _sign_test(differences: Doubles, _seed: int) -> float:
    from scipy import stats

    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


TESTS: dict[TestName, Callable[[Doubles, int], float]] = {
    "t": _t_test,
    "randomization": _randomization_test,
    "wilcoxon": _wilcoxon_test,
    "sign": _sign_test,
}
