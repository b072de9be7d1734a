"""Choose the next pair when judges err: the one whose order matters most and is least certain.

The result is evaluated by κ-NDCG@k, so items are ranked by their expected gain. If item i is
ranked above j and the true order is the opposite, the expected cost is
(discount of i - discount of j) E max(gain of j - gain of i, 0). This times the information that a
verdict on the pair brings, p (1 - p) var(w_i - w_j), is the value of asking it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from podium.judging.algorithms.selection import Pair
from podium.judging.bradley_terry import Posterior
from podium.judging.kndcg import discounts, rank_gains
from podium.kernels import Doubles, Ints

_DRAWS = 64
_OUTSIDERS = 8
"""How many items below the top k may be asked about; the next ones replace those that lose."""


def expected_gains(
    posterior: Posterior, k: int, *, out: Collection[int] = (), draws: int = 256, seed: int = 0
) -> Doubles:
    """The gain of each item in draws from the posterior: one row per item.

    Args:
        posterior: The posterior of the items' strengths.
        k: How many items have a gain.
        out: Items without a gain.
        draws: How many draws, one per column.
        seed: The random seed of the draws.

    Example:
        >>> from podium.judging import Comparisons, fit_bradley_terry
        >>> posterior = fit_bradley_terry(2, Comparisons.of([(0, 1, 1, 0)] * 20))
        >>> expected_gains(posterior, k=1, draws=100).shape
        (2, 100)
    """
    drawn = posterior.draws(draws, seed)
    drawn[list(out)] = -np.inf
    order = np.argsort(-drawn, axis=0)
    gains = np.empty_like(drawn)
    np.put_along_axis(gains, order, rank_gains(len(drawn), k)[:, None], axis=0)
    return gains


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
    seed: int = 0,
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
        seed: The random seed of the draws from the posterior.

    Example:
        >>> from podium.judging.bradley_terry import Comparisons, fit_bradley_terry
        >>> rows = [(0, 2, 1, 0), (0, 3, 1, 0), (1, 2, 1, 0), (1, 3, 1, 0)]
        >>> sorted(most_informative_pairs(fit_bradley_terry(4, Comparisons.of(rows)), k=1)[0])
        [0, 1]
    """
    gains = expected_gains(posterior, k, out=out, draws=_DRAWS, seed=seed)
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
