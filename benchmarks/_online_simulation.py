"""Users of two rankings in a compiled loop: a look after every search, by the rules of the package.

A test compares the loop with `podium.online.sequence`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

METRICS = ("preference", "balanced", "click_rate", "purchase_rate", "revenue", "clicks")
"""Signs of interleaved searches, credits of the balanced method, and metrics of A/B tests."""
TUNED, LEAST, LEAST_EFFECTIVE = 1000.0, 30, 12.0


class Users(NamedTuple):
    """Clients: how many, how unequally active (Zipf's exponent), how much their tastes differ."""

    clients: int
    skew: float
    taste: float


CROWDS = {
    "20,000 alike": Users(20_000, 0.0, 0.0),
    "2,000, some very active, with tastes": Users(2000, 1.0, 0.5),
    "300, some very active": Users(300, 1.0, 0.0),
    "300 with strong tastes": Users(300, 0.0, 0.8),
    "1,000 alike": Users(1000, 0.0, 0.0),
    "80 alike": Users(80, 0.0, 0.0),
}


@njit(cache=True)
def _widening(n: float, alpha: float) -> float:
    spread = TUNED / (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha)))
    return math.sqrt((n + spread) / n * math.log((n + spread) / (spread * alpha * alpha)))


@njit(cache=True)
def _outcome(metric: int, taste: float, effect: float) -> float:
    draw = np.random.random()
    if metric == 0:
        return 1.0 if draw < (1 + taste + effect) / 2 else -1.0
    if metric == 1:
        if draw < 0.4:
            return effect
        sign = 1.0 if np.random.random() < (1 + taste) / 2 else -1.0
        return sign * 4.0 / np.random.randint(1, 11) + effect
    if metric == 2:
        return 1.0 if draw < min(0.99, max(0.01, 0.4 + 0.25 * taste)) + effect else 0.0
    if metric == 3:
        return 1.0 if draw < 0.003 * math.exp(taste) + effect else 0.0
    if metric == 4:
        return math.exp(np.random.normal(0.0, 1.5) + taste) if draw < 0.03 else 0.0
    return float(np.random.poisson(0.5 * math.exp(0.5 * taste)))


@njit(cache=True)
def _look(
    sums: NDArray[np.float64], alone: bool, alpha: float, effect: float
) -> tuple[float, bool, bool]:
    """Return the estimate, whether the interval misses the effect, and whether a t-test does."""
    if alone:
        s = sums[0]
        if s[0] < LEAST:
            return 0.0, False, False
        value = s[2] / s[1]
        deviation = math.sqrt(max(s[5], s[6])) / s[1]
        plain = math.sqrt(max(s[6] / s[1] - value * value, 1e-18) / s[1])
        misses = abs(value - effect) > deviation * _widening(s[1], alpha)
        return value, misses, abs(value - effect) > 1.96 * plain
    if sums[0, 0] < LEAST or sums[1, 0] < LEAST:
        return 0.0, False, False
    center = (sums[0, 2] + sums[1, 2]) / (sums[0, 1] + sums[1, 1])
    second = fourth = variance = plain = 0.0
    for arm in range(2):
        s = sums[arm]
        between = s[5] - 2 * center * s[4] + center**2 * s[3]
        single = s[6] - 2 * center * s[2] + center**2 * s[1]
        variance += max(between, single) / s[1] ** 2
        fourth += (
            s[7] - 4 * center * s[8] + 6 * center**2 * s[9] - 4 * center**3 * s[10]
            + center**4 * s[11]
        ) / s[1] ** 4  # fmt: skip
        mean = s[2] / s[1]
        plain += max(s[6] / s[1] - mean * mean, 0.0) / s[1]
    second = variance
    value = sums[1, 2] / sums[1, 1] - sums[0, 2] / sums[0, 1]
    away = abs(value - effect)
    enough = second > 0 and second**2 >= LEAST_EFFECTIVE * fourth
    misses = enough and away > math.sqrt(variance) * _widening(sums[0, 1] + sums[1, 1], alpha)
    return value, misses, plain > 0 and away > 1.96 * math.sqrt(plain)


@njit(cache=True)
def simulate(
    seed: int, runs: int, searches: int, clients: int, skew: float, taste: float, metric: int,
    effect: float, alpha: float,
) -> tuple[int, int]:  # fmt: skip
    """Return in how many runs an interval ever misses the truth, and a t-test at any look."""
    np.random.seed(seed)
    alone = metric < 2
    active = np.cumsum(np.arange(1, clients + 1) ** -skew)
    missed = naive = 0
    for _ in range(runs):
        outcome, size = np.zeros(clients), np.zeros(clients)
        tastes = np.random.normal(0.0, taste, clients)
        if alone:
            tastes = np.minimum(1.0, np.maximum(-1.0, tastes))
        arms = (np.random.random(clients) < 0.5).astype(np.int64)
        sums = np.zeros((2, 12))
        misses = t_misses = False
        for _ in range(searches):
            client = np.searchsorted(active, np.random.random() * active[-1])
            arm = 0 if alone else arms[client]
            shift = effect if alone or arm else 0.0
            x = _outcome(metric, tastes[client], shift)
            x0, n0 = outcome[client], size[client]
            x1, n1 = x0 + x, n0 + 1
            outcome[client], size[client] = x1, n1
            s = sums[arm]
            s[0] += n0 == 0
            s[1] += 1
            s[2] += x
            s[3] += n1 * n1 - n0 * n0
            s[4] += n1 * x1 - n0 * x0
            s[5] += x1 * x1 - x0 * x0
            s[6] += x * x
            s[7] += x1**4 - x0**4
            s[8] += x1**3 * n1 - x0**3 * n0
            s[9] += (x1 * n1) ** 2 - (x0 * n0) ** 2
            s[10] += x1 * n1**3 - x0 * n0**3
            s[11] += n1**4 - n0**4
            _, now, t_now = _look(sums, alone, alpha, effect)
            misses |= now
            t_misses |= t_now
            if misses and t_misses:
                break
        missed += misses
        naive += t_misses
    return missed, naive
