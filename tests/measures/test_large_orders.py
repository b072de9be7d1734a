"""Top-k and full orders as the truth: exact for any k, and bounds of the papers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data.labels import from_ranks
from podium.measures import evaluate


def exact_kndcg(true_ranks: list[int], k: int, cut: int) -> float:
    """In rational gains; discounts are irrational, so sums are taken per discount."""
    labels = [max(0, k + 1 - rank) for rank in true_ranks]
    highest = max(labels)

    def total(ordered: list[int]) -> float:
        return math.fsum(
            float(Fraction(2**label - 1, 2**highest)) / math.log2(1 + index)
            for index, label in enumerate(ordered[:cut], start=1)
        )

    return total(labels) / total(sorted(labels, reverse=True))


def exact_kerr(true_ranks: list[int], k: int) -> float:
    looking, total = Fraction(1), Fraction(0)
    for index, rank in enumerate(true_ranks, start=1):
        chance = Fraction(2 ** max(0, k + 1 - rank) - 1, 2**k)
        total += looking * chance / index
        looking *= 1 - chance
    return float(total)


@given(st.permutations(range(1, 31)), st.sampled_from([1, 2, 10, 30, 60]), st.integers(1, 30))
def test_kappa_measures_are_exact(true_ranks: list[int], k: int, cut: int) -> None:
    """``true_ranks[i]`` is the true rank of the document ranked i-th."""
    for truth in (from_ranks(np.array(true_ranks), k=k), 31 - np.array(true_ranks)):
        result = evaluate(
            [f"kNDCG(k={k})@{cut}", f"kERR(k={k})"],
            truth,  # a top-k order, and the full order it is part of
            -np.arange(30),
            group=[30],
        )
        one, other = (float(values[0]) for values in result.values.values())
        assert one == pytest.approx(exact_kndcg(true_ranks, k, cut), rel=1e-12)
        assert other == pytest.approx(exact_kerr(true_ranks, k), rel=1e-9)


@pytest.mark.parametrize("size", [1000, 1023, 1024, 1025, 2500])
def test_full_orders_do_not_overflow(size: int) -> None:
    generator = np.random.default_rng(size)
    true_ranks = (generator.permutation(size) + 1).tolist()
    labels = size + 1 - np.array(true_ranks)
    names = ["nDCG@10", "nDCG", f"kNDCG(k={size})@10", f"kERR(k={size})", "ERR@20", "WKT(k=20)"]
    result = evaluate(names, labels, -np.arange(size), group=[size])
    assert result["nDCG@10"][0] == pytest.approx(exact_kndcg(true_ranks, size, 10), rel=1e-12)
    assert result[f"kNDCG(k={size})@10"][0] == result["nDCG@10"][0]
    assert result["nDCG"][0] == pytest.approx(exact_kndcg(true_ranks, size, size), rel=1e-12)
    assert np.isfinite([values[0] for values in result.values.values()]).all()
    assert result["ERR@20"][0] > 0
    perfect = evaluate(names, labels, labels, group=[size])
    assert perfect["nDCG"][0] == pytest.approx(1)
    assert perfect["WKT(k=20)"][0] == 0


@given(st.permutations(range(12)), st.integers(1, 12))
def test_wkt_bounds_ndcg(order: list[int], k: int) -> None:
    """Lan et al. 2013, theorem 1: 1 - NDCG@k is at most the weighted Kendall's tau."""
    result = evaluate([f"WKT(k={k})", f"nDCG@{k}"], order, -np.arange(12), group=[12])
    tau, share = (float(values[0]) for values in result.values.values())
    assert 1 - share <= tau + 1e-12


@given(st.permutations(range(8)), st.integers(1, 8), st.randoms(use_true_random=False))
def test_wkt_needs_the_top_k_alone(order: list[int], k: int, random: object) -> None:
    """Lan et al. 2013, lemma 1: all full orders with the same top k have the same loss."""
    full = np.array(order) + 1
    top = np.maximum(full - (8 - k), 0)
    rest = list(range(1, 8 - k + 1))
    random.shuffle(rest)  # type: ignore[attr-defined]
    other = np.where(top > 0, full, 0)
    other[other == 0] = rest
    values = [
        float(
            evaluate(
                f"WKT(k={k}, gains=[0, {', '.join(['1'] * 8)}])",
                labels,
                -np.arange(8),
                group=[8],
            ).means.popitem()[1]
        )
        for labels in (full, other)
    ]
    assert values[0] == pytest.approx(values[1])


@given(st.permutations(range(6)), st.integers(1, 6))
def test_top_k_loss_of_orders(order: list[int], k: int) -> None:
    """Xia et al. 2009, equation 5."""
    result = evaluate(f"TopKLoss(k={k})", order, -np.arange(6), group=[6])
    right = order[:k] == sorted(order, reverse=True)[:k]
    assert result.means.popitem()[1] == (0.0 if right else 1.0)
