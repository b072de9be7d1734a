"""Whether a verdict between two systems survives other sensible gains and discounts.

DCG's gains and discounts are conventions, and with more than two grades two sensible choices can
disagree on which system is better (Zhou et al. 2012, section 3). Here a verdict is tried over a
documented family:

- gains ``(b^label - 1) / (b - 1)``: b = 0 counts every relevant document alike, 1 is linear, 2 is
  the usual exponential, 4 makes the highest grades count nearly alone;
- discounts ``1 / log2(1 + rank)^a``: a = 0 is none, 1 is the usual, 3 looks at little but the top.

The fraction of the family that keeps the verdict says how much of it is the systems and how much
the parameters; the nearest member that turns it says which parameters would do so. For plain DCG
there is a stronger statement: if the better system has at least as many documents of each grade
or above within each cut-off, then every increasing gain and every decreasing discount agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data.gains import log2_discounts
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats, kernel
from podium.threads import over_queries

BASES = tuple(place / 4 for place in range(17))
STEEPNESS = tuple(place / 4 for place in range(13))
_USUAL = (2.0, 1.0)


@dataclass(frozen=True)
class Member:
    """One choice of gains and discounts."""

    base: float
    steepness: float

    def __str__(self) -> str:
        gains = {0.0: "binary gains", 1.0: "linear gains"}.get(
            self.base, f"gains of base {self.base:g}"
        )
        if self.steepness == 0.0:
            return f"{gains} and no discount"
        return f"{gains} and discount 1/log2(1 + rank)^{self.steepness:g}"


@dataclass(frozen=True)
class Coherence:
    """How far a verdict depends on gains and discounts.

    Attributes:
        difference: The mean difference under the usual gains (base 2) and discount.
        keeps: The fraction of the family under which the same system is ahead.
        keeps_clearly: The fraction under which it is ahead with p < 0.05 (paired t-test).
        turns: The fraction under which the other system is ahead with p < 0.05.
        nearest: The member nearest to the usual parameters under which the other one is ahead.
        unanimous: Whether every increasing gain and decreasing discount agree, for plain DCG.
        differences: The mean difference of each member, a row a base, a column a steepness.
    """

    difference: float
    keeps: float
    keeps_clearly: float
    turns: float
    nearest: Member | None
    unanimous: bool
    differences: NDArray[np.float64]


def coherence(
    ours: Floats, theirs: Floats, ideal: Floats | None = None, *, normalised: bool = True
) -> Coherence:
    """Try a verdict between two systems over the family of gains and discounts.

    Args:
        ours: The labels of one system's documents, best first: a row a query, a column a rank, 0
            where there is no judged document.
        theirs: The same of the other system, for the same queries.
        ideal: The same of the ideal ranking, for nDCG.
        normalised: Whether the verdict is by nDCG; by DCG if not.

    Example:
        >>> one, other = np.float32([[2, 0, 0]]), np.float32([[1, 1, 1]])
        >>> found = coherence(one, other, np.float32([[2, 1, 1]]))
        >>> found.difference > 0, found.unanimous, str(found.nearest)
        (True, False, 'gains of base 1.25 and discount 1/log2(1 + rank)^0.75')
    """
    if ours.shape != theirs.shape or ours.ndim != 2 or not ours.size:
        raise DataError(
            f"ranked labels have shapes {ours.shape} and {theirs.shape}",
            hint="Give the same queries and the same depth for both.",
        )
    if normalised and (ideal is None or ideal.shape != ours.shape):
        raise ArgumentError("nDCG needs the ideal rankings", hint="Give ideal= of the same shape.")
    best = ours if ideal is None else ideal
    grades, codes = np.unique(np.stack((ours, theirs, best)), return_inverse=True)
    if grades[0] < 0:
        raise DataError(f"a label is {grades[0]}", hint="Labels are at least 0 here.")
    ranks = np.arange(1, ours.shape[1] + 1)
    gains = np.stack([_gains(grades.astype(np.float64), base) for base in BASES])
    discounts = np.stack([log2_discounts(ranks) ** steepness for steepness in STEEPNESS])
    mean, spread = _family(codes.reshape(3, *ours.shape), gains, discounts, normalised)
    usual = mean[BASES.index(_USUAL[0]), STEEPNESS.index(_USUAL[1])]
    sign = np.sign(usual)
    ahead = np.where(np.abs(mean) < 1e-12, 0.0, mean * sign)
    clear = _clear(mean, spread, len(ours))
    return Coherence(
        difference=float(usual),
        keeps=float(np.mean(ahead > 0)),
        keeps_clearly=float(np.mean((ahead > 0) & clear)),
        turns=float(np.mean((ahead < 0) & clear)),
        nearest=_nearest(ahead < 0) if sign else None,
        unanimous=bool(sign) and _dominates(ours, theirs, grades, float(sign)),
        differences=mean,
    )


def _gains(grades: Doubles, base: float) -> Doubles:
    """Gains up to a factor, which changes no verdict: relative to the highest, never overflowing.

    Every member is scaled so that its highest grade gains 1.
    """
    highest = grades[-1]
    if highest == 0.0:
        return np.zeros(len(grades))
    if base == 0.0:
        return (grades > 0).astype(np.float64)
    if base == 1.0:
        return np.asarray(grades / highest)
    steps = grades * np.log(base)
    if base < 1.0:
        return np.asarray(np.expm1(steps) / np.expm1(steps[-1]))
    return np.asarray((np.exp(steps - steps[-1]) - np.exp(-steps[-1])) / -np.expm1(-steps[-1]))


def _clear(
    mean: NDArray[np.float64], spread: NDArray[np.float64], queries: int
) -> NDArray[np.bool_]:
    """Which mean differences have p < 0.05 by the paired t-test."""
    from scipy import stats

    if queries < 2:
        return np.zeros(mean.shape, bool)
    bound = float(stats.t.ppf(0.975, queries - 1)) / np.sqrt(queries)
    return np.asarray(np.abs(mean) > bound * spread)


def _nearest(turned: NDArray[np.bool_]) -> Member | None:
    if not turned.any():
        return None
    rows, columns = np.nonzero(turned)
    bases, steepness = np.array(BASES)[rows], np.array(STEEPNESS)[columns]
    # Both ranges count alike, though bases go to 4 and steepness to 3.
    distance = ((bases - _USUAL[0]) / BASES[-1]) ** 2
    distance += ((steepness - _USUAL[1]) / STEEPNESS[-1]) ** 2
    place = int(np.argmin(distance))
    return Member(float(bases[place]), float(steepness[place]))


def _dominates(ours: Floats, theirs: Floats, grades: Floats, sign: float) -> bool:
    """Whether the better system has as many documents of each grade or above in each top."""
    for grade in grades[grades > 0]:
        surplus = np.sum(ours >= grade, axis=0) - np.sum(theirs >= grade, axis=0)
        if np.any(np.cumsum(surplus) * sign < 0):
            return False
    return True


def _family(
    codes: NDArray[np.int64],
    gains: NDArray[np.float64],
    discounts: NDArray[np.float64],
    normalised: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and standard deviation over queries of each member's difference."""
    queries, depth = codes.shape[1:]
    small = codes.astype(np.int32)
    offsets = np.arange(queries + 1, dtype=np.int64) * depth

    def task(first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sums = np.zeros((2, len(gains), len(discounts)))
        _add_differences(small, gains, discounts, normalised, sums, first, last)
        return sums[0], sums[1]

    parts = over_queries(task, offsets)
    mean = sum(part[0] for part in parts) / queries
    square = sum(part[1] for part in parts) / queries
    variance = np.maximum(square - mean**2, 0.0) * queries / max(queries - 1, 1)
    return np.asarray(mean), np.sqrt(variance)


@kernel
def _add_differences(
    codes: NDArray[np.int32],
    gains: NDArray[np.float64],
    discounts: NDArray[np.float64],
    normalised: bool,
    sums: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    depth = codes.shape[2]
    for query in range(first, last):
        for gain in range(gains.shape[0]):
            for discount in range(discounts.shape[0]):
                ours = theirs = best = 0.0
                for rank in range(depth):
                    weight = discounts[discount, rank]
                    ours += weight * gains[gain, codes[0, query, rank]]
                    theirs += weight * gains[gain, codes[1, query, rank]]
                    best += weight * gains[gain, codes[2, query, rank]]
                difference = ours - theirs
                if normalised:
                    difference = difference / best if best > 0.0 else 0.0
                sums[0, gain, discount] += difference
                sums[1, gain, discount] += difference * difference
