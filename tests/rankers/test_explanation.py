"""Contributions of features: they add up, and they are what their definition says."""

import dataclasses
import re
from io import BytesIO
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from benchmarks._shapley import mean_document_shapley, tree_shapley
from podium.data import Dataset, ShardSet, write_shards
from podium.errors import ArgumentError, DataError
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
    load_ranker,
)
from podium.rankers.base import NotFittedError
from podium.rankers.integrated_gradients import integrated_gradients
from podium.rankers.storage import archive_bytes
from tests.rankers.made_up import made_up

DATA = made_up(12, 20)

RANKERS: dict[str, Ranker] = {
    "linear": LinearRanker("PairLogistic()"),
    "lightgbm": TreeRanker("ListMLE(k=5)", n_estimators=12),
    "xgboost": TreeRanker("PairLogistic()", engine="xgboost", n_estimators=12),
    "neural": NeuralRanker("ListMLE(k=5)", hidden_layer_sizes=(9, 7), epochs=3),
    "neural, no hidden layer": NeuralRanker("ListMLE(k=5)", hidden_layer_sizes=(), epochs=3),
    "boosted thresholds": BoostedRanker(n_estimators=15),
    "boosted features": BoostedRanker(beta=1.0, weak_ranker="feature", n_estimators=5),
    "cascade": CascadeRanker(
        LinearRanker(),
        [BoostedRanker(n_estimators=8), LinearRanker("ListNet()"), TreeRanker(n_estimators=5)],
        candidates=12,
        base_votes=True,
    ),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Ranker]:
    return {name: ranker.fit(DATA) for name, ranker in RANKERS.items()}


@pytest.mark.parametrize("name", RANKERS)
def test_contributions_add_up(fitted: dict[str, Ranker], name: str) -> None:
    scores = fitted[name].predict(DATA)
    for query in range(3):
        rows = slice(DATA.offsets[query], DATA.offsets[query + 1])
        explanation = fitted[name].explain(DATA, query=str(query))
        np.testing.assert_array_equal(explanation.scores, scores[rows])
        centered = scores[rows] - scores[rows].mean()
        np.testing.assert_allclose(explanation.contributions.sum(axis=1), centered, atol=1e-9)
        for first, second in [(0, 1), (3, 17), (19, 4)]:
            pair = explanation.pair(first, second)
            assert pair.difference == scores[rows][first] - scores[rows][second]
            assert abs(pair.contributions.sum() - pair.difference) < 1e-9
        assert np.abs(explanation.contributions).max() > 0


def test_the_parts_of_a_cascade_add_up_to_their_own_scores(fitted: dict[str, Ranker]) -> None:
    explanation = fitted["cascade"].explain(DATA, query="2")
    assert explanation.names == ("base", "reranker 1", "reranker 2", "reranker 3")
    assert list(explanation.parts) == list(explanation.names)
    part = explanation.parts["reranker 2"]
    weights = fitted["cascade"].rerankers_[1].coef_
    rows = DATA[2].features.astype(np.float64)
    np.testing.assert_allclose(part.contributions, (rows - rows.mean(axis=0)) * weights, atol=1e-9)
    np.testing.assert_array_equal(explanation.values[:, 2], part.scores)


def test_votes_of_a_cascade_are_shapley_values(fitted: dict[str, Ranker]) -> None:
    """By all orders in which the votes can be added to the base order."""
    cascade = fitted["cascade"]
    data = DATA.select(["1"])
    votes = [ranker.predict(data) for ranker in [*cascade.rerankers_, cascade.base_]]

    def scores(voters: tuple[int, ...]) -> np.ndarray:
        if not voters:
            return (-cascade.base_.predict(data)).argsort().argsort() * -1.0
        columns = np.stack([votes[voter] for voter in voters], axis=1)
        weights = cascade.weights_[list(voters)]
        return cascade._combine(columns, weights, votes[3], data.offsets)

    def centered(values: np.ndarray) -> np.ndarray:
        return values - values.mean()

    orders = list(permutations(range(4)))
    effects = np.zeros((20, 4))
    for order in orders:
        for position, voter in enumerate(order):
            before, after = tuple(sorted(order[:position])), tuple(sorted(order[: position + 1]))
            effects[:, voter] += centered(scores(after)) - centered(scores(before))
    effects /= len(orders)
    explanation = cascade.explain(DATA, query="1")
    np.testing.assert_allclose(explanation.contributions[:, 1:], effects[:, :3], atol=1e-9)
    base = centered(scores(())) + effects[:, 3]
    np.testing.assert_allclose(explanation.contributions[:, 0], base, atol=1e-9)
    assert np.abs(effects).max() > 0.5


def test_too_many_votes_are_refused() -> None:
    cascade = CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")] * 11).fit(DATA)
    with pytest.raises(ArgumentError, match="a cascade of 11 votes is not explained"):
        cascade.explain(DATA, query="1")


def test_linear_contributions_are_weights_times_differences(fitted: dict[str, Ranker]) -> None:
    ranker = fitted["linear"]
    rows = DATA[4].features.astype(np.float64)
    pair = ranker.explain(DATA, query="4").pair(7, 2)
    np.testing.assert_allclose(pair.contributions, ranker.coef_ * (rows[7] - rows[2]), atol=1e-12)


@pytest.mark.parametrize("name", ["linear", "boosted thresholds", "boosted features"])
def test_sums_of_features_have_their_exact_shapley_values(
    fitted: dict[str, Ranker], name: str
) -> None:
    """Features that are not in the subset come from the documents of the query."""
    ranker, rows = fitted[name], DATA[3].features
    explanation = ranker.explain(DATA, query="3")
    for document in (0, 11):
        expected = mean_document_shapley(ranker.predict, rows, document)
        np.testing.assert_allclose(explanation.contributions[document], expected, atol=1e-9)


@pytest.mark.parametrize(("name", "error"), [("lightgbm", 1e-9), ("xgboost", 2e-6)])
def test_trees_have_their_path_dependent_shapley_values(
    fitted: dict[str, Ranker], name: str, error: float
) -> None:
    rows = DATA[5].features[:4]
    expected = tree_shapley(fitted[name], rows)
    explanation = fitted[name].explain(rows)
    np.testing.assert_allclose(explanation.contributions, expected - expected.mean(0), atol=error)
    assert np.abs(expected).max() > 0.01


def test_networks_have_their_integrated_gradients(fitted: dict[str, Ranker]) -> None:
    """By many small steps from the mean document, with PyTorch's own gradients."""
    import torch

    ranker, rows = fitted["neural"], DATA[6].features
    scaled = (rows - ranker.mean_) / ranker.scale_
    module = ranker.module_.double()
    try:
        start, steps = scaled.mean(axis=0), 4000
        expected = []
        for end in scaled:
            times = (np.arange(steps) + 0.5) / steps
            points = torch.tensor(start + times[:, None] * (end - start), requires_grad=True)
            module(points).sum().backward()
            expected.append(points.grad.numpy().mean(axis=0) * (end - start))
    finally:
        module.float()
    contributions = ranker.explain(DATA, query="6").contributions
    np.testing.assert_allclose(
        contributions, np.array(expected) - np.mean(expected, axis=0), atol=2e-4
    )
    assert np.abs(contributions).max() > 0.01


def test_integrated_gradients_are_exact() -> None:
    """max(a + b, 0) from (-1, -1) to (3, 1) is 0 on the first third of the way."""
    layers = [(np.array([[1.0, 1.0]]), np.zeros(1)), (np.array([[2.0]]), np.array([5.0]))]
    ends = np.array([[3.0, 1.0], [-2.0, -3.0], [-1.0, -1.0]])
    contributions = integrated_gradients(layers, np.array([-1.0, -1.0]), ends)
    np.testing.assert_allclose(contributions[0], [2 * 2 / 3 * 4, 2 * 2 / 3 * 2], atol=1e-15)
    np.testing.assert_array_equal(contributions[1:], np.zeros((2, 2)))


def test_a_feature_that_is_equal_in_the_query_contributes_nothing_to_a_network() -> None:
    rows = DATA[0].features.copy()
    rows[:, 2] = 0.7
    explanation = RANKERS["neural"].fit(DATA).explain(rows)
    np.testing.assert_allclose(explanation.contributions[:, 2], 0.0, atol=1e-12)


def test_missing_values(fitted: dict[str, Ranker]) -> None:
    rows = DATA[0].features.copy()
    rows[0, 0] = np.nan
    for name in ("lightgbm", "xgboost", "neural", "boosted thresholds"):
        explanation = fitted[name].explain(rows)
        scores = fitted[name].predict(rows)
        assert explanation.texts(0)[0] == ""
        np.testing.assert_allclose(
            explanation.contributions.sum(axis=1), scores - scores.mean(), atol=1e-9
        )
    with pytest.raises(DataError, match="a linear ranker cannot score missing values"):
        fitted["linear"].explain(rows)


def test_categories_have_their_names() -> None:
    random = np.random.default_rng(3)
    brands = random.choice(["acme", "bolt", "crux"], 300)
    table = pa.table({"price": random.random(300), "brand": pa.array(brands).dictionary_encode()})
    labels = (brands == "bolt") * 2.0
    ranker = TreeRanker(n_estimators=5, min_data_in_leaf=5).fit(table, labels, group=[30] * 10)
    explanation = ranker.explain(table.slice(0, 30))
    assert [explanation.texts(row)[1] for row in range(30)] == brands[:30].tolist()
    best = explanation.pair(int(np.argmax(labels[:30])), int(np.argmin(labels[:30])))
    assert best.names[best.largest[0]] == "brand"


def test_rows_of_every_kind_give_the_same(fitted: dict[str, Ranker]) -> None:
    rows = DATA[7].features
    expected = fitted["linear"].explain(DATA, query="7").contributions
    for X in (rows, sparse.csr_matrix(rows), rows.tolist()):
        np.testing.assert_allclose(fitted["linear"].explain(X).contributions, expected, atol=1e-12)
    names = ["a", "b", "c", "d", "e", "f"]
    columns = {name: DATA.features[:, index] for index, name in enumerate(names)}
    table = pa.table({"qid": DATA.query_id_of_row(), **columns})
    ranker = LinearRanker("PairLogistic()").fit(table, DATA.labels)
    explanation = ranker.explain(table.select(["f", "qid", "b", "a", "c", "e", "d"]), query="7")
    assert (explanation.query_id, explanation.names) == ("7", tuple(names))
    np.testing.assert_allclose(explanation.contributions, expected, atol=1e-9)


def test_documents_are_named_and_ordered() -> None:
    X = [[1.0], [3.0], [2.0], [3.0]]
    ids = ["a", "b", "c", "d"]
    data = Dataset.from_arrays(X, [0, 2, 1, 2], qid=["q"] * 4, document_ids=ids)
    ranker = LinearRanker("ListNet()").fit(data)
    explanation = ranker.explain(data)
    assert explanation.order.tolist() == [1, 3, 2, 0]
    pair = explanation.pair()
    assert (pair.above, pair.below, pair.difference) == ("b", "d", 0.0)
    pair = explanation.pair("c")
    assert (pair.above, pair.below) == ("c", "a")
    weight = ranker.coef_[0]
    np.testing.assert_allclose(pair.contributions, [weight])
    assert (pair.values_above, pair.values_below) == (("2",), ("1",))
    assert (pair.above_position, pair.below_position) == (2, 0)
    table = explanation.to_arrow()
    assert table.column_names == ["document_id", "score", "1"]
    assert table["document_id"].to_pylist() == ["b", "d", "c", "a"]
    np.testing.assert_allclose(table["1"], np.array([0.75, 0.75, -0.25, -1.25]) * weight)
    frame = explanation.pair("b", "a").to_frame()
    assert frame.to_dict("list") == {
        "feature": ["1"], "above": ["3"], "below": ["1"],
        "contribution": [pytest.approx(2 * weight)],
    }  # fmt: skip
    assert "<caption>Explanation(4 documents, 1 features)</caption>" in explanation._repr_html_()
    assert "above &#x27;d&#x27; by 0" in explanation.pair()._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("e",), "no document has the id 'e' in query 'q'. Its best are b, a, a."),
        (("a",), "2 documents have the id 'a'"),
        ((3,), "there is no document at position 3. Query 'q' has 3 documents."),
        ((-1,), "there is no document at position -1"),
        ((1.5,), "there is no document at position 1.5"),
        ((True,), "there is no document at position True"),
        (("b", 1), "both documents are the same. Give two."),
        ((0,), "'a' is the last document"),
    ],
)
def test_wrong_documents(arguments: Any, message: str) -> None:
    data = Dataset.from_arrays(
        [[1.0], [3.0], [2.0]], [0, 2, 1], qid=["q"] * 3, document_ids=["a", "b", "a"]
    )
    explanation = LinearRanker("ListNet()").fit(data).explain(data)
    with pytest.raises(ArgumentError) as error:
        explanation.pair(*arguments)
    assert message in str(error.value)


def test_a_query_is_named_by_its_id() -> None:
    data = Dataset.from_arrays([[1.0], [2.0], [3.0], [5.0]], [0, 1, 0, 1], qid=[1, 1, 0, 0])
    ranker = LinearRanker("ListNet()").fit(data)
    number: Any = 1
    assert ranker.explain(data, query=number).query_id == "1"
    assert ranker.explain(data, query="0").values.tolist() == [[3.0], [5.0]]


def test_wrong_queries(fitted: dict[str, Ranker], tmp_path: Any) -> None:
    ranker = fitted["linear"]
    with pytest.raises(ArgumentError, match=r"there are 12 queries\. Name the one to explain"):
        ranker.explain(DATA)
    with pytest.raises(DataError, match="'none'"):
        ranker.explain(DATA, query="none")
    with pytest.raises(NotFittedError):
        LinearRanker().explain(DATA, query="1")
    with pytest.raises(DataError, match="query '' has one document"):
        ranker.explain(DATA.features[:1]).pair()
    write_shards(DATA, tmp_path / "shards")
    shards: Any = ShardSet.open(tmp_path / "shards")
    with pytest.raises(ArgumentError, match=r"Give X.load\(\)"):
        ranker.explain(shards, query="1")


def test_linear_leaves_are_refused() -> None:
    ranker = TreeRanker(n_estimators=3, linear_tree=True).fit(DATA)
    with pytest.raises(ArgumentError, match="LightGBM cannot tell what features contribute"):
        ranker.explain(DATA, query="1")


def test_counts_that_are_wrong_are_refused(fitted: dict[str, Ranker]) -> None:
    """A file without the numbers of rows in each leaf, which only contributions depend on."""
    archive = fitted["lightgbm"].archive()
    text = archive.blobs["model"].decode()
    zeros = re.sub(r"(?m)^(?:internal|leaf)_count=.*$", lambda line: _zeros(line[0]), text)
    content = dataclasses.replace(archive, blobs={"model": zeros.encode()})
    ranker = load_ranker(BytesIO(archive_bytes(content)))
    np.testing.assert_array_equal(ranker.predict(DATA), fitted["lightgbm"].predict(DATA))
    with pytest.raises(ArgumentError, match="do not add up to its scores"):
        ranker.explain(DATA, query="1")


def _zeros(line: str) -> str:
    """A line with all numbers 0, as long as before."""
    return re.sub(r"\d", "0", line)


class _Opaque(LinearRanker):
    """A ranker that does not compute what features contribute."""

    _contributions = Ranker._contributions


def test_rankers_that_do_not_tell_are_refused() -> None:
    ranker = _Opaque().fit(DATA)
    with pytest.raises(ArgumentError, match="_Opaque does not compute what features contribute"):
        ranker.explain(DATA, query="1")
    del Ranker.KINDS["_Opaque"]
