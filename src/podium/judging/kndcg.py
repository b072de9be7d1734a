"""How good a top k is if the truth is known: κ-NDCG@k of Niu et al. 2012."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from podium.data.gains import exponential_gains, log2_discounts
from podium.kernels import Doubles, Ints


def discounts(items: int, k: int) -> Doubles:
    """1 / log2(1 + position) for the first k positions, 0 below."""
    positions = np.arange(items)
    return np.where(positions < k, log2_discounts(1 + positions), 0.0)


def rank_gains(items: int, k: int) -> Doubles:
    """The gain of each position of the true order, as a share of 2^k so that no k overflows.

    It is 2^label - 1, where labels are k, k - 1, …, 1 and 0 below.

    Example:
        >>> (rank_gains(4, k=2) * 2**2).tolist()
        [3.0, 1.0, 0.0, 0.0]
    """
    positions = np.arange(float(items))
    return np.where(positions < k, exponential_gains(k - positions, float(k)), 0.0)


def k_ndcg(top: Sequence[int] | Ints, relevance: ArrayLike, k: int) -> float:
    """κ-NDCG@k of a ranking of items against their true relevance.

    Example:
        >>> relevance = [3.0, 2.0, 1.0, 0.0]
        >>> k_ndcg([0, 1], relevance, k=2)
        1.0
        >>> round(k_ndcg([1, 0], relevance, k=2), 3)
        0.797
    """
    truth = np.asarray(relevance, float)
    best = np.argsort(-truth, kind="stable")[:k]
    gains = np.zeros(len(truth))
    gains[best] = rank_gains(len(best), k)
    chosen = gains[np.asarray(top, np.int64)[:k]]
    return float(chosen @ discounts(len(chosen), k) / (gains[best] @ discounts(len(best), k)))
