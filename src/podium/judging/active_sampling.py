"""Choose the next pair when judges err: the one whose order matters most and is least certain.

The result is evaluated by κ-NDCG@k, so items are ranked by their expected gain. If item i is
ranked above j and the true order is the opposite, the expected cost is
(discount of i - discount of j) E max(gain of j - gain of i, 0). This times the information that a
verdict on the pair brings, p (1 - p) var(w_i - w_j), is the value of asking it.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from podium.judging.algorithms.selection import Pair
from podium.judging.bradley_terry import Posterior
from podium.judging.kndcg import discounts, rank_gains
from podium.kernels import Doubles, Ints, kernel

_DRAWS = 64
_NODES, _WEIGHTS = hermegauss(20)
"""Points of the integral over an item's strength: 20 have the gains to a thousandth, 32 to 1e-5."""

_MOST_RANKS = 64
"""Ranks that have a gain in an expectation: one further down has 2^-64 of the first one's."""

_OUTSIDERS = 8
"""How many items below the top k may be asked about; the next ones replace those that lose."""


def expected_gains(
    posterior: Posterior,
    k: int,
    *,
    out: Collection[int] = (),
    draws: int | None = None,
    random_state: int = 0,
) -> Doubles:
    """The expected gain of each item, one row each, or its gain in draws from the posterior.

    The expectation has no noise. It is an integral over the item's strength, given which the others
    are taken to be independent; what all strengths have in common changes no rank and is left out,
    and with it most of what they depend on each other.

    Args:
        posterior: The posterior of the items' strengths.
        k: How many items have a gain.
        out: Items without a gain.
        draws: How many draws, one per column; by default one column with the expectation.
        random_state: The random seed of the draws.

    Example:
        >>> from podium.judging.bradley_terry import Duels, fit_bradley_terry
        >>> posterior = fit_bradley_terry(2, Duels.of([(0, 1, 1, 0)] * 20))
        >>> expected_gains(posterior, k=1).round(2).tolist()
        [[0.5], [0.0]]
    """
    if draws is None:
        return _expectations(posterior, k, np.setdiff1d(np.arange(len(posterior.means)), list(out)))
    drawn = posterior.draws(draws, random_state)
    drawn[list(out)] = -np.inf
    order = np.argsort(-drawn, axis=0)
    gains = np.empty_like(drawn)
    np.put_along_axis(gains, order, rank_gains(len(drawn), k)[:, None], axis=0)
    return gains


def _expectations(posterior: Posterior, k: int, items: Ints) -> Doubles:
    # Strong items first: after k that are surely ahead, an item has no gain.
    items = items[np.argsort(-posterior.means[items], kind="stable")]
    covariance = posterior.covariance(items)
    count = len(items)
    if count > 2:
        # Any number could be subtracted from all strengths: the one that leaves each item
        # uncorrelated with the others on average. Variances stay positive, because those of
        # differences are resistances in the graph of verdicts, for which the triangle inequality
        # holds.
        rows = covariance.sum(axis=1) - covariance.diagonal()
        shared = (rows - rows.sum() / (2 * (count - 1))) / (count - 2)
        covariance = covariance - shared[:, None] - shared
    gains = rank_gains(count, k)[: min(k, _MOST_RANKS)]
    expected = np.zeros((len(posterior.means), 1))
    expected[items, 0] = _integrals(
        posterior.means[items], covariance, gains, _NODES, _WEIGHTS / _WEIGHTS.sum()
    )
    return expected


@kernel
def _integrals(
    means: Doubles, covariance: Doubles, gains: Doubles, nodes: Doubles, weights: Doubles
) -> Doubles:
    """The expected gain of each item, whose ranks have a Poisson binomial distribution."""
    totals = np.zeros(len(means))
    for item in range(len(means)):
        deviation = math.sqrt(covariance[item, item])
        for number in range(len(nodes)):
            node = nodes[number]
            chances = np.zeros(len(gains))  # of each rank
            chances[0] = 1.0
            ahead = 0
            for other in range(len(means)):
                if other == item:
                    continue
                shift = covariance[other, item] / deviation
                # Where what is left is not a covariance: no other is all but a copy of the item.
                variance = max(
                    covariance[other, other] - shift * shift, 0.01 * covariance[other, other]
                )
                lead = means[item] - means[other] + (deviation - shift) * node
                chance = 0.5 * math.erfc(lead / math.sqrt(2 * variance))
                if chance == 0:
                    continue
                ahead = min(ahead + 1, len(gains) - 1)
                for rank in range(ahead, 0, -1):
                    chances[rank] += chance * (chances[rank - 1] - chances[rank])
                chances[0] *= 1 - chance
                if chance > 0.5 and chances.sum() < 1e-12:
                    break
            totals[item] += weights[number] * (chances * gains).sum()
    return totals


def by_expected_gain(gains: Doubles) -> Ints:
    """Items by their mean gain, best first: the ranking with the best expected κ-NDCG.

    Example:
        >>> by_expected_gain(np.array([[0.0, 1.0], [3.0, 0.0]])).tolist()
        [1, 0]
    """
    return np.argsort(-gains.mean(axis=1), kind="stable")


def most_informative_pairs(
    posterior: Posterior,
    k: int,
    *,
    count: int = 1,
    without: Collection[tuple[int, int]] = (),
    out: Collection[int] = (),
    random_state: int = 0,
) -> list[Pair[int]]:
    """The most informative pairs to judge next, no item in two of them.

    They are among the top k and the few items next to it. Only if none of those pairs is left are
    items further down considered, and finally all other pairs.

    Args:
        posterior: The posterior of the items' strengths.
        k: How many items matter.
        count: How many pairs to return at most.
        without: Pairs that are not to be asked.
        out: Items that are not to be asked about.
        random_state: The random seed of the draws from the posterior.

    Example:
        >>> from podium.judging.bradley_terry import Duels, fit_bradley_terry
        >>> rows = [(0, 2, 1, 0), (0, 3, 1, 0), (1, 2, 1, 0), (1, 3, 1, 0)]
        >>> sorted(most_informative_pairs(fit_bradley_terry(4, Duels.of(rows)), k=1)[0])
        [0, 1]
    """
    gains = expected_gains(posterior, k, out=out, draws=_DRAWS, random_state=random_state)
    ranked = [item for item in by_expected_gain(gains).tolist() if item not in out]
    if len(ranked) < 2:
        return []
    asked = {pair for one, other in without for pair in [(one, other), (other, one)]}
    # First pairs that the draws show may be wrong in the top k, then the most informative ones.
    for rows, drawn in ((k, gains), (len(ranked), None)):
        size = k + _OUTSIDERS
        while True:
            near = np.array(ranked[:size], np.int64)
            pairs = _best_pairs(near, _values(posterior, drawn, near, rows, asked), count)
            if pairs or size >= len(ranked):
                break
            size *= 2
        if pairs:
            break
    return pairs


def _values(
    posterior: Posterior,
    gains: Doubles | None,
    near: Ints,
    k: int,
    asked: Collection[tuple[int, int]],
) -> Doubles:
    """The value of a verdict on each pair of some items, which are ranked best first.

    One row per item of the top k, one column per item: the order of two items below costs nothing.
    Without gains, every order is taken to be equally likely to be wrong.
    """
    top = near[:k]
    weights = discounts(len(near), k)
    loss = np.subtract.outer(weights[: len(top)], weights)
    if gains is not None:
        loss *= [np.maximum(gains[near] - gains[one], 0).mean(axis=1) for one in top]
    covariance = posterior.covariance(near)
    variance = np.diag(covariance)
    apart = np.add.outer(variance[: len(top)], variance) - 2 * covariance[: len(top)]
    chance = 1 / (1 + np.exp(-np.subtract.outer(posterior.means[top], posterior.means[near])))
    fresh = [[(one, other) not in asked for other in near.tolist()] for one in top.tolist()]
    return np.triu(loss * chance * (1 - chance) * apart * fresh, 1)


def _best_pairs(near: Ints, value: Doubles, count: int) -> list[Pair[int]]:
    """The pairs of the largest values, no item in two of them."""
    pairs: list[Pair[int]] = []
    while len(pairs) < count and value.max(initial=0) > 0:
        one, other = np.unravel_index(int(value.argmax()), value.shape)
        pairs.append(Pair(int(near[one]), int(near[other])))
        for item in (one, other):
            value[item : item + 1] = 0  # an item below the top k has no row
            value[:, item] = 0
    return pairs
