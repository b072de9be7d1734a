"""Values against the formulas of the papers, by brute force."""

import math
from itertools import permutations

import numpy as np
import pytest

from podium.errors import PodiumError
from podium.kernels import Doubles
from podium.losses import (
    Focused,
    LambdaLoss,
    ListMLE,
    ListNet,
    PairExponential,
    PairHinge,
    PairLogistic,
    PairRounded,
    RankCosine,
    SquaredError,
)
from podium.losses.compiled import PairLoss
from tests.losses.cases import one_query, random_query, strict_query, top


def _rounded(short: float, width: float) -> float:
    return short - width / 2 if short > width else max(short, 0.0) ** 2 / (2 * width)


KS = [None, 1, 2, 4, 20]
PHI = {
    PairHinge: lambda lead: max(0.0, 1 - lead),
    PairLogistic: lambda lead: math.log(1 + math.exp(-lead)),
    PairExponential: lambda lead: math.exp(-lead),
    PairRounded: lambda lead: _rounded(1 - lead, 0.1),
}


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("kind", PHI)
def test_pair_losses_are_sums_over_pairs_of_a_top_document(
    kind: type[PairLoss], k: int | None
) -> None:
    random = np.random.default_rng(0)
    phi = PHI[kind]
    for _ in range(50):
        scores, labels = random_query(random)
        best = top(labels, k)
        pairs = [(i, j) for i in best for j in range(len(labels)) if labels[i] > labels[j]]
        across = [(i, j) for i, j in pairs if j not in best]
        expected = sum(phi(scores[i] - scores[j]) for i, j in pairs)
        assert one_query(kind(k=k), scores, labels).total == pytest.approx(expected)
        expected = sum(phi(scores[i] - scores[j]) for i, j in across)
        assert one_query(kind(k=k, pairs="across"), scores, labels).total == pytest.approx(expected)


@pytest.mark.parametrize("k", KS)
def test_the_scaled_hinge_multiplies_by_the_difference_of_labels(k: int | None) -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        scores, labels = random_query(random)
        expected = sum(
            max(0.0, 1 - (labels[i] - labels[j]) * (scores[i] - scores[j]))
            for i in top(labels, k)
            for j in range(len(labels))
            if labels[i] > labels[j]
        )
        assert one_query(PairHinge(k, scaled=True), scores, labels).total == pytest.approx(expected)


@pytest.mark.parametrize("hinge", [PairHinge(), PairHinge(k=2), PairHinge(k=3, pairs="across")])
@pytest.mark.parametrize("width", [0.01, 0.5, 5.0])
def test_rounded_hinges_are_close_and_their_planes_are_below(
    hinge: PairHinge, width: float
) -> None:
    random = np.random.default_rng(1)
    stand_ins = hinge.rounded(width)
    assert stand_ins is not None
    smooth, plane = stand_ins
    assert smooth.smooth
    for _ in range(50):
        scores, labels = random_query(random)
        near, below = one_query(smooth, scores, labels), one_query(plane, scores, labels)
        best = top(labels, hinge.k)
        pairs = [
            (i, j)
            for i in best
            for j in range(len(labels))
            if labels[i] > labels[j] and not (hinge.pairs == "across" and j in best)
        ]
        short = [1 - (scores[i] - scores[j]) for i, j in pairs]
        rounded = sum(_rounded(each, width) for each in short)
        assert near.total == pytest.approx(rounded, abs=1e-12)
        slopes = [min(max(each, 0.0) / width, 1.0) for each in short]
        assert below.total == pytest.approx(np.dot(slopes, short), abs=1e-12)
        np.testing.assert_array_equal(below.gradient, near.gradient)
        for _ in range(5):
            other = random.normal(size=len(scores))
            reached = below.total + below.gradient @ (other - scores)
            assert one_query(hinge, other, labels).total >= reached - 1e-9


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("across", [False, True])
def test_curvatures_that_stand_in_for_the_true_one(k: int | None, across: bool) -> None:
    """Hinges have no curvature of their own: each violated pair adds to both of its documents."""
    random = np.random.default_rng(9)
    for _ in range(50):
        scores, labels = random_query(random)
        best = top(labels, k)
        hinge, scaled, rounded = np.zeros((3, len(scores)))
        for i in best:
            for j in range(len(labels)):
                if labels[i] <= labels[j] or (across and j in best):
                    continue
                lead, grades = scores[i] - scores[j], labels[i] - labels[j]
                for row in (i, j):
                    hinge[row] += lead < 1
                    scaled[row] += grades**2 * (grades * lead < 1)
                    rounded[row] += (lead < 1) / max(1 - lead, 0.3)
        pairs = "across" if across else "all"
        for loss, expected in (
            (PairHinge(k, pairs), hinge),
            (PairHinge(k, pairs, scaled=True), scaled),
            (PairRounded(k, pairs, width=0.3), rounded),
        ):
            np.testing.assert_allclose(one_query(loss, scores, labels).curvature, expected)


def test_losses_without_a_rounded_form_say_so() -> None:
    assert PairHinge(scaled=True).rounded(0.1) is None
    assert ListMLE().rounded(0.1) is None
    with pytest.raises(PodiumError, match="width is 0"):
        PairRounded(width=0)


@pytest.mark.parametrize("pairs", ["all", "across"])
def test_counting_hinges_in_order_is_as_looking_at_every_pair(pairs: str) -> None:
    """Above 256 documents in the top, the same pairs are counted by two sweeps."""
    random = np.random.default_rng(2)
    for grades in (700, 5):
        labels = random.integers(0, grades, 800).astype(float)
        scores = np.round(16 * random.normal(size=800)) / 8  # margins of exactly 1 among them
        best = np.array(top(labels, 300))
        assert len(best) >= 300
        below = labels[None, :] < (labels[best].min() if pairs == "across" else labels[best, None])
        violated = below & (scores[best, None] - scores[None, :] < 1)
        gradient = violated.sum(axis=0).astype(float)
        gradient[best] -= violated.sum(axis=1)
        loss = one_query(PairHinge(k=300, pairs=pairs), scores, labels)
        np.testing.assert_allclose(loss.gradient, gradient)
        lost = (1 - (scores[best, None] - scores[None, :])) * violated
        assert loss.total == pytest.approx(lost.sum())
        assert loss.curvature.sum() == pytest.approx(2 * violated.sum())


@pytest.mark.parametrize("k", KS)
def test_list_mle_is_the_likelihood_of_the_first_k_draws(k: int | None) -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        scores, labels = strict_query(random, int(random.integers(1, 9)))
        drawn = scores[np.argsort(-labels)]
        draws = len(drawn) if k is None else min(k, len(drawn))
        chances = [math.exp(drawn[i]) / sum(np.exp(drawn[i:])) for i in range(draws)]
        value = one_query(ListMLE(k=k), scores, labels).total
        assert value == pytest.approx(-math.log(math.prod(chances)), abs=1e-12)


@pytest.mark.parametrize("k", KS)
def test_list_mle_draws_equal_labels_from_themselves_and_those_below(k: int | None) -> None:
    random = np.random.default_rng(4)
    for _ in range(50):
        scores, labels = random_query(random)
        expected = sum(
            math.log(1 + sum(np.exp(scores[labels < labels[i]] - scores[i])))
            for i in top(labels, k)
        )
        assert one_query(ListMLE(k=k), scores, labels).total == pytest.approx(expected)


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_chances_of_all_orders_add_up_to_one(k: int | None) -> None:
    scores = np.array([0.3, -1.0, 2.0, 0.5])
    heads = {order[:k] for order in permutations(range(4))}
    labels = np.zeros((len(heads), 4))
    for query, head in enumerate(heads):
        labels[query, list(head)] = np.arange(len(head), 0, -1)
    values = (
        ListMLE().evaluate(
            np.tile(scores, len(heads)), labels.ravel(), 4 * np.arange(len(heads) + 1)
        )
    ).values
    assert sum(np.exp(-values)) == pytest.approx(1)


def _targets(labels: Doubles, k: int | None) -> Doubles:
    """Labels of the top, above that of the best document below; the rest 0."""
    best = top(labels, k)
    below = [labels[row] for row in range(len(labels)) if row not in best]
    return np.array(
        [labels[row] - max(below) if row in best else 0.0 for row in range(len(labels))]
    )


@pytest.mark.parametrize("k", KS)
def test_list_net_is_the_cross_entropy_of_first_draws(k: int | None) -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        scores, labels = random_query(random)
        targets = np.exp(_targets(labels, k))
        shares = np.exp(scores) / sum(np.exp(scores))
        expected = -sum(targets / sum(targets) * np.log(shares)) if top(labels, k) else 0.0
        assert one_query(ListNet(k=k), scores, labels).total == pytest.approx(expected)


@pytest.mark.parametrize(("size", "k"), [(7, None), (7, 3), (5, 2), (2, None)])
def test_list_net_by_subsets_is_the_sum_over_all_permutations(size: int, k: int | None) -> None:
    random = np.random.default_rng(size)
    scores, labels = strict_query(random, size, scale=1.0)
    asked, drawn = np.exp(_targets(labels, k)), np.exp(scores)

    def chance(weights: Doubles, order: tuple[int, ...]) -> float:
        return math.prod(weights[order[i]] / sum(weights[list(order[i:])]) for i in range(size))

    expected = -sum(
        chance(asked, order) * math.log(chance(drawn, order)) for order in permutations(range(size))
    )
    value = one_query(ListNet(k=k, permutations=True), scores, labels).total
    assert value == pytest.approx(expected)


def test_list_net_by_subsets_takes_twelve_documents_and_any_spread() -> None:
    labels = np.arange(12.0)
    value = one_query(ListNet(permutations=True), np.zeros(12), labels).total
    assert value == pytest.approx(math.log(math.factorial(12)))
    # Labels this far apart ask for one order, so that is ListMLE.
    random = np.random.default_rng(0)
    for spread in (1.0, 1e4):
        scores = random.normal(size=12) * spread
        listed = one_query(ListMLE(), scores, labels)
        netted = one_query(ListNet(permutations=True), scores, 1e3 * labels)
        assert netted.total == pytest.approx(listed.total)
        np.testing.assert_allclose(netted.gradient, listed.gradient, atol=1e-12)
        np.testing.assert_allclose(netted.curvature, listed.curvature, atol=1e-12)


@pytest.mark.parametrize("k", KS)
def test_rank_cosine_is_the_angle_to_the_labels(k: int | None) -> None:
    random = np.random.default_rng(6)
    for _ in range(50):
        scores, labels = random_query(random)
        targets = _targets(labels, k)
        if top(labels, k):
            cosine = targets @ scores / np.linalg.norm(targets) / np.linalg.norm(scores)
            expected = (1 - cosine) / 2
        else:
            expected = 0.0
        assert one_query(RankCosine(k=k), scores, labels).total == pytest.approx(expected)


@pytest.mark.parametrize("k", KS)
def test_squared_error_is_the_variance_of_the_errors(k: int | None) -> None:
    random = np.random.default_rng(7)
    for _ in range(50):
        scores, labels = random_query(random)
        errors = scores - _targets(labels, k)
        expected = len(errors) / 2 * np.var(errors) if top(labels, k) else 0.0
        assert one_query(SquaredError(k=k), scores, labels).total == pytest.approx(expected)


def test_rank_cosine_can_start_from_zero_scores() -> None:
    result = one_query(RankCosine(), [0, 0, 0], [2, 1, 0])
    assert result.total == 0.5
    np.testing.assert_allclose(result.gradient, -0.5 * np.array([2, 1, 0]) / math.sqrt(5))


def _dcg(worth: object, order: list[int]) -> float:
    return sum(worth(position, row) for position, row in enumerate(order, start=1))


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("which", ["exponential", "linear", "by grade", "table"])
def test_lambda_loss_weighs_pairs_by_the_change_of_dcg(which: str, k: int | None) -> None:
    random = np.random.default_rng(7)
    gains, discounts = (0.0, 1.0, 2.5, 3.0, 7.0), (1.0, 0.6, 0.2)
    table = tuple(tuple(np.cumsum(random.random(5))) for _ in range(3))
    loss = {
        "exponential": LambdaLoss(k=k, steepness=1.5),
        "linear": LambdaLoss(gains="linear", k=k, steepness=1.5),
        "by grade": LambdaLoss(gains=gains, discounts=discounts, k=k, steepness=1.5),
        "table": LambdaLoss(table=table, k=k, steepness=1.5),
    }[which]
    for _ in range(20):
        scores, labels = random_query(random)
        rows = range(len(labels))

        def worth(position: int, row: int, labels: Doubles = labels) -> float:
            grade = int(labels[row])
            if k is not None and position > k:
                return 0.0
            if which == "exponential":
                return (2.0**grade - 1) / math.log2(1 + position)
            if which == "linear":
                return grade / math.log2(1 + position)
            if position > 3:
                return 0.0
            if which == "table":
                return table[position - 1][grade] - table[position - 1][0]
            return gains[grade] * discounts[position - 1]

        order = sorted(rows, key=lambda row: -scores[row])
        ideal = _dcg(worth, sorted(rows, key=lambda row: -labels[row]))
        expected = 0.0
        for better in rows:
            for worse in rows:
                if labels[better] > labels[worse]:
                    swapped = [{better: worse, worse: better}.get(row, row) for row in order]
                    weight = abs(_dcg(worth, order) - _dcg(worth, swapped)) / ideal
                    lead = 1.5 * (scores[better] - scores[worse])
                    expected += weight * math.log(1 + math.exp(-lead))
        assert one_query(loss, scores, labels).total == pytest.approx(expected)


def test_lambda_loss_puts_the_worse_document_first_where_scores_are_equal() -> None:
    """So it costs as much as if the worse one were just ahead, whatever the order of rows."""
    loss = LambdaLoss(k=1)
    ahead = one_query(loss, [0, 1e-12, 0], [2, 0, 1]).total
    assert one_query(loss, [0, 0, 0], [2, 0, 1]).total == pytest.approx(ahead)
    assert one_query(loss, [0, 0, 0], [1, 2, 0]).total == pytest.approx(ahead)


@pytest.mark.parametrize("pair", [PairHinge(scaled=True), PairLogistic(), PairExponential()])
@pytest.mark.parametrize("listed", [ListMLE(), ListNet(), ListNet(permutations=True), RankCosine()])
def test_focused_is_a_list_loss_of_the_top_and_a_pair_loss_across(
    listed: ListMLE, pair: PairLoss
) -> None:
    random = np.random.default_rng(8)
    across = type(pair)(**{**vars(pair), "k": 3, "pairs": "across"})
    for _ in range(30):
        scores, labels = random_query(random)
        best = top(labels, 3)
        pairs = len(best) * (len(labels) - len(best))
        expected = 0.0
        if pairs:
            expected += 0.7 * one_query(across, scores, labels).total / pairs
        if len(set(labels[best])) > 1:
            scale = one_query(listed, 0 * scores[best], labels[best]).total
            expected += 0.3 * one_query(listed, scores[best], labels[best]).total / scale
        loss = Focused(listed, pair, beta=0.3, k=3)
        assert one_query(loss, scores, labels).total == pytest.approx(expected)


def test_focused_gives_other_losses_the_top_as_labels() -> None:
    random = np.random.default_rng(9)
    scores, labels = strict_query(random, 7)
    loss = Focused(ListNet(), ListNet(), beta=0.0, k=3)
    expected = one_query(ListNet(), scores, labels > 4).total / 12
    assert one_query(loss, scores, labels).total == pytest.approx(expected)
