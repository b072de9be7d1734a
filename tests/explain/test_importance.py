"""What features are worth: planted ones are told apart, and intervals cover."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks._planted import coverage, planted
from podium.data import Dataset
from podium.errors import ArgumentError, DataError, PodiumError
from podium.explain import partial_dependence, permutation_importance, similar_pairs
from podium.explain.similarity import SimilarPair, query_correlations
from podium.measures import Conventions, evaluate
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, TreeRanker


@pytest.fixture(scope="module")
def trees() -> TreeRanker:
    return TreeRanker(n_estimators=40).fit(planted(150))


def test_planted_features_are_told_apart(trees: TreeRanker) -> None:
    test = planted(120, seed=1)
    result = permutation_importance(trees, test, "nDCG@10", repeats=5)
    assert [group.features for group in result.groups[:2]] == [("strong", "copy"), ("weak",)]
    by_name = {group.features[0]: group for group in result.groups}
    assert by_name["strong"].low > 0.2
    assert by_name["weak"].low > 0.01
    assert by_name["noise"].low < 0 < by_name["noise"].high
    assert abs(by_name["noise"].importance) < 0.01
    # Within a query a constant says nothing, whatever the trees do with it.
    constant = by_name["constant"]
    assert constant.importance == 0
    assert math.isnan(constant.low)  # equal values have no interval
    assert math.isnan(constant.high)
    assert constant.unused
    assert result.unused == ("constant",)
    [pair] = result.similar
    assert (pair.first, pair.second) == ("strong", "copy")
    assert pair.correlation == pytest.approx(1.0)
    assert result.value == evaluate("nDCG@10", test, trees.predict(test)).means["nDCG@10"]
    assert (result.queries, result.repeats) == (120, 5)


def test_the_importance_is_the_mean_loss_of_permutations_within_queries() -> None:
    """By every permutation of a small query, beside the mean of many drawn ones."""
    from itertools import permutations

    data = Dataset.from_arrays(
        [[3.0, 1], [2.0, 0], [1.0, 2], [0.0, 0]], [3, 1, 2, 0], group=[4], feature_names=["a", "b"]
    )
    ranker = LinearRanker("ListNet()").fit(data)
    ranker.coef_ = np.array([1.0, 0.9])
    before = evaluate("nDCG", data, ranker.predict(data)).means["nDCG"]
    losses = []
    for order in permutations(range(4)):
        features = data.features.copy()
        features[:, 0] = features[list(order), 0]
        after = evaluate("nDCG", data, features @ ranker.coef_).means["nDCG"]
        losses.append(before - after)
    result = permutation_importance(ranker, data, "nDCG", repeats=2000, correlation=None)
    importance = {group.features: group for group in result.groups}[("a",)]
    error = 4 * np.std(losses) / np.sqrt(2000)
    assert importance.importance == pytest.approx(np.mean(losses), abs=error)
    assert np.isnan(importance.low)


def test_features_alone_or_in_other_groups(trees: TreeRanker) -> None:
    test = planted(40, seed=2)
    alone = permutation_importance(trees, test, repeats=2, correlation=None)
    assert sorted(group.features for group in alone.groups) == [
        ("constant",), ("copy",), ("noise",), ("strong",), ("weak",),
    ]  # fmt: skip
    assert alone.similar == ()
    chosen = permutation_importance(trees, test, repeats=2, groups=[["weak", "noise"]])
    assert sorted(group.features for group in chosen.groups) == [
        ("constant",), ("copy",), ("strong",), ("weak", "noise"),
    ]  # fmt: skip
    again = permutation_importance(trees, test, repeats=2, groups=[["weak", "noise"]])
    assert again.groups == chosen.groups
    other = permutation_importance(
        trees, test, repeats=2, groups=[["weak", "noise"]], random_state=1
    )
    assert other.groups != chosen.groups


def test_a_measure_that_is_better_when_smaller_is_lost_when_it_grows(trees: TreeRanker) -> None:
    test = planted(40, seed=3)
    smaller = permutation_importance(trees, test, "WKT(k=5)", repeats=2)
    assert smaller.groups[0].features == ("strong", "copy")
    assert smaller.groups[0].low > 0


def test_a_cascade_has_importances() -> None:
    train, test = planted(30), planted(20, seed=4)
    cascade = CascadeRanker(LinearRanker(), [BoostedRanker(n_estimators=10)]).fit(train)
    result = permutation_importance(cascade, test, repeats=2)
    assert result.groups[0].features == ("strong", "copy")


def test_intervals_contain_what_they_estimate() -> None:
    """The importance of a fixed ranker over many small samples, beside that of one large one."""
    covered, _ = coverage(200)
    # Between the 0.05 % and the 99.95 % quantile of 200 draws with probability 0.95.
    assert 178 <= covered <= 199


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "repeats is 0"),
        ({"repeats": 2.5}, "repeats is 2.5"),
        ({"level": 1.0}, "level is 1.0"),
        ({"correlation": 0.0}, "a correlation of 0.0"),
        ({"groups": [["strong"], ["strong"]]}, "in two groups"),
        ({"groups": [[]]}, "a group is empty"),
        ({"groups": [["stron"]]}, "strong"),
        ({"measure": "nothing"}, "nothing"),
        ({"random_state": -1}, "seed is -1"),
    ],
)
def test_wrong_options(trees: TreeRanker, options: dict, message: str) -> None:
    with pytest.raises(PodiumError, match=message):
        permutation_importance(trees, planted(3), **options)


def test_data_without_a_value_are_refused(trees: TreeRanker) -> None:
    data = planted(3)
    blank = replace(data, labels=np.zeros_like(data.labels))
    with pytest.raises(DataError, match="no query has a value"):
        permutation_importance(trees, blank, conventions=Conventions(nothing_relevant="skip"))


def test_correlations_are_within_queries() -> None:
    """Two features that only differ in the level of each query, and one of the opposite order."""
    random = np.random.default_rng(5)
    first = random.random(60)
    level = np.repeat(random.random(6) * 100, 10)
    missing = np.where(np.arange(60) % 7 == 0, np.nan, first)
    X = np.stack([first, first + level, -(first**3), random.random(60), missing, level], axis=1)
    data = Dataset.from_arrays(X, np.zeros(60), group=[10] * 6)
    table = query_correlations(data)
    np.testing.assert_allclose(table[0, [0, 1, 2, 5]], [1, 1, -1, 0], atol=1e-12)
    assert 0.8 < table[0, 4] < 1
    assert abs(table[0, 3]) < 0.4
    assert similar_pairs(data) == [
        SimilarPair("1", "2", 1.0), SimilarPair("1", "3", -1.0), SimilarPair("2", "3", -1.0),
    ]  # fmt: skip


def test_equal_values_share_their_rank() -> None:
    """As SciPy's rank correlation of one query."""
    from scipy.stats import spearmanr

    random = np.random.default_rng(6)
    X = random.integers(0, 4, (30, 2)).astype(float)
    data = Dataset.from_arrays(X, np.zeros(30), group=[30])
    expected = spearmanr(X[:, 0], X[:, 1]).statistic
    assert query_correlations(data)[0, 1] == pytest.approx(expected, abs=1e-12)


def test_each_two_of_a_group_correlate() -> None:
    """A chain of features, neighbors of which correlate, is not one group."""
    random = np.random.default_rng(7)
    steps = random.normal(size=(8, 3000))
    chain = np.cumsum(steps * 0.45, axis=0) + 2 * random.normal(size=3000)
    data = Dataset.from_arrays(chain.T, np.arange(3000) % 3, group=[50] * 60)
    ranker = LinearRanker().fit(data)
    result = permutation_importance(ranker, data, repeats=1, correlation=0.95)
    table = query_correlations(data)
    sizes = []
    for group in result.groups:
        columns = [int(name) - 1 for name in group.features]
        assert np.abs(table[np.ix_(columns, columns)]).min() >= 0.95 - 1e-9
        sizes.append(len(columns))
    assert sum(sizes) == 8
    assert 1 < max(sizes) < 8


def test_partial_dependence_of_a_sum() -> None:
    data = planted(9)
    ranker = LinearRanker().fit(data)
    dependence = partial_dependence(ranker, data, "weak", points=5)
    weight = ranker.coef_[2]
    quantiles = [[0, 3, 6, 8, 11][point] for point in range(5)]  # rint of 0, 2.75, 5.5, 8.25, 11
    effects = (
        np.array(
            [
                np.sort(query.features[:, 2])[quantiles] - query.features[:, 2].mean()
                for query in data
            ]
        )
        * weight
    )
    np.testing.assert_allclose(dependence.effects, effects.mean(axis=0), atol=1e-6)
    half = effects.std(axis=0, ddof=1) / 3 * 2.306004  # Student's t of 8 degrees of freedom
    np.testing.assert_allclose(dependence.high - dependence.effects, half, atol=1e-6)
    np.testing.assert_allclose(dependence.effects - dependence.low, half, atol=1e-6)
    np.testing.assert_allclose(
        dependence.values, np.mean([np.sort(q.features[:, 2])[quantiles] for q in data], axis=0),
        rtol=1e-6,
    )  # fmt: skip
    assert dependence.shares.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert dependence.to_frame().shape == (5, 5)


def test_partial_dependence_of_what_has_none(trees: TreeRanker) -> None:
    data = planted(6)
    assert partial_dependence(trees, data, "constant").effects.tolist() == [0.0] * 11
    missing = data.features.copy()
    missing[:, 3] = np.nan
    with pytest.raises(DataError, match="always missing"):
        partial_dependence(trees, replace(data, features=missing), "noise")
    with pytest.raises(PodiumError, match="strong"):
        partial_dependence(trees, data, "stron")
    with pytest.raises(ArgumentError, match="points is 1"):
        partial_dependence(trees, data, "weak", points=1)
    cascade = CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")]).fit(data)
    with pytest.raises(ArgumentError, match="depends on the other documents"):
        partial_dependence(cascade, data, "weak")


def test_tables(trees: TreeRanker) -> None:
    result = permutation_importance(trees, planted(5), repeats=1)
    frame = result.to_frame()
    assert frame["features"].tolist() == [", ".join(group.features) for group in result.groups]
    assert frame["importance"].tolist() == [group.importance for group in result.groups]
    assert f"<caption>{result!r}</caption>" in result._repr_html_()
