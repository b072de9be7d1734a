"""What must not change a loss: shifts, the order of rows, other queries, ties, other labels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.losses import (
    Focused,
    ListMLE,
    Loss,
    PairExponential,
    PairHinge,
    PairLogistic,
    RankCosine,
    StructuralHinge,
)
from podium.losses.compiled import PairLoss
from tests.losses.cases import LOSSES, PAIRS, Query, one_query, queries

FEW = settings(max_examples=25)
ORDER_ONLY = [
    *PAIRS,
    *(ListMLE(k=k) for k in (None, 1, 3)),
    *(StructuralHinge("ap", scaling, 2) for scaling in ("margin", "slack")),
    *(StructuralHinge("precision", scaling, 2) for scaling in ("margin", "slack")),
    Focused(ListMLE(), PairLogistic(), k=2),
]
SMALL = {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if not isinstance(loss, RankCosine)], ids=repr
)
@FEW
@given(query=queries(), shift=st.integers(-1000, 1000))
def test_shifting_all_scores_changes_nothing(loss: Loss, query: Query, shift: int) -> None:
    scores, labels = query
    here, there = one_query(loss, scores, labels), one_query(loss, scores + shift, labels)
    np.testing.assert_allclose(there.total, here.total, **SMALL)
    np.testing.assert_allclose(there.gradient, here.gradient, **SMALL)
    assert abs(here.gradient.sum()) <= 1e-9 * (1 + np.abs(here.gradient).sum())


@FEW
@given(query=queries(), factor=st.floats(1e-3, 1e3))
def test_scaling_all_scores_does_not_change_rank_cosine(query: Query, factor: float) -> None:
    scores, labels = query
    if np.any(scores):
        one, other = (
            one_query(RankCosine(), scores, labels),
            one_query(RankCosine(), factor * scores, labels),
        )
        assert one.total == pytest.approx(other.total)
        np.testing.assert_allclose(one.gradient, factor * other.gradient, **SMALL)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@FEW
@given(query=queries(), data=st.data())
def test_the_order_of_rows_does_not_matter(loss: Loss, query: Query, data: st.DataObject) -> None:
    scores, labels = query
    moved = np.array(data.draw(st.permutations(range(len(scores)))))
    here, there = one_query(loss, scores, labels), one_query(loss, scores[moved], labels[moved])
    for one, other in zip(here[1:], there[1:], strict=True):
        np.testing.assert_allclose(one[moved], other, **SMALL)
    np.testing.assert_allclose(there.total, here.total, **SMALL)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@FEW
@given(many=st.lists(queries(ties=True), min_size=1, max_size=5))
def test_queries_add_up(loss: Loss, many: list[Query]) -> None:
    alone = [one_query(loss, *query) for query in many]
    scores, labels = (np.concatenate(columns) for columns in zip(*many, strict=True))
    offsets = np.cumsum([0, *(len(query[0]) for query in many)])
    together = loss.evaluate(scores, labels, offsets)
    np.testing.assert_array_equal(together.values, [one.total for one in alone])
    np.testing.assert_array_equal(together.gradient, np.concatenate([one[1] for one in alone]))
    np.testing.assert_array_equal(together.curvature, np.concatenate([one[2] for one in alone]))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@FEW
@given(query=queries(ties=True), label=st.integers(0, 4))
def test_equal_labels_ask_for_nothing(loss: Loss, query: Query, label: int) -> None:
    scores, _ = query
    result = one_query(loss, scores, np.full(len(scores), label))
    assert result.total == 0
    assert not np.any(result.gradient)
    assert not np.any(result.curvature)


@pytest.mark.parametrize("loss", ORDER_ONLY, ids=repr)
@FEW
@given(query=queries(ties=True))
def test_only_the_order_of_labels_matters(loss: Loss, query: Query) -> None:
    scores, labels = query
    here = one_query(loss, scores, labels)
    for other in (labels + 7, 1000 * labels, np.exp(labels) - 3, labels**3 - 50):
        there = one_query(loss, scores, other)
        for one, another in zip(here, there, strict=True):
            np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@FEW
@given(query=queries())
def test_shifting_all_labels_changes_nothing_but_gains(loss: Loss, query: Query) -> None:
    scores, labels = query
    if "ndcg" in repr(loss) or "Lambda" in repr(loss):
        return  # NDCG's gains are not relative
    for one, other in zip(
        one_query(loss, scores, labels), one_query(loss, scores, labels + 3), strict=True
    ):
        np.testing.assert_allclose(one, other, **SMALL)


@pytest.mark.parametrize("kind", [PairHinge, PairLogistic, PairExponential, ListMLE])
@FEW
@given(query=queries(ties=True), k=st.integers(1, 8))
def test_top_k_losses_are_full_losses_of_top_k_labels(
    kind: type[PairLoss], query: Query, k: int
) -> None:
    """And never larger than full losses of the labels themselves (Lan et al. 2013, 5.1)."""
    scores, labels = query
    worse = np.array([sum(labels > label) >= k for label in labels])
    cut = np.where(worse, labels.min(), labels)
    top_k, full = one_query(kind(k=k), scores, labels), one_query(kind(), scores, cut)
    for one, other in zip(top_k, full, strict=True):
        np.testing.assert_allclose(one, other, **SMALL)
    assert top_k.total <= one_query(kind(), scores, labels).total * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scale", [1e4, 1e2, 1e-4, 1e-200])
def test_nothing_overflows(loss: Loss, scale: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        labels = random.integers(0, 5, 8).astype(float)
        scores = scale * random.choice([-1.0, -0.3, 0.0, 0.999, 1.0], 8)
        for array in one_query(loss, scores, labels):
            assert np.all(np.isfinite(array))
            assert np.all(np.isfinite(array.astype(np.float32)))


def test_losses_are_right_where_scores_are_extreme() -> None:
    far = 2e4
    scores, labels = np.array([-1e4, 1e4]), np.array([1.0, 0.0])
    assert one_query(PairLogistic(), scores, labels).total == far
    assert one_query(ListMLE(), scores, labels).total == far
    assert one_query(PairHinge(), scores, labels).total == far + 1
    assert one_query(PairExponential(), scores, labels).total == pytest.approx(
        math.exp(50) * (far - 49)
    )
    for loss in (PairLogistic(), ListMLE(), PairHinge()):
        np.testing.assert_array_equal(one_query(loss, scores, labels).gradient, [-1, 1])
        right = one_query(loss, -scores, labels)
        assert right.total == 0
        assert not np.any(right.gradient)


def test_a_few_far_documents_do_not_hide_differences_among_the_others() -> None:
    """Sums relative to the largest score would lose documents e^-10000 below it."""
    scores = np.array([1e4, 2.0, 1.0, -1e4, -1e4 + 1])
    labels = np.array([5.0, 4, 3, 2, 1])
    close = math.log(1 + math.exp(-1)), math.log(1 + math.exp(1))
    assert one_query(ListMLE(), scores, labels).total == pytest.approx(sum(close))
    assert one_query(PairLogistic(), scores, labels).total == pytest.approx(sum(close))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_labels_may_be_large(loss: Loss) -> None:
    if "gains=(" in repr(loss) or "table=((" in repr(loss):
        return
    random = np.random.default_rng(1)
    size = 12
    scores = random.normal(size=size)
    for labels in (990.0 + random.permutation(size), 1e6 * random.permutation(size)):
        result = one_query(loss, scores, labels)
        assert result.total > 0
        assert all(np.all(np.isfinite(array)) for array in result)
