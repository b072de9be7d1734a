"""The preset ``letor4`` against what LETOR 4.0's Eval-Score-4.0.pl computes, written out here."""

import math

import numpy as np
import pytest
from hypothesis import given

from podium.kernels import Floats
from podium.measures import evaluate
from tests.measures.queries import Arrays, arrays, each, mq2008

NAMES = [*(f"P@{k}" for k in range(1, 11)), "MAP", *(f"NDCG@{k}" for k in range(1, 11))]


def script(labels: Floats, scores: Floats) -> list[float]:
    """One query's P@1 to P@10, MAP, and NDCG@1 to NDCG@10."""
    order = sorted(range(len(labels)), key=lambda row: -scores[row])  # stable, as Perl's sort
    ranked = [int(labels[row]) for row in order]
    padded = [*ranked, *[0] * 10]
    precisions = [sum(label >= 1 for label in padded[:k]) / k for k in range(1, 11)]
    result = [index for index, label in enumerate(ranked, start=1) if label >= 1]
    mean = sum(hits / index for hits, index in enumerate(result, start=1)) / max(len(result), 1)
    best = sorted(ranked, reverse=True)
    shares = [_dcg(ranked, k) / _dcg(best, k) if _dcg(best, k) else 0.0 for k in range(1, 11)]
    # The script has an NDCG for each document, and prints 0 for those it does not have.
    return [
        *precisions,
        mean,
        *(share if k <= len(ranked) else 0.0 for k, share in enumerate(shares, start=1)),
    ]


def _dcg(labels: list[int], k: int) -> float:
    discounts = [1.0, 1.0, *(math.log(2) / math.log(rank) for rank in range(3, 11))]
    gains = [2**label - 1 for label in labels[:k]]
    return sum(gain * discount for gain, discount in zip(gains, discounts, strict=False))


def check(queries: Arrays) -> None:
    labels, scores, group = queries
    result = evaluate(NAMES, labels, scores, group=group, conventions="letor4")
    values = np.array([result[name] for name in NAMES]).T
    for own, (truth, ranking) in zip(values, each(queries), strict=True):
        assert own == pytest.approx(np.array(script(truth, ranking)), abs=1e-9)


@given(arrays(highest=2))
def test_any_queries(queries: Arrays) -> None:
    check(queries)


@pytest.mark.parametrize("feature", [11, 24, 46])
def test_real_features(feature: int) -> None:
    queries = mq2008(feature)
    assert (queries[2] < 10).any()
    check(queries)
