"""The smallest change of a feature that swaps two documents: it swaps, and nothing smaller does."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.explain import smallest_changes
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
)
from tests.rankers.made_up import made_up

DATA = made_up(15, 20)

RANKERS: dict[str, Ranker] = {
    "linear": LinearRanker("PairLogistic()"),
    "lightgbm": TreeRanker(n_estimators=15),
    "zeros are missing": TreeRanker(n_estimators=15, zero_as_missing=True),
    "xgboost": TreeRanker(engine="xgboost", n_estimators=15),
    "boosted thresholds": BoostedRanker(n_estimators=25),
    "boosted features": BoostedRanker(beta=1.0, weak_ranker="feature", n_estimators=5),
    "neural": NeuralRanker(
        "ListMLE(k=5)", hidden_layer_sizes=(8, 4), epochs=10, learning_rate=0.01
    ),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Ranker]:
    return {name: ranker.fit(DATA) for name, ranker in RANKERS.items()}


def scores_with(ranker: Ranker, row: np.ndarray, column: int, values: np.ndarray) -> np.ndarray:
    rows = np.repeat(row[None], len(values), axis=0)
    rows[:, column] = values
    return ranker.predict(rows)


@pytest.mark.parametrize("name", RANKERS)
def test_no_smaller_change_swaps(fitted: dict[str, Ranker], name: str) -> None:
    """By a fine grid over what lies nearer, and by the number right before."""
    ranker = fitted[name]
    # Scores of a network depend on the number of rows that are scored at once, in the last digit.
    rounding = 2e-6 if name == "neural" else 0.0
    swapped = set()
    for query in ("0", "1"):
        explanation = ranker.explain(DATA, query=query)
        upper, lower = int(explanation.order[4]), int(explanation.order[6])
        target, row = explanation.scores[upper], DATA[int(query)].features[lower]
        changes = smallest_changes(ranker, DATA, query, upper, lower)
        of_feature = {change.feature: change for change in changes}
        for column in range(6):
            change = of_feature.get(str(column + 1))
            if change is None:
                # No value of the data swaps them: all of them are tried.
                every = scores_with(ranker, row, column, DATA.features[:, column])
                assert not (every > target + rounding).any()
                continue
            swapped.add(change.feature)
            after = scores_with(ranker, row, column, np.array([change.changed], np.float32))[0]
            assert change.value == row[column]
            assert change.score > target
            assert after > target  # alone, too
            assert change.score == pytest.approx(after, abs=rounding)
            before = np.nextafter(np.float32(change.changed), row[column])
            reach = abs(float(before) - change.value)
            nearer = np.linspace(change.value - reach, change.value + reach, 4001)
            nearer = np.append(np.float32(nearer), before)
            nearer = nearer[np.abs(nearer - change.value) <= reach]
            if name == "neural":  # which is searched within the range of the data
                low, high = DATA.features[:, column].min(), DATA.features[:, column].max()
                nearer = nearer[(nearer >= low) & (nearer <= high)]
            assert not (scores_with(ranker, row, column, nearer) > target + rounding).any()
    assert "1" in swapped


def test_linear_changes_have_their_closed_form(fitted: dict[str, Ranker]) -> None:
    ranker = fitted["linear"]
    explanation = ranker.explain(DATA, query="3")
    upper, lower = explanation.order[0], explanation.order[9]
    gap = explanation.scores[upper] - explanation.scores[lower]
    changes = smallest_changes(ranker, DATA, "3", int(upper), int(lower))
    assert len(changes) == 6
    centered = np.concatenate([query.features - query.features.mean(axis=0) for query in DATA])
    deviations = centered.std(axis=0)
    for change in changes:
        column = int(change.feature) - 1
        value = DATA[3].features[lower, column]
        needed = value + gap / ranker.coef_[column]
        assert change.changed == pytest.approx(needed, rel=1e-5)
        size = abs(change.changed - value) / deviations[column]
        assert change.deviations == pytest.approx(size, rel=1e-5)
        column_values = DATA.features[:, column]
        assert change.observed == (column_values.min() <= needed <= column_values.max())
    sizes = [change.deviations for change in changes]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_step_that_is_small_beside_the_value_is_made(sign: float) -> None:
    data = Dataset.from_arrays([[1e6, 0.001], [1e6, 0.0]], [1, 0], group=[2])
    ranker = LinearRanker("ListNet()").fit(data)
    ranker.coef_ = np.array([sign, 1.0])
    changes = {change.feature: change for change in smallest_changes(ranker, data, "0", 0, 1)}
    assert set(changes) == {"1", "2"}
    next_number = np.nextafter(np.float32(1e6), np.float32(sign * np.inf))
    assert changes["1"].changed == next_number
    assert changes["2"].changed == np.nextafter(np.float32(0.001), np.float32(1))


def test_a_threshold_is_crossed_by_one_number() -> None:
    X = np.arange(40, dtype=np.float32)[:, None] % 10
    data = Dataset.from_arrays(X, X[:, 0] >= 5, group=[10] * 4)
    ranker = BoostedRanker(n_estimators=1).fit(data)
    assert ranker.thresholds_.tolist() == [4.5]
    ranker.thresholds_ = np.array([4.5, 8.5])
    ranker.feature_indices_ = np.array([0, 0])
    ranker.estimator_weights_ = np.array([1.0, 1.0])
    # 2 must become larger than 8.5 to be above 7, with which it ties from 4.5 on.
    [change] = smallest_changes(ranker, data, "0", "7", "2")
    assert change.changed == np.nextafter(np.float32(8.5), np.float32(9))
    assert (change.value, change.score, change.observed) == (2.0, 2.0, True)
    assert smallest_changes(ranker, data, "0", "9", "2") == []
    with pytest.raises(ArgumentError, match="'2' is not above '7'"):
        smallest_changes(ranker, data, "0", "2", "7")


def test_a_missing_feature_is_left_out(fitted: dict[str, Ranker]) -> None:
    features = DATA.features.copy()
    explanation = fitted["lightgbm"].explain(DATA, query="0")
    lower = int(explanation.order[5])
    features[lower, 0] = np.nan
    data = replace(DATA, features=features)
    best = int(fitted["lightgbm"].explain(data, query="0").order[0])
    changes = smallest_changes(fitted["lightgbm"], data, "0", best, lower)
    assert "1" not in {change.feature for change in changes}


def test_a_constant_feature_has_infinite_deviations() -> None:
    X = np.column_stack([np.tile([1.0, 2, 3], 4), np.repeat([5.0, 6, 7, 8], 3)])
    data = Dataset.from_arrays(X, np.tile([0, 1, 2], 4), group=[3] * 4)
    ranker = LinearRanker("ListNet()").fit(data)
    ranker.coef_ = np.array([1.0, 0.5])
    first, second = smallest_changes(ranker, data, "0", "2", "1")
    assert (first.feature, first.value, first.observed) == ("1", 2.0, False)
    assert first.changed == np.nextafter(np.float32(3), np.float32(4))
    assert first.deviations == pytest.approx(1 / np.sqrt(2 / 3), rel=1e-6)
    assert first.score == pytest.approx(3.0 + 2.5, abs=1e-6)
    assert (second.feature, second.deviations, second.observed) == ("2", np.inf, True)
    assert second.changed == pytest.approx(7.0, abs=1e-5)


def test_what_cannot_be_changed_is_refused(fitted: dict[str, Ranker]) -> None:
    cascade = CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")]).fit(DATA)
    order = cascade.explain(DATA, query="0").order
    with pytest.raises(ArgumentError, match="base or of a reranker"):
        smallest_changes(cascade, DATA, "0", int(order[0]), int(order[1]))
    order = fitted["linear"].explain(DATA, query="0").order
    with pytest.raises(ArgumentError, match="Name the upper document first"):
        smallest_changes(fitted["linear"], DATA, "0", int(order[1]), int(order[0]))
    with pytest.raises(DataError, match="'x'"):
        smallest_changes(fitted["linear"], DATA, "x", 0, 1)


def test_explaining_needs_no_other_extra() -> None:
    """Changes read the thresholds of trees as exports do, but need nothing that exports need."""
    code = (
        "import sys\n"
        "for name in ('httpx2', 'onnx', 'onnxruntime', 'mlflow'):\n"
        "    sys.modules[name] = None\n"
        "import numpy as np\n"
        "from podium.data import Dataset\n"
        "from podium.explain import smallest_changes\n"
        "from podium.rankers import TreeRanker\n"
        "X = np.arange(40.0)[:, None] % 10\n"
        "data = Dataset.from_arrays(X, X[:, 0], group=[10] * 4)\n"
        "ranker = TreeRanker(n_estimators=3, min_data_in_leaf=1).fit(data)\n"
        "print(len(smallest_changes(ranker, data, '0', '7', '2')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("1\n", "")
