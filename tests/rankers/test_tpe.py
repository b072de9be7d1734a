"""Searches by Optuna: seeded, over the same values as a grid, without repeats, and pruned."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("optuna", reason="the extra tuning is not installed")

from podium.cluster.tuning import tune as tune_anywhere
from podium.data import Dataset
from podium.errors import ArgumentError
from podium.measures import evaluate
from podium.rankers import LinearRanker, tune
from podium.rankers.fit_progress import Progress
from podium.rankers.training_data import TrainingData
from podium.rankers.tuning import Trial, TuningResult
from tests.rankers.made_up import made_up
from tests.rankers.one_feature import OneFeature

DATA = made_up(10)
VALUES = [
    evaluate("nDCG@10", DATA, DATA.features[:, column]).means["nDCG@10"] for column in range(6)
]


class Reported(OneFeature):
    """Reports made-up validation measures: a number for each column, after each of ten steps."""

    steps: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, column: int = 0, bonus: float = 0.0) -> None:
        super().__init__(column)
        self.bonus = bonus

    def _fit(
        self, data: TrainingData, validation: TrainingData | None, progress: Progress | None
    ) -> None:
        del data, validation
        assert progress is not None
        for step in range(1, 11):
            Reported.steps.append((self.column, step))
            progress(step, 0.0, self.bonus + self.column / 10)


def search(grid: dict[str, list], n_trials: int | None = None, **options: Any) -> TuningResult:
    return tune(OneFeature(), grid, DATA, DATA, n_trials=n_trials, sampler="tpe", **options)


def test_all_combinations_are_tried_once_at_most() -> None:
    result = search({"column": [0, 1, 2, 3, 4, 5]}, n_trials=50)
    assert sorted(trial.params["column"] for trial in result.trials) == [0, 1, 2, 3, 4, 5]
    assert [trial.value for trial in result.trials] == sorted(VALUES, reverse=True)
    assert result.best_ranker.column == int(np.argmax(VALUES))
    assert not any(trial.pruned for trial in result.trials)


@pytest.mark.parametrize("columns", [[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2]], ids=["range", "set"])
def test_the_seed_decides_what_is_tried(columns: list[int]) -> None:
    def order(seed: int) -> list[int]:
        states: list[tuple[int, int, Trial]] = []
        search({"column": columns}, 4, random_state=seed, progress=lambda *s: states.append(s))
        assert [(number, total) for number, total, _ in states] == [(1, 4), (2, 4), (3, 4), (4, 4)]
        return [trial.params["column"] for _, _, trial in states]

    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in range(4)}) > 1
    assert len(set(order(0))) == 4


def test_it_learns_from_earlier_trials() -> None:
    # One of 400 combinations is the best, and values fall with the distance from it.
    class Hill(OneFeature):
        def __init__(self, x: int = 0, y: int = 0) -> None:
            super().__init__(0)
            self.x, self.y = x, y

        def _predict(self, features: np.ndarray) -> np.ndarray:
            noise = np.random.default_rng(0).normal(size=len(features))
            return labels + (abs(self.x - 13) + abs(self.y - 4)) * 0.3 * noise

    labels = DATA.labels.astype(float)
    grid = {"x": list(range(20)), "y": list(range(20))}
    best = {
        sampler: np.mean(
            [
                tune(
                    Hill(), grid, DATA, DATA, n_trials=30, random_state=seed, sampler=sampler
                ).trials[0].value
                for seed in range(2)
            ]
        )
        for sampler in ("tpe", "random")
    }  # fmt: skip
    assert best["tpe"] > best["random"]


def test_fits_behind_the_median_are_pruned() -> None:
    Reported.steps.clear()
    # The first five are fitted to their ends; made-up values of column 0 are the lowest of all.
    order: list[Trial] = []
    result = tune(
        Reported(),
        {"column": [0, 1, 2, 3, 4, 5], "bonus": [0.0, 1.0]},
        DATA,
        DATA,
        n_trials=12,
        sampler="tpe",
        progress=lambda _number, _total, trial: order.append(trial),
    )
    reported = [trial.params["bonus"] + trial.params["column"] / 10 for trial in order]
    expected = []
    for number, value in enumerate(reported):
        complete = [other for other, state in zip(reported, expected, strict=False) if not state]
        expected.append(number >= 5 and value < np.median(complete))
    assert [trial.pruned for trial in order] == expected
    assert any(expected)
    assert len(Reported.steps) == sum(1 if pruned else 10 for pruned in expected)
    for trial, value in zip(order, reported, strict=True):
        assert trial.value == (value if trial.pruned else VALUES[trial.params["column"]])
    assert [trial.pruned for trial in result.trials] == sorted(expected)  # the pruned come last
    complete_values = [trial.value for trial in result.trials if not trial.pruned]
    assert complete_values == sorted(complete_values, reverse=True)
    assert evaluated(result, DATA) == complete_values[0]


def evaluated(result: TuningResult, data: Dataset) -> float:
    return float(evaluate("nDCG@10", data, result.best_ranker.predict(data)).means["nDCG@10"])


def test_smaller_can_be_better() -> None:
    values = [
        evaluate("WKT(k=5)", DATA, DATA.features[:, column]).means["WKT(k=5)"]
        for column in range(6)
    ]
    result = search({"column": [0, 1, 2, 3, 4, 5]}, n_trials=6, measure="WKT(k=5)")
    assert [trial.value for trial in result.trials] == sorted(values)
    assert result.best_ranker.column == int(np.argmin(values))


def test_a_fit_that_reports_another_measure_is_not_pruned() -> None:
    class Measured(Reported):
        def __init__(self, column: int = 0, bonus: float = 0.0, measure: str = "nDCG@10") -> None:
            super().__init__(column, bonus)
            self.measure = measure

    grid: dict[str, Any] = {"column": [0, 1, 2, 3, 4, 5], "bonus": [0.0, 1.0]}
    for measure, own, expected in (
        ("WKT(k=5)", "nDCG@10", False), ("nDCG@10", "nDCG@5", False), ("nDCG@10", "nDCG@10", True),
    ):  # fmt: skip
        result = tune(
            Measured(measure=own), grid, DATA, DATA, measure=measure, n_trials=12, sampler="tpe"
        )
        assert any(trial.pruned for trial in result.trials) is expected
        for trial in result.trials:
            if not trial.pruned:
                column = DATA.features[:, trial.params["column"]]
                assert trial.value == evaluate(measure, DATA, column).means[measure]


def test_a_large_space_is_not_listed() -> None:
    grid: dict[str, Any] = {
        "column": [1] * 30_000,
        "bonus": [0.5] * 30_000,
    }  # a list of 900 million combinations
    result = tune(Reported(), grid, DATA, DATA, n_trials=2, sampler="tpe")
    assert [trial.params for trial in result.trials] == [{"column": 1, "bonus": 0.5}] * 2


def test_seeds_and_values_are_those_of_other_searches() -> None:
    values = (column for column in (3, 1))
    result = tune(
        OneFeature(), {"column": values}, DATA, DATA, n_trials=2, sampler="tpe",  # type: ignore[dict-item]
        random_state=2**63 - 1,
    )  # fmt: skip
    assert sorted(trial.params["column"] for trial in result.trials) == [1, 3]


def test_mistakes_are_refused(tmp_path: object) -> None:
    with pytest.raises(ArgumentError, match="the sampler tpe needs a number of trials"):
        search({"column": [0, 1]})
    with pytest.raises(ArgumentError, match="There is no sampler 'cma'"):
        tune(OneFeature(), {"column": [0]}, DATA, DATA, sampler="cma")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="one trial after the other"):
        tune_anywhere(
            LinearRanker(), {"alpha": [1.0]}, DATA, DATA,
            n_trials=1, sampler="tpe", results=f"{tmp_path}/trials.parquet",
        )  # fmt: skip
