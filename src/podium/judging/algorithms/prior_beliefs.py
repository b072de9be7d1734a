"""What is believed of items from a prior ranking of unknown quality and from matches.

An item's strength is a standard normal variable. Under the hypothesis that the prior ranking has
correlation r with the truth, an item whose position in the ranking is the normal quantile z has
mean r z and standard deviation s = sqrt(1 - r²), the *spread*. Several spreads are kept in
parallel, from 1 (the ranking is uninformative) to almost 0 (it is right), weighted by how well they
foretold the matches so far.

A match changes what is believed of the winner only. The loser waits under it, and is asked about
again only if the winner turns out the best of all, by which it is no worse than it was before.
"""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
from scipy.special import ndtri

from podium.kernels import Doubles, Ints, kernel

SPREADS = np.array([1.0, 0.87, 0.6, 0.3, 0.13, 0.04, 0.002])
"""The hypotheses: the standard deviation of an item's strength given the prior ranking."""

_WORST_SURPRISE = -8.0
_MARGIN = 2.0
_DECIMALS = 1e9


class Beliefs:
    """The strength of items under each hypothesis, for `podium.judging.algorithms.adaptive`."""

    def __init__(self, items: int, k: int) -> None:
        trust = np.sqrt(1 - SPREADS**2)
        positions = quantiles(items)
        self._means = positions[:, None] * trust
        self._variances = np.tile(SPREADS**2, (items, 1))
        self._evidence = np.zeros(len(SPREADS))
        # How weak an item is matters no more once it is surely not among the best k: those items
        # count as equals, and many of them can meet at once.
        last = positions[min(k, items) - 1] if items else 0.0
        self._floors = trust * last - _MARGIN * SPREADS

    def meetings(
        self, roots: list[int], played: list[tuple[int, int, bool]]
    ) -> list[tuple[int, int]]:
        """The two weakest, and every next two that are weaker than any winner so far would be."""
        # One array for both: to make a second one takes as long as all the rest.
        events = np.array([*roots, *chain.from_iterable(played)])
        pairs = _meetings(
            self._means, self._variances, self._evidence, self._floors, events, len(roots)
        )
        return [(first, second) for first, second in pairs.tolist()]


def quantiles(items: int) -> Doubles:
    """The standard normal quantile of each position in a ranking, best first.

    Example:
        >>> quantiles(3).round(2).tolist()
        [0.97, 0.0, -0.97]
    """
    positions: Doubles = ndtri(1 - (np.arange(items) + 0.5) / max(items, 1))
    return positions


@kernel
def _learn(
    means: Doubles, variances: Doubles, evidence: Doubles, won: int, lost: int, tie: bool
) -> None:
    """The winner is stronger than was thought, and hypotheses gain that expected it to be."""
    for hypothesis in range(len(evidence)):
        variance = variances[won, hypothesis]
        total = variance + variances[lost, hypothesis]
        scale = math.sqrt(total)
        lead = (means[won, hypothesis] - means[lost, hypothesis]) / scale
        chance = 0.5 * math.erfc(-lead / math.sqrt(2))
        if not tie:
            # People err: no single match may rule out a hypothesis completely.
            surprise = math.log(chance) if chance > 0 else _WORST_SURPRISE
            evidence[hypothesis] += max(surprise, _WORST_SURPRISE)
        push = _push(lead, chance)
        means[won, hypothesis] += variance / scale * push
        shrink = variance / total * push * (push + lead)
        variances[won, hypothesis] = max(variance * (1 - shrink), 1e-12)


@kernel
def _push(lead: float, chance: float) -> float:
    """The mean of a standard normal variable given that it is above ``-lead``."""
    if chance < 1e-14:
        return -lead
    return math.exp(-lead * lead / 2) / math.sqrt(2 * math.pi) / chance


@kernel
def _meetings(
    means: Doubles,
    variances: Doubles,
    evidence: Doubles,
    floors: Doubles,
    events: Ints,
    count_roots: int,
) -> Ints:
    roots = events[:count_roots]
    for index in range(count_roots, len(events), 3):
        _learn(means, variances, evidence, events[index], events[index + 1], events[index + 2] != 0)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    strengths = np.empty(len(roots))
    for index in range(len(roots)):
        strength = 0.0
        for hypothesis in range(len(weights)):
            strength += weights[hypothesis] * max(
                means[roots[index], hypothesis], floors[hypothesis]
            )
        # Rounded, so that equals are equal on every machine and a replay asks the same pairs.
        strengths[index] = np.floor(strength * _DECIMALS + 0.5)
    ranked = np.argsort(strengths, kind="mergesort")
    pairs = np.empty((len(roots) // 2, 2), np.int64)
    count = 0
    weakest_winner = np.inf
    while 2 * count + 1 < len(ranked) and strengths[ranked[2 * count + 1]] <= weakest_winner:
        one, other = roots[ranked[2 * count]], roots[ranked[2 * count + 1]]
        pairs[count] = min(one, other), max(one, other)
        count += 1
        winner = 0.0
        for hypothesis in range(len(weights)):
            ahead, behind = one, other
            if means[one, hypothesis] < means[other, hypothesis]:
                ahead, behind = other, one
            scale = math.sqrt(variances[one, hypothesis] + variances[other, hypothesis])
            lead = (means[ahead, hypothesis] - means[behind, hypothesis]) / scale
            push = _push(lead, 0.5 * math.erfc(-lead / math.sqrt(2)))
            winner += weights[hypothesis] * max(
                means[ahead, hypothesis] + variances[ahead, hypothesis] / scale * push,
                floors[hypothesis],
            )
        weakest_winner = min(weakest_winner, np.floor(winner * _DECIMALS + 0.5))
    return pairs[:count]
