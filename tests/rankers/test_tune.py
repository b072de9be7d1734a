"""Searches: which combinations are tried, in which order, and which ranker is kept."""

from itertools import product

import numpy as np
import pytest

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.measures import evaluate
from podium.rankers import (
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    TreeRanker,
    Trial,
    tune,
)
from podium.rankers.tune import combinations_of, with_parameters
from tests.rankers.made_up import made_up

PENALTIES = [1e5, 10.0, 1e-3]  # the best is neither the first nor the last


def value_of(measure: str, data: Dataset, ranker: LinearRanker) -> float:
    return float(next(iter(evaluate(measure, data, ranker.predict(data)).means.values())))


@pytest.mark.parametrize(("measure", "best_is"), [("nDCG@10", max), ("WKT(k=5)", min)])
def test_the_best_ranker_is_kept_and_trials_are_sorted(measure: str, best_is: object) -> None:
    train, held_out = made_up(40, noise=0.5), made_up(20, noise=0.5, seed=7)
    told: list[tuple[int, int, Trial]] = []
    found = tune(
        LinearRanker("SquaredError()", max_iter=500),
        {"penalty": PENALTIES},
        train,
        held_out,
        measure=measure,
        progress=lambda *state: told.append(state),
    )
    values = {}
    for penalty in PENALTIES:
        ranker = LinearRanker("SquaredError()", penalty=penalty, max_iter=500)
        ranker.fit(train, validation=held_out)
        values[penalty] = value_of(measure, held_out, ranker)
    assert len(set(values.values())) == 3
    best = best_is(values, key=values.__getitem__)  # type: ignore[operator]
    assert best == PENALTIES[1]
    assert found.ranker.penalty == best
    assert value_of(measure, held_out, found.ranker) == values[best]
    ordered = sorted(values.items(), key=lambda item: item[1], reverse=best_is is max)
    assert found.trials == tuple(Trial({"penalty": penalty}, value) for penalty, value in ordered)
    assert [(number, total) for number, total, _ in told] == [(1, 3), (2, 3), (3, 3)]
    assert [trial.parameters["penalty"] for _, _, trial in told] == PENALTIES


def test_as_many_combinations_as_asked_for_are_drawn() -> None:
    choices: dict[str, list[object]] = {"one": list(range(6)), "two": list("abcde")}
    every = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    assert combinations_of(choices, None, 0) == every
    assert combinations_of(choices, 30, 0) == every
    assert combinations_of(choices, 99, 0) == every
    drawn = combinations_of(choices, 7, 0)
    assert len(drawn) == 7
    places = [every.index(each) for each in drawn]
    assert places == sorted(set(places))
    assert drawn == combinations_of(choices, 7, 0)
    assert drawn != combinations_of(choices, 7, 1)
    assert len(combinations_of(choices, 29, 3)) == 29
    with pytest.raises(ArgumentError, match="at least one value"):
        combinations_of({"one": []}, None, 0)


def test_a_search_tries_as_many_as_asked_for() -> None:
    data = made_up(10)
    found = tune(LinearRanker(), {"penalty": [0.1, 0.2, 0.3, 0.4]}, data, data, trials=2, seed=1)
    wanted = combinations_of({"penalty": [0.1, 0.2, 0.3, 0.4]}, 2, 1)
    assert sorted(trial.parameters["penalty"] for trial in found.trials) == [
        each["penalty"] for each in wanted
    ]


def test_of_equal_trials_the_first_is_kept() -> None:
    data = made_up(10)
    found = tune(LinearRanker(), {"tolerance": [1e-4, 1e-4 * (1 + 1e-12)]}, data, data)
    assert found.trials[0].value == found.trials[1].value
    assert found.ranker.tolerance == 1e-4
    assert found.trials[0].parameters["tolerance"] == 1e-4


def test_parameters_that_a_ranker_does_not_know() -> None:
    trees = with_parameters(TreeRanker(parameters={"max_depth": 3}), {"num_leaves": 4, "seed": 5})
    assert (trees.parameters, trees.seed) == ({"max_depth": 3, "num_leaves": 4}, 5)
    with pytest.raises(ArgumentError, match=r"leaves, lr: no such parameter. There are: .*penalty"):
        with_parameters(LinearRanker(), {"leaves": 4, "lr": 1, "penalty": 2})
    cascade = CascadeRanker(LinearRanker(), [NeuralRanker(), TreeRanker()])
    with_parameters(cascade, {"measure": "AP"})
    assert {each.measure for each in (cascade, cascade.base, *cascade.rerankers)} == {"AP"}
    assert [each.seed for each in cascade.rerankers] == [0, 0]
    np.testing.assert_equal(cascade.candidates, 100)
