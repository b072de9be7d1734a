"""How good a top k is if the truth is known: κ-NDCG@k of Niu et al. 2012."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def k_ndcg(top: Sequence[int] | NDArray[np.int64], relevance: ArrayLike, k: int) -> float:
    """κ-NDCG@k of a ranking of items 0, 1, … against their true relevance.

    Podium's ``kNDCG`` measures the same on label arrays; simulations call this for one short
    ranking at a time, tens of thousands of times.

    Example:
        >>> k_ndcg([0, 1], [3.0, 2.0, 1.0, 0.0], k=2)
        1.0
        >>> round(k_ndcg([1, 0], [3.0, 2.0, 1.0, 0.0], k=2), 3)
        0.797
    """
    truth = np.asarray(relevance, float)
    best = np.argsort(-truth, kind="stable")[:k]
    gains = np.zeros(len(truth))
    gains[best] = np.exp2(k - np.arange(len(best))) - 1
    discounts = 1 / np.log2(2 + np.arange(k))
    chosen = gains[np.asarray(top, np.int64)[:k]]
    return float(chosen @ discounts[: len(chosen)] / (gains[best] @ discounts[: len(best)]))
