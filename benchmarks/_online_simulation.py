"""Users of two rankings in a compiled loop: a look after every search, by the rules of the package.

A test compares the loop with `podium.online.sequence`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from podium.kernels import Doubles, Ints
from podium.online.sequence import widening

METRICS = ("preference", "balanced", "click_rate", "purchase_rate", "revenue", "clicks")
"""Signs of interleaved searches, credits of the balanced method, and metrics of A/B tests."""
LEAST, LEAST_EFFECTIVE = 30, 12.0
_Z = 1.96


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


def _rates(metric: int, tastes: Doubles) -> Doubles:
    """Return for each client what its outcomes are drawn with."""
    if metric < 2:
        return (1 + np.clip(tastes, -1.0, 1.0)) / 2
    if metric == 2:
        return np.clip(0.4 + 0.25 * tastes, 0.01, 0.99)
    if metric == 3:
        return 0.003 * np.exp(tastes)
    return tastes if metric == 4 else np.exp(-0.5 * np.exp(0.5 * tastes))


@njit(cache=True)
def _draw(state: NDArray[np.uint64]) -> float:
    """Return a number in [0, 1) by SplitMix64, six times as fast as NumPy's in compiled code."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _outcome(state: NDArray[np.uint64], metric: int, rate: float, effect: float) -> float:
    draw = _draw(state)
    if metric == 0:
        return 2.0 * (draw < rate + effect / 2) - 1.0
    if metric == 1:
        if draw < 0.4:
            return effect
        sign = 2.0 * (_draw(state) < rate) - 1.0
        return sign * 4.0 / (1 + int(10 * _draw(state))) + effect
    if metric < 4:
        return 1.0 * (draw < rate + effect)
    if metric == 4:
        return math.exp(np.random.normal(0.0, 1.5) + rate) if draw < 0.03 else 0.0
    count = 0.0  # of Poisson's distribution: as many numbers as their product stays above
    while draw > rate:
        draw *= _draw(state)
        count += 1
    return count


@njit(cache=True)
def misses(sums: Doubles, alone: bool, reach_squared: float, effect: float) -> bool:
    """Return whether the interval of these sums misses the effect; without a division if it can."""
    if alone:
        away = sums[0, 2] - effect * sums[0, 1]
        if sums[0, 0] < LEAST or away * away <= max(sums[0, 5], sums[0, 6]) * reach_squared:
            return False
        # Around the preference, clients of different sizes may vary more than around none.
        center = sums[0, 2] / sums[0, 1]
        around = sums[0, 5] - 2 * center * sums[0, 4] + center * center * sums[0, 3]
        return bool(away * away > around * reach_squared)
    if sums[0, 0] < LEAST or sums[1, 0] < LEAST:
        return False
    center = (sums[0, 2] + sums[1, 2]) / (sums[0, 1] + sums[1, 1])
    old_squares, new_squares = sums[0, 1] * sums[0, 1], sums[1, 1] * sums[1, 1]
    away = sums[1, 2] * sums[0, 1] - sums[0, 2] * sums[1, 1] - effect * sums[0, 1] * sums[1, 1]
    variance = new_squares * _spread(sums, 0, center) + old_squares * _spread(sums, 1, center)
    if variance <= 0 or away * away <= variance * reach_squared:
        return False
    fourth = new_squares**2 * _fourth(sums, 0, center) + old_squares**2 * _fourth(sums, 1, center)
    return bool(variance * variance >= LEAST_EFFECTIVE * fourth)


@njit(cache=True)
def _spread(sums: Doubles, arm: int, center: float) -> float:
    between = sums[arm, 5] - 2 * center * sums[arm, 4] + center * center * sums[arm, 3]
    single = sums[arm, 6] - 2 * center * sums[arm, 2] + center * center * sums[arm, 1]
    return float(max(between, single))


@njit(cache=True)
def _fourth(sums: Doubles, arm: int, c: float) -> float:
    return float(
        sums[arm, 7]
        - 4 * c * sums[arm, 8]
        + 6 * c**2 * sums[arm, 9]
        - 4 * c**3 * sums[arm, 10]
        + c**4 * sums[arm, 11]
    )


@njit(cache=True)
def _t_misses(sums: Doubles, alone: bool, effect: float) -> bool:
    """Return whether the usual interval for one look misses the effect."""
    if sums[0, 0] < LEAST or (not alone and sums[1, 0] < LEAST):
        return False
    mean = sums[0, 2] / sums[0, 1]
    variance = (sums[0, 6] / sums[0, 1] - mean * mean) / sums[0, 1]
    if alone:
        return bool((mean - effect) ** 2 > _Z * _Z * max(variance, 1e-18 / sums[0, 1]))
    other = sums[1, 2] / sums[1, 1]
    variance += (sums[1, 6] / sums[1, 1] - other * other) / sums[1, 1]
    return bool(variance > 0 and (other - mean - effect) ** 2 > _Z * _Z * variance)


@njit(cache=True)
def _seed(seed: int) -> None:
    np.random.seed(seed)


@njit(cache=True)
def _run(
    state: NDArray[np.uint64], drawn: Ints, rates: Doubles, arms: Ints, metric: int, effect: float,
    reach_squared: Doubles,
) -> tuple[bool, bool]:  # fmt: skip
    """Return whether an interval misses the truth at any look of one run, and whether a t-test."""
    alone = metric < 2
    slots = len(drawn)
    clients = np.zeros((len(rates), 4))  # outcome, size, rate and arm: together in the cache
    clients[:, 2] = rates
    clients[:, 3] = arms
    sums = np.zeros((2, 12))
    missed = t_missed = False
    for search in range(len(reach_squared)):
        client = drawn[int(slots * _draw(state))]
        arm = int(clients[client, 3])
        x = _outcome(state, metric, clients[client, 2], effect if alone or arm else 0.0)
        x0, n0 = clients[client, 0], clients[client, 1]
        x1, n1 = x0 + x, n0 + 1
        clients[client, 0], clients[client, 1] = x1, n1
        sums[arm, 0] += n0 == 0
        sums[arm, 1] += 1
        sums[arm, 2] += x
        sums[arm, 5] += x * (x1 + x0)
        sums[arm, 6] += x * x
        if not alone:
            sums[arm, 3] += n1 + n0
            sums[arm, 4] += n1 * x1 - n0 * x0
            xx0, xx1, nn0, nn1 = x0 * x0, x1 * x1, n0 * n0, n1 * n1
            xn0, xn1 = x0 * n0, x1 * n1
            sums[arm, 7] += xx1 * xx1 - xx0 * xx0
            sums[arm, 8] += xx1 * xn1 - xx0 * xn0
            sums[arm, 9] += xn1 * xn1 - xn0 * xn0
            sums[arm, 10] += xn1 * nn1 - xn0 * nn0
            sums[arm, 11] += nn1 * nn1 - nn0 * nn0
        missed = missed or misses(sums, alone, reach_squared[search], effect)
        t_missed = t_missed or _t_misses(sums, alone, effect)
        if missed and t_missed:
            break
    return missed, t_missed


def simulate(
    seed: int, runs: int, searches: int, users: Users, metric: int, effect: float
) -> tuple[int, int]:
    """Return in how many runs an interval ever misses the truth, and a t-test at any look."""
    random = np.random.default_rng(seed)
    _seed(seed)
    state = random.integers(0, 2**63, 1, np.uint64)
    reach_squared = np.array([widening(n) ** 2 for n in range(1, searches + 1)])
    drawn = np.arange(users.clients)
    if users.skew:  # how often each client is in this list is how active it is
        active = np.cumsum((drawn + 1) ** -users.skew)
        drawn = np.searchsorted(active, np.linspace(0.0, active[-1], 2**16, endpoint=False))
    missed = naive = 0
    for _ in range(runs):
        tastes = np.zeros(users.clients)
        if users.taste:
            tastes = random.normal(0.0, users.taste, users.clients)
        rates = _rates(metric, tastes)
        arms = random.integers(0, 1 if metric < 2 else 2, users.clients)
        miss, t_miss = _run(state, drawn, rates, arms, metric, effect, reach_squared)
        missed += miss
        naive += t_miss
    return missed, naive
