"""Rankers in stages: the order, the budget, and the choice of depths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from podium.errors import ArgumentError, DataError
from podium.measures import evaluate
from podium.rankers import LinearRanker, NotFittedError, Stage, StagedRanker


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
