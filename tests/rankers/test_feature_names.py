"""Columns are found by their names; what cannot be found is refused, not scored."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from podium.cluster import evaluate_shards
from podium.data import Dataset, write_shards
from podium.errors import DataError
from podium.measures import evaluate
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
    load_ranker,
)
from tests.rankers.made_up import made_up

NAMES = ("bm25", "clicks", "age", "length", "links", "spam")
ORDER = [4, 0, 5, 2, 1, 3]
RANKERS = {
    "linear": LinearRanker("ListNet()"),
    "lightgbm": TreeRanker(n_estimators=5),
    "xgboost": TreeRanker(engine="xgboost", n_estimators=5),
    "neural": NeuralRanker(hidden_layer_sizes=(4,), epochs=2),
    "boosted": BoostedRanker(n_estimators=5),
    "cascade": CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")], candidates=5),
}


def named(data: Dataset) -> Dataset:
    return replace(data, feature_names=NAMES)


def shuffled(data: Dataset) -> Dataset:
    """The same rows with the columns in another order, matched by their names."""
    names = tuple(NAMES[column] for column in ORDER)
    return replace(data, features=data.features[:, ORDER], feature_names=names)


@pytest.mark.parametrize("kind", RANKERS)
def test_a_data_set_with_columns_in_another_order_gets_the_same_scores(kind: str) -> None:
    data = named(made_up())
    fitted: Ranker = clone(RANKERS[kind]).fit(data)
    loaded = load_ranker(BytesIO(fitted.to_bytes()))
    for ranker in (fitted, loaded):
        np.testing.assert_array_equal(ranker.predict(shuffled(data)), fitted.predict(data))
        assert ranker.feature_names_in_.tolist() == list(NAMES)
        assert ranker.feature_names_in_.dtype == object
        assert ranker.score(shuffled(data)) == ranker.score(data)
    run = fitted.rank(shuffled(data))
    np.testing.assert_array_equal(run.scores, fitted.predict(data))


@pytest.mark.parametrize("kind", RANKERS)
def test_missing_and_additional_names_are_refused_by_name(kind: str) -> None:
    data = named(made_up(10))
    ranker = clone(RANKERS[kind]).fit(data)
    renamed = replace(data, feature_names=("bm25", "hits", *NAMES[2:]))
    with pytest.raises(DataError, match=r"missing: clicks; the ranker was not fitted on: hits"):
        ranker.predict(renamed)
    wider = replace(
        data,
        features=np.column_stack([data.features, data.labels]),
        feature_names=(*NAMES, "grade"),
    )
    with pytest.raises(DataError, match=r"^the ranker was not fitted on: grade"):
        ranker.predict(wider)
    np.testing.assert_array_equal(
        ranker.predict(wider.select_features(ranker.feature_names_in_)), ranker.predict(data)
    )


def frame(data: Dataset, names: tuple[str, ...] = NAMES) -> pd.DataFrame:
    return pd.DataFrame(data.features, columns=list(names))


@pytest.mark.parametrize("kind", ["linear", "lightgbm", "xgboost", "neural", "boosted"])
def test_a_data_frame_has_the_names_of_its_columns(kind: str) -> None:
    data = made_up()
    X = frame(data)
    ranker = clone(RANKERS[kind]).fit(X, data.labels, group=data.sizes)
    expected = clone(RANKERS[kind]).fit(data).predict(data)
    assert ranker.feature_names_in_.tolist() == list(NAMES)
    np.testing.assert_array_equal(ranker.predict(X), expected)
    np.testing.assert_array_equal(ranker.predict(X.iloc[:, ORDER]), expected)
    arrow = pa.Table.from_pandas(X.iloc[:, ORDER], preserve_index=False)
    np.testing.assert_array_equal(ranker.predict(arrow), expected)
    np.testing.assert_array_equal(ranker.predict(shuffled(data)), expected)
    with pytest.raises(DataError, match="missing: bm25, age"):
        ranker.predict(X.drop(columns=["bm25", "age"]))


def test_only_strings_are_names() -> None:
    data = made_up()
    numbered = pd.DataFrame(data.features)  # columns 0, 1, 2, …
    ranker = LinearRanker().fit(numbered, data.labels, group=data.sizes)
    assert not hasattr(ranker, "feature_names_in_")
    assert ranker.feature_names_ == ("1", "2", "3", "4", "5", "6")
    np.testing.assert_array_equal(ranker.predict(numbered), ranker.predict(data.features))
    with pytest.raises(DataError, match="0 is not"):
        LinearRanker().fit(numbered.rename(columns={3: "links"}), data.labels, group=data.sizes)
    assert not hasattr(LinearRanker(), "feature_names_in_")


def test_arrays_beside_names_are_taken_by_position_with_a_warning() -> None:
    data = made_up()
    X = frame(data)
    ranker = LinearRanker().fit(X, data.labels, group=data.sizes)
    with pytest.warns(UserWarning, match="X does not have feature names"):
        scores = ranker.predict(data.features)
    np.testing.assert_array_equal(scores, ranker.predict(X))
    unnamed = LinearRanker().fit(data.features, data.labels, group=data.sizes)
    with pytest.warns(UserWarning, match="fitted without feature names") as said:
        scores = unnamed.predict(X)
    assert said[0].filename == __file__
    np.testing.assert_array_equal(scores, unnamed.predict(data.features))


def test_a_data_set_with_numbers_is_not_taken_for_one_with_names() -> None:
    """As a LETOR file for a ranker that was trained on a Parquet file with names."""
    data = made_up()
    with pytest.raises(DataError, match="names in the ranker and only numbers in the data"):
        LinearRanker().fit(named(data)).predict(data)
    with pytest.raises(DataError, match="names in the data and only numbers in the ranker"):
        LinearRanker().fit(data).predict(named(data))


def test_numbers_are_names_where_the_order_differs() -> None:
    data = made_up()
    ranker = LinearRanker().fit(data)
    turned = replace(
        data, features=data.features[:, ::-1], feature_names=("6", "5", "4", "3", "2", "1")
    )
    np.testing.assert_array_equal(ranker.predict(turned), ranker.predict(data))
    with pytest.raises(DataError, match="5 features, but the ranker was fitted on 6"):
        ranker.predict(data.select_features(["1", "2", "3", "4", "5"]))


def test_a_column_that_is_there_twice_is_refused_by_name() -> None:
    data = made_up(10)
    X = frame(data)
    ranker = LinearRanker("ListNet()").fit(X, data.labels, group=data.sizes)
    twice = pd.concat([X, X[["clicks"]] + 1], axis=1)
    arrow = pa.table([*data.features.T, data.features[:, 1]], names=[*NAMES, "clicks"])
    for given in (twice, arrow):
        with pytest.raises(DataError, match="two features are named 'clicks'"):
            ranker.predict(given)
        with pytest.raises(DataError, match="two features are named 'clicks'"):
            LinearRanker().fit(given, data.labels, group=data.sizes)


def test_strings_that_look_like_numbers_are_names_in_a_data_frame() -> None:
    data = made_up(10)
    X = frame(data, tuple("123456"))
    ranker = LinearRanker("ListNet()").fit(X[list("234")], data.labels, group=data.sizes)
    for other in (list("123"), list("345")):
        with pytest.raises(DataError, match=r"missing: .*the ranker was not fitted on: [15]"):
            ranker.predict(X[other])
    with pytest.raises(DataError, match="names in the ranker and only numbers in the data"):
        ranker.score(X[list("123")], data.labels, group=data.sizes)
    first = LinearRanker("ListNet()").fit(X[list("123")], data.labels, group=data.sizes)
    assert first.feature_names_in_.tolist() == ["1", "2", "3"]
    for each in (first, load_ranker(BytesIO(first.to_bytes()))):
        np.testing.assert_array_equal(each.predict(X[list("312")]), first.predict(X[list("123")]))
        with pytest.raises(DataError, match=r"missing: 1; the ranker was not fitted on: 4"):
            each.predict(X[list("234")])
        with pytest.raises(
            DataError, match=r"missing: 1, 2, 3; the ranker was not fitted on: 4, 5, 6"
        ):
            each.predict(X[list("456")])
        with pytest.warns(UserWarning, match="X does not have feature names"):
            each.predict(data.features[:, :3])


def test_numbers_of_a_data_set_are_names_for_a_data_frame_that_has_some_of_them() -> None:
    data = made_up(10)
    X = frame(data, tuple("123456"))
    ranker = LinearRanker("ListNet()").fit(data.select_features(["1", "2", "3"]))
    assert not hasattr(ranker, "feature_names_in_")
    expected = ranker.predict(data.features[:, :3])
    np.testing.assert_array_equal(ranker.predict(X[list("312")]), expected)
    with pytest.raises(DataError, match="missing: 1; the ranker was not fitted on: 4"):
        ranker.predict(X[list("234")])


def test_columns_of_several_levels_are_refused() -> None:
    data = made_up(10)
    levels = pd.MultiIndex.from_product([["title", "body"], ["bm25", "tf", "idf"]])
    X = pd.DataFrame(data.features, columns=levels)
    with pytest.raises(DataError, match="several levels"):
        LinearRanker().fit(X, data.labels, group=data.sizes)
    with pytest.raises(DataError, match="several levels"):
        LinearRanker().fit(data).predict(X)


def test_long_lists_of_names_are_cut() -> None:
    names = [f"f{number}" for number in range(14)]
    data = made_up()
    wide = np.tile(data.features, (1, 3))[:, :14]
    ranker = LinearRanker("ListNet()", alpha=0.1).fit(
        pd.DataFrame(wide, columns=names), data.labels, group=data.sizes
    )
    with pytest.raises(DataError, match=r"missing: f2, f3, .*, f11 and 2 more"):
        ranker.predict(pd.DataFrame(wide[:, :2], columns=names[:2]))


def test_validation_is_put_in_the_order_of_the_training_data() -> None:
    train, held_out = named(made_up(20, noise=2.0)), named(made_up(20, noise=2.0, seed=4))
    one, other = (
        TreeRanker(n_estimators=30, early_stopping_rounds=5).fit(train, eval_set=each)
        for each in (held_out, shuffled(held_out))
    )
    assert one.to_bytes() == other.to_bytes()
    with pytest.raises(DataError, match=r"other features .*missing: bm25"):
        LinearRanker().fit(train, eval_set=train.select_features(NAMES[1:]))


def test_validation_shards_in_another_order_are_refused(tmp_path: Path) -> None:
    data = named(made_up(10))
    shards = write_shards(shuffled(data), tmp_path / "shards")
    with pytest.raises(DataError, match="in another order"):
        LinearRanker().fit(data, eval_set=shards)


def test_shards_are_scored_by_name(tmp_path: Path) -> None:
    data = named(made_up())
    ranker = LinearRanker("ListNet()").fit(data)
    expected = evaluate("nDCG@10", data, ranker.predict(data)).means
    write_shards(shuffled(data), tmp_path / "shuffled")
    found = evaluate_shards("nDCG@10", tmp_path / "shuffled", score={"mine": ranker})
    assert found["mine"].means == pytest.approx(expected)
    write_shards(made_up(), tmp_path / "numbered")
    with pytest.raises(DataError, match="only numbers in the data"):
        evaluate_shards("nDCG@10", tmp_path / "numbered", score={"mine": ranker})


def test_a_data_set_of_a_data_frame_keeps_its_names() -> None:
    data = made_up(3)
    made = Dataset.from_arrays(frame(data), data.labels, group=data.sizes)
    assert made.feature_names == NAMES
    given = Dataset.from_arrays(frame(data), data.labels, group=data.sizes, feature_names="abcdef")
    assert given.feature_names == tuple("abcdef")
    with pytest.raises(DataError, match="no features x, y"):
        made.select_features(["age", "x", "y"])
    chosen = made.select_features(["age", "bm25"])
    np.testing.assert_array_equal(chosen.features, data.features[:, [2, 0]])
    assert chosen.feature_names == ("age", "bm25")
