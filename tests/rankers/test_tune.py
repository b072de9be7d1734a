"""Searches: which combinations are tried, in which order, and which ranker is kept."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, write_shards
from podium.errors import ArgumentError
from podium.measures import evaluate
from podium.rankers import CascadeRanker, LinearRanker, NeuralRanker, TreeRanker, tune
from podium.rankers.tuning import Trial, _reports, parameter_combinations, with_parameters
from tests.rankers.made_up import made_up
from tests.rankers.one_feature import Loading, OneFeature, Recording

PENALTIES = [1e5, 10.0, 1e-3]  # the best is neither the first nor the last


def value_of(measure: str, data: Dataset, ranker: LinearRanker) -> float:
    return float(next(iter(evaluate(measure, data, ranker.predict(data)).means.values())))


@pytest.mark.parametrize(("measure", "best_is"), [("nDCG@10", max), ("WKT(k=5)", min)])
def test_the_best_ranker_is_kept_and_trials_are_sorted(measure: str, best_is: object) -> None:
    train, held_out = made_up(40, noise=0.5), made_up(20, noise=0.5, seed=7)
    reports: list[tuple[int, int, Trial]] = []
    found = tune(
        LinearRanker("SquaredError()", max_iter=500),
        {"alpha": PENALTIES},
        train,
        held_out,
        measure=measure,
        progress=lambda *state: reports.append(state),
    )
    values = {}
    for alpha in PENALTIES:
        ranker = LinearRanker("SquaredError()", alpha=alpha, max_iter=500)
        ranker.fit(train, eval_set=held_out)
        values[alpha] = value_of(measure, held_out, ranker)
    assert len(set(values.values())) == 3
    best = best_is(values, key=values.__getitem__)  # type: ignore[operator]
    assert best == PENALTIES[1]
    assert found.best_ranker.alpha == best
    assert value_of(measure, held_out, found.best_ranker) == values[best]
    ordered = sorted(values.items(), key=lambda item: item[1], reverse=best_is is max)
    assert found.trials == tuple(Trial({"alpha": alpha}, value) for alpha, value in ordered)
    assert [(number, total) for number, total, _ in reports] == [(1, 3), (2, 3), (3, 3)]
    assert [trial.params["alpha"] for _, _, trial in reports] == PENALTIES


def test_as_many_combinations_as_asked_for_are_drawn() -> None:
    choices: dict[str, list[object]] = {"one": list(range(6)), "two": list("abcde")}
    every = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    assert parameter_combinations(choices, None, 0) == every
    assert parameter_combinations(choices, 30, 0) == every
    assert parameter_combinations(choices, 99, 0) == every
    drawn = parameter_combinations(choices, 7, 0)
    assert len(drawn) == 7
    places = [every.index(each) for each in drawn]
    assert places == sorted(set(places))
    assert drawn == parameter_combinations(choices, 7, 0)
    assert drawn != parameter_combinations(choices, 7, 1)
    assert len(parameter_combinations(choices, 29, 3)) == 29
    with pytest.raises(ArgumentError, match="a value or more"):
        parameter_combinations({"one": []}, None, 0)


def test_a_search_tries_as_many_as_asked_for() -> None:
    data = made_up(10)
    found = tune(
        LinearRanker(), {"alpha": [0.1, 0.2, 0.3, 0.4]}, data, data, n_trials=2, random_state=1
    )
    wanted = parameter_combinations({"alpha": [0.1, 0.2, 0.3, 0.4]}, 2, 1)
    assert sorted(trial.params["alpha"] for trial in found.trials) == [
        each["alpha"] for each in wanted
    ]


def test_of_equal_trials_the_first_is_kept() -> None:
    data = made_up(10)
    found = tune(LinearRanker(), {"tol": [1e-4, 1e-4 * (1 + 1e-12)]}, data, data)
    assert found.trials[0].value == found.trials[1].value
    assert found.best_ranker.tol == 1e-4
    assert found.trials[0].params["tol"] == 1e-4


def test_parameters_that_a_ranker_does_not_know() -> None:
    trees = with_parameters(
        TreeRanker(engine_params={"max_depth": 3}), {"num_leaves": 4, "random_state": 5}
    )
    assert (trees.engine_params, trees.random_state) == ({"max_depth": 3, "num_leaves": 4}, 5)
    with pytest.raises(ArgumentError, match=r"no parameter leaves, lr. Its parameters are: alpha"):
        with_parameters(LinearRanker(), {"leaves": 4, "lr": 1, "alpha": 2})
    cascade = CascadeRanker(LinearRanker(), [NeuralRanker(), TreeRanker()])
    with_parameters(cascade, {"measure": "AP"})
    assert {each.measure for each in (cascade, cascade.base, *cascade.rerankers)} == {"AP"}
    assert [each.random_state for each in cascade.rerankers] == [0, 0]
    np.testing.assert_equal(cascade.candidates, 100)


def test_what_is_set_here_comes_before_what_was_set() -> None:
    assert with_parameters(TreeRanker(), {"num_leaves": 4}).engine_params == {"num_leaves": 4}
    trees = TreeRanker(engine_params={"max_depth": 3, "num_leaves": 9})
    with_parameters(trees, {"num_leaves": 4})
    assert trees.engine_params == {"max_depth": 3, "num_leaves": 4}
    with_parameters(trees, {"random_state": 8})
    assert (trees.engine_params, trees.random_state) == ({"max_depth": 3, "num_leaves": 4}, 8)


def test_parameters_of_a_cascades_rankers_are_not_its_own() -> None:
    cascade = CascadeRanker(LinearRanker(), [LinearRanker()])
    with pytest.raises(
        ArgumentError, match=r"no parameter base__alpha. Its parameters are: base, base_votes"
    ):
        with_parameters(cascade, {"base__alpha": 2.0})
    with_parameters(cascade, {"candidates": 7})
    assert cascade.candidates == 7
    assert cascade.base.measure == LinearRanker().measure


def test_by_default_ndcg_at_10_decides_and_the_first_seed_draws() -> None:
    data = made_up(10)
    choices = {"column": [0, 1, 2, 3, 4, 5]}
    found = tune(OneFeature(), choices, data, data)
    values = [
        evaluate("nDCG@10", data, data.features[:, column]).means["nDCG@10"] for column in range(6)
    ]
    assert sorted(values, reverse=True) == [trial.value for trial in found.trials]
    assert found.best_ranker.column == int(np.argmax(values))
    drawn = sorted(
        trial.params["column"]
        for trial in tune(OneFeature(), choices, data, data, n_trials=3).trials
    )
    assert drawn == sorted(np.random.default_rng(0).permutation(6)[:3])
    assert drawn != sorted(np.random.default_rng(1).permutation(6)[:3])


def test_the_ranker_that_is_tuned_is_not_changed() -> None:
    data, ranker = made_up(5), OneFeature(5)
    found = tune(ranker, {"column": [0, 1]}, data, data)
    assert ranker.column == 5
    assert not ranker.__sklearn_is_fitted__()
    assert found.best_ranker is not ranker


def test_shards_are_loaded_once_unless_the_ranker_streams_them(tmp_path: Path) -> None:
    data, held_out = made_up(8), made_up(4, seed=1)
    shards = write_shards(data, tmp_path / "train")
    valid = write_shards(held_out, tmp_path / "valid")
    Recording.fits.clear()
    tune(Recording(), {"column": [0, 1, 2]}, shards, valid)
    assert all(given is shards for given, _ in Recording.fits)
    tune(Loading(), {"column": [0, 1, 2]}, shards, valid)
    assert len(Recording.fits) == 6
    loaded = [given for given, _ in Recording.fits[3:]]
    assert isinstance(loaded[0], Dataset)
    assert loaded[0].equals(data)
    assert all(given is loaded[0] for given in loaded)
    for _, given in Recording.fits:
        assert isinstance(given, Dataset)
        assert given.equals(held_out)


def test_engine_params_that_are_given_are_kept_beside_others() -> None:
    old = TreeRanker(engine_params={"min_data_in_leaf": 5})
    new = with_parameters(old, {"engine_params": {"max_bin": 63}, "num_leaves": 7})
    assert new.engine_params == {"max_bin": 63, "num_leaves": 7}
    again = with_parameters(TreeRanker(engine_params={"max_bin": 63}), {"num_leaves": 7})
    assert again.engine_params == {"max_bin": 63, "num_leaves": 7}


def test_a_measure_by_other_conventions_is_another_one() -> None:
    assert _reports(LinearRanker(measure="nDCG@10"), "nDCG@10")
    assert not _reports(LinearRanker(measure="ndcg_cut_10"), "nDCG@10")
    assert _reports(LinearRanker(measure="ndcg_cut_10"), "ndcg_cut_10")
