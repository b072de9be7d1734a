"""Rankers in stages: the order, the budget, and the choice of depths."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.measures import evaluate
from podium.rankers import CascadeRanker, LinearRanker, Stage, StagedRanker, load_ranker
from podium.rankers.base import NotFittedError
from podium.rankers.storage import archive_bytes


class Counted:
    """Scores numbers by themselves, and remembers which it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[float]] = []

    def predict(self, rows: np.ndarray) -> np.ndarray:
        self.asked.append(np.asarray(rows).tolist())
        return np.asarray(rows)


def by_hand(
    scores: list[np.ndarray], costs: list[float], depths: list[int], budget: float
) -> tuple[list[int], float]:
    """One query, document by document."""
    order = list(range(len(scores[0])))
    reached, spent = len(order), 0.0
    for values, cost, depth in zip(scores, costs, depths, strict=True):
        count = 0
        while count < min(depth, reached) and spent + cost * (count + 1) <= budget + 1e-9:
            count += 1
        if count:
            head = sorted(order[:count], key=lambda row, values=values: -values[row])
            order[:count] = head
            spent += cost * count
            reached = count
    return order, spent


@pytest.mark.parametrize("seed", range(20))
def test_order_and_cost_are_those_of_a_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 40, 6)
    costs = [0.0, *random.choice([0.1, 0.3, 1.0, 7.0], 2).tolist()]
    depths = [50, *random.integers(0, 30, 2).tolist()]
    budget = float(random.choice([0.3, 3.0, 20.0]))
    columns = [random.integers(0, 9, sizes.sum()).astype(float) for _ in costs]
    stages = [
        Stage(str(number), cost=cost, depth=depth)
        for number, (cost, depth) in enumerate(zip(costs, depths, strict=True))
    ]
    ranker = StagedRanker(stages, budget=budget)
    inputs = {str(number): column for number, column in enumerate(columns)}
    labels = random.integers(0, 3, sizes.sum())
    scores = ranker.fit(inputs, labels, group=sizes).predict(inputs, group=sizes)
    assert ranker.depths_ == tuple(depths)
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        order, spent = by_hand([column[part] for column in columns], costs, depths, budget)
        assert np.argsort(-scores[part]).tolist() == order
        assert ranker.cost(int(size)) == pytest.approx(spent)
        assert spent <= budget + 1e-9
        start += size


def test_a_stage_scores_only_what_it_may_and_all_queries_at_once() -> None:
    second = Counted()
    stages = [Stage("a", depth=9), Stage("b", second, cost=2.0, depth=3)]
    inputs = {"a": [1.0, 4.0, 2.0, 3.0, 5.0, 6.0], "b": np.array([10.0, 40, 20, 30, 50, 60])}
    ranker = StagedRanker(stages, budget=5.0)
    ranker.fit(inputs, [0, 0, 1, 0, 0, 1], group=[4, 2])
    second.asked.clear()
    scores = ranker.predict(inputs, group=[4, 2])
    assert second.asked == [[40.0, 30.0, 60.0, 50.0]]  # two of each: five pays for no third
    assert scores.tolist() == [1.0, 4.0, 2.0, 3.0, 1.0, 2.0]


def test_the_rest_keeps_the_order_before() -> None:
    reverse = Stage("place", lambda rows: np.asarray(rows), cost=1.0, depth=2)
    inputs = {"place": np.arange(5.0)}
    ranker = StagedRanker([reverse], budget=100.0).fit(inputs, [1, 0, 0, 0, 0], group=[5])
    assert np.argsort(-ranker.predict(inputs, group=[5])).tolist() == [1, 0, 2, 3, 4]


def test_rows_of_a_query_may_be_anywhere() -> None:
    random = np.random.default_rng(1)
    query = np.repeat(["x", "y", "z"], 8)
    values, labels = random.random(24), random.integers(0, 3, 24)
    stages = [Stage("a", cost=1.0, depth=4)]
    ranker = StagedRanker(stages, budget=4.0).fit({"a": values}, labels, qid=query)
    together = ranker.predict({"a": values}, qid=query)
    mixed = np.argsort(np.tile(np.arange(8), 3), kind="stable")  # one row of each query in turn
    apart = ranker.predict({"a": values[mixed]}, qid=query[mixed])
    assert apart.tolist() == together[mixed].tolist()


def test_fit_chooses_the_best_depths_of_all_and_of_equal_ones_the_cheapest() -> None:
    random = np.random.default_rng(5)
    sizes = np.full(30, 25)
    labels = random.integers(0, 4, sizes.sum())
    noisy = [labels + noise * random.normal(size=len(labels)) for noise in (3.0, 1.0, 0.3)]
    costs = [0.0, 1.0, 10.0]
    inputs = {str(number): column for number, column in enumerate(noisy)}
    stages = [Stage(str(number), cost=cost) for number, cost in enumerate(costs)]
    ranker = StagedRanker(stages, budget=80.0, measure="nDCG@5").fit(inputs, labels, group=sizes)

    def value_and_cost(depths: tuple[int, ...]) -> tuple[float, float]:
        scores, spent = [], 0.0
        for start in range(0, len(labels), 25):
            part = [column[start : start + 25] for column in noisy]
            order, cost = by_hand(part, costs, list(depths), 80.0)
            spent += cost / 30
            scores += [-order.index(row) for row in range(25)]
        found = evaluate("nDCG@5", labels, scores, group=sizes)
        return next(iter(found.means.values())), -spent

    every = {depths: value_and_cost(depths) for depths in product((0, 5, 10, 20, 25), repeat=3)}
    best = max(every.values())
    chosen = tuple(25 if depth is None else depth for depth in ranker.depths_)
    assert every[chosen] == pytest.approx(best)
    assert ranker.value_ == pytest.approx(best[0])
    assert best[0] > every[25, 25, 0][0] > every[25, 0, 0][0]  # each stage is worth something


def test_stages_that_add_nothing_are_left_out() -> None:
    labels = np.tile([0, 1, 2, 0], 10)
    truth, noise = labels.astype(float), np.random.default_rng(0).random(40)
    inputs = {"truth": truth, "again": truth, "noise": noise}
    stages = [Stage("truth"), Stage("again", cost=1.0), Stage("noise", cost=1.0)]
    ranker = StagedRanker(stages, budget=9.0).fit(inputs, labels, group=[4] * 10)
    assert ranker.depths_ == (None, 0, 0)
    assert ranker.cost(4) == 0.0


def test_a_measure_of_which_less_is_better() -> None:
    labels = np.tile([0, 1, 2, 3], 5)
    inputs = {"bad": -labels.astype(float), "good": labels.astype(float)}
    stages = [Stage("bad"), Stage("good", cost=1.0)]
    ranker = StagedRanker(stages, budget=9.0, measure="TopKLoss")
    assert ranker.fit(inputs, labels, group=[4] * 5).depths_[1] is None


def test_all_means_all_of_longer_queries_too() -> None:
    scores = np.arange(1000.0)
    ranker = StagedRanker([Stage("bm25")], budget=1.0)
    ranker.fit({"bm25": scores[:50]}, np.append(np.zeros(49), 1), group=[50])
    assert ranker.depths_ == (None,)
    assert ranker.predict({"bm25": scores}, group=[1000]).tolist() == (scores + 1).tolist()


def test_a_stage_may_reach_all_that_a_fixed_depth_leaves_it() -> None:
    stages = [Stage("a", depth=2), Stage("b")]
    inputs = {"a": [1.0, 3.0, 2.0], "b": [9.0, 0.0, 0.0]}
    ranker = StagedRanker(stages, budget=10.0).fit(inputs, [1, 0, 0], group=[3])
    assert (ranker.depths_, ranker.value_) == ((2, None), 1.0)


def test_depths_to_choose_from_can_be_given() -> None:
    inputs, labels = {"b": [0.0, 1.0, 9.0, 10.0]}, [0, 0, 1, 0]
    coarse = StagedRanker([Stage("b")], budget=1.0).fit(inputs, labels, group=[4])
    fine = StagedRanker([Stage("b")], budget=1.0, depths=[1, 2, 3]).fit(inputs, labels, group=[4])
    assert (coarse.depths_, fine.depths_, fine.value_) == ((None,), (3,), 1.0)


@pytest.mark.parametrize(("budget", "cost"), [(1e20, 1.0), (1e18, 1.0), (1e308, 1e-300)])
def test_a_budget_that_pays_for_everything(budget: float, cost: float) -> None:
    ranker = StagedRanker([Stage("b", cost=cost)], budget=budget)
    ranker.fit({"b": [3.0, 1.0, 2.0]}, [0, 0, 1], group=[3])
    assert ranker.depths_ == (None,)
    assert ranker.cost(3) == pytest.approx(3 * cost, rel=1e-15)


@pytest.mark.parametrize(
    ("budget", "costs", "expected"),
    [
        (2999.9995, [1000.0], 2000.0),  # no third document for a little less than it costs
        (0.3, [0.1], 0.1 * 3),  # a third one though 0.3 / 0.1 is rounded down
        (2.9999995, [1.0, 1e-8], 2.0 + 2e-8),
    ],
)
def test_the_budget_is_kept_but_for_rounding(
    budget: float, costs: list[float], expected: float
) -> None:
    stages = [Stage("a", cost=cost, depth=3) for cost in costs]
    ranker = StagedRanker(stages, budget=budget).fit({"a": [1.0, 2, 3]}, [1, 0, 0], group=[3])
    assert ranker.cost(3) == pytest.approx(expected, rel=1e-12)


def test_inputs_of_every_kind() -> None:
    random = np.random.default_rng(2)
    features = random.random((40, 3))
    labels = (features[:, 0] * 3).astype(int)
    groups = [10] * 4
    linear = LinearRanker().fit(features, labels, group=groups)
    expected = None
    for kind in (np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.coo_matrix, arrow):
        rows = kind(features)
        reader = linear if kind is np.asarray else lambda part: linear.predict(dense(part))
        ranker = StagedRanker([Stage("f", reader, cost=1.0, depth=6)], budget=6.0)
        scores = ranker.fit({"f": rows}, labels, group=groups).predict({"f": rows}, group=groups)
        expected = scores if expected is None else expected
        assert scores.tolist() == expected.tolist()
    texts = [("q", "d" * number) for number in random.integers(0, 9, 40)]
    lengths = Stage("t", lambda pairs: [len(document) for _, document in pairs], depth=10)
    ranker = StagedRanker([lengths], budget=1.0).fit({"t": texts}, labels, group=groups)
    first = ranker.predict({"t": texts}, group=groups)[:10]
    ranked = [len(texts[row][1]) for row in np.argsort(-first)]
    assert ranked == sorted(ranked, reverse=True)


def arrow(features: np.ndarray) -> pa.Table:
    return pa.table({str(column): features[:, column] for column in range(features.shape[1])})


def dense(part: object) -> np.ndarray:
    if isinstance(part, pa.Table):
        return np.column_stack([column.to_numpy() for column in part.columns])
    return part.toarray() if isinstance(part, sparse.csr_matrix) else np.asarray(part)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StagedRanker([], budget=1.0), "there are no stages"),
        (lambda: StagedRanker(["a"], budget=1.0), "there are no stages"),
        (lambda: StagedRanker(Stage("a"), budget=1.0), "there are no stages"),  # type: ignore[arg-type]
        (lambda: StagedRanker([Stage("a")], budget="1"), "budget is '1'"),  # type: ignore[arg-type]
        (lambda: StagedRanker([Stage("a")], budget=10**400), "budget is 1000"),
        (lambda: StagedRanker([Stage("a")], budget=1.0, measure="official"), "official"),
        (lambda: StagedRanker([Stage("a")], budget=1.0, measure=["AP", "RR"]), "measure is"),  # type: ignore[arg-type]
        (lambda: StagedRanker([Stage("a")], budget=1.0, depths=[0]), "a depth is 0"),
        (lambda: Stage("a", LinearRanker), "the ranker of 'a' is"),
        (lambda: Stage("a", "path"), "the ranker of 'a' is 'path'"),
        (lambda: StagedRanker([Stage("a")], budget=0.0), "budget is 0.0"),
        (lambda: StagedRanker([Stage("a")], budget=float("nan")), "budget is nan"),
        (lambda: Stage("a", cost=-1.0), "the cost of 'a' is -1.0"),
        (lambda: Stage("a", cost=float("inf")), "the cost of 'a' is inf"),
        (lambda: Stage("a", depth=-1), "depth is -1"),
    ],
)
def test_wrong_arguments(make, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_wrong_inputs() -> None:
    ranker = StagedRanker([Stage("a"), Stage("b", lambda rows: [np.nan] * len(rows))], budget=1.0)
    with pytest.raises(NotFittedError, match="call fit first"):
        ranker.predict({"a": [1.0], "b": [1.0]}, group=[1])
    with pytest.raises(NotFittedError, match="call fit first"):
        ranker.cost(3)
    with pytest.raises(ArgumentError, match="there is no input 'b'"):
        ranker.fit({"a": [1.0]}, [1], group=[1])
    with pytest.raises(DataError, match="the input 'b' has 2 rows, and the queries have 1"):
        ranker.fit({"a": [1.0], "b": [1.0, 2.0]}, [1], group=[1])
    with pytest.raises(DataError, match="2 labels for 1 rows"):
        ranker.fit({"a": [1.0], "b": [1.0]}, [1, 0], group=[1])
    with pytest.raises(DataError, match="the stage 'b' has no score for some of 1 rows"):
        ranker.fit({"a": [1.0], "b": [1.0]}, [1], group=[1])
    with pytest.raises(ArgumentError, match="group"):
        ranker.fit({"a": [1.0], "b": [1.0]}, [1])


@pytest.mark.parametrize("wrong", [None, 3.0, {1.0}, {0: 1.0}, "a", np.array(1.0), iter([1.0])])
def test_inputs_without_rows(wrong: object) -> None:
    ranker = StagedRanker([Stage("a")], budget=1.0)
    with pytest.raises(DataError, match=f"the input 'a' is a {type(wrong).__name__}"):
        ranker.fit({"a": wrong}, [1], group=[1])
    with pytest.raises(ArgumentError, match="the inputs are a"):
        ranker.fit([1.0], [1], group=[1])  # type: ignore[arg-type]


def test_no_queries_are_refused() -> None:
    ranker = StagedRanker([Stage("a")], budget=1.0)
    with pytest.raises(DataError, match="has no value for any query"):
        ranker.fit({"a": []}, [], group=[])
    with pytest.raises(NotFittedError):
        ranker.predict({"a": []}, group=[])


def stages_of_features() -> tuple[StagedRanker, Dataset]:
    """Scores, then a weighted sum, then a cascade, on queries that none of them saw."""
    random = np.random.default_rng(3)
    names = ["bm25", "clicks", "age"]
    labels = random.integers(0, 4, 240)
    features = labels[:, None] + random.normal(size=(240, 3)) * [3.0, 1.0, 2.0]
    data = Dataset.from_arrays(features, labels, group=[12] * 20, feature_names=names)
    train, held_out = data.split(0.5, 0.5)
    weights = LinearRanker("ListNet()").fit(train.select_features(("clicks", "age")))
    votes = CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")], candidates=4).fit(train)
    stages = [
        Stage("bm25"),
        Stage("sum", weights, cost=1.0, depth=8),
        Stage("votes", votes, 5.0, 4),
    ]
    return StagedRanker(stages, budget=100.0), held_out


def fitted_stages() -> tuple[StagedRanker, Dataset]:
    ranker, data = stages_of_features()
    ranker.depths_, ranker.value_ = (None, 8, 4), 0.5
    return ranker, data


def test_a_data_set_is_the_input_of_all_stages() -> None:
    ranker, data = fitted_stages()
    scores = ranker.predict(data)
    assert ranker.feature_names_ == ("bm25", "clicks", "age")
    for query, first in zip(data, data.offsets, strict=False):
        part = query.features
        order = np.argsort(-part[:, 0], kind="stable")
        weights = part[:, 1:] @ ranker.stages[1].ranker.coef_
        head = order[:8][np.argsort(-weights[order[:8]], kind="stable")]
        best = part[head[:4]]
        votes = ranker.stages[2].ranker.predict(
            Dataset.from_arrays(best, np.zeros(4), group=[4], feature_names=data.feature_names)
        )
        head[:4] = head[:4][np.argsort(-votes, kind="stable")]
        expected = [*head, *order[8:]]
        assert np.argsort(-scores[first : first + 12]).tolist() == expected
    # Columns in another order are the same.
    other = data.select_features(("age", "bm25", "clicks"))
    assert ranker.predict(other).tolist() == scores.tolist()


def test_stages_are_saved_as_one(tmp_path: Path) -> None:
    ranker, data = fitted_stages()
    ranker.save(tmp_path / "staged")
    loaded = load_ranker(tmp_path / "staged")
    assert isinstance(loaded, StagedRanker)
    assert loaded.to_bytes() == ranker.to_bytes()
    assert loaded.predict(data).tolist() == ranker.predict(data).tolist()
    assert (loaded.depths_, loaded.cost(12)) == (ranker.depths_, ranker.cost(12))
    with pytest.raises(NotFittedError):
        StagedRanker([Stage("a")], budget=1.0).to_bytes()
    called = StagedRanker([Stage("a", lambda rows: rows)], budget=1.0)
    called.depths_ = (None,)
    with pytest.raises(ArgumentError, match="the stage 'a' is a function, which"):
        called.save(tmp_path / "called")
    with pytest.raises(ArgumentError, match="stages rank the documents of a query one after"):
        ranker.fitted_model()


@pytest.mark.parametrize(
    "changes", [{"depths": [1]}, {"depths": [None, None, -1]}, {"stages": [{}]}, {"stages": "x"}]
)
def test_files_that_are_not_of_stages_are_refused(changes: dict[str, Any]) -> None:
    archive = fitted_stages()[0].archive()
    content = replace(archive, metadata=archive.metadata | changes)
    with pytest.raises(DataError):
        load_ranker(BytesIO(archive_bytes(content)))


def test_stages_are_explained_one_by_one() -> None:
    ranker, data = fitted_stages()
    query = data.query_ids[3].as_py()
    explanation = ranker.explain(data, query=query)
    assert explanation.names == ("first order", "bm25", "sum", "votes")
    scores = ranker.predict(data.select([query]))
    np.testing.assert_array_equal(explanation.scores, scores)
    rows = data.select([query]).features
    ranks = [np.arange(12, 0, -1.0)]
    order = np.argsort(-rows[:, 0], kind="stable")
    ranks.append(12.0 - np.argsort(order))
    moved = np.column_stack([ranks[0], ranks[1] - ranks[0]])
    np.testing.assert_allclose(explanation.contributions[:, :2], moved - moved.mean(axis=0))
    np.testing.assert_allclose(explanation.contributions.sum(axis=1), scores - scores.mean())
    np.testing.assert_array_equal(explanation.values[:, 1], rows[:, 0])
    assert np.isnan(explanation.values[:, 2]).sum() == 4  # the second stage scores the first eight
    assert list(explanation.parts) == ["sum", "votes"]
    expected = ranker.stages[1].ranker.explain(data.select_features(("clicks", "age")), query=query)
    np.testing.assert_array_equal(explanation.parts["sum"].contributions, expected.contributions)


def test_inputs_are_explained_as_a_data_set_is() -> None:
    ranker, data = fitted_stages()
    ranker = StagedRanker(ranker.stages[:2], budget=100.0)
    ranker.depths_ = (None, 8)
    frame = pd.DataFrame(data.features[:, 1:], columns=["clicks", "age"])
    inputs = {"bm25": data.features[:, 0], "sum": frame}
    ids = data.query_id_of_row().to_pylist()
    query = data.query_ids[1].as_py()
    explanation = ranker.explain(inputs, qid=ids, query=query)
    expected = ranker.explain(data, query=query)
    np.testing.assert_array_equal(explanation.contributions, expected.contributions)
    assert ranker.predict(inputs, qid=ids).tolist() == ranker.predict(data).tolist()
    with pytest.raises(ArgumentError, match=r"there are 10 queries\. Name the one to explain"):
        ranker.explain(inputs, qid=ids)
    with pytest.raises(ArgumentError, match="query"):
        ranker.explain(inputs, qid=ids, query="none")


def test_stages_of_other_definitions_do_not_belong_together() -> None:
    rankers = [
        LinearRanker("ListNet()").fit(replace(by_hand_data(), definitions_hash=letter * 64))
        for letter in "ab"
    ]
    ranker = StagedRanker([Stage("x", rankers[0]), Stage("y", rankers[1])], budget=1.0)
    ranker.depths_ = (None, None)
    with pytest.raises(DataError, match="not those of one stage"):
        ranker.predict(by_hand_data())


def by_hand_data() -> Dataset:
    return Dataset.from_arrays([[1.0], [2.0]], [0, 1], group=[2], feature_names=["a"])
