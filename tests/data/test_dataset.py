"""Data sets: making, selecting, dividing and joining them, against plain Python."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset, Judgments, concat_datasets
from podium.errors import ArgumentError, DataError
from tests.data.strategies import assert_same, datasets


def contents(data: Dataset) -> dict[str, list[tuple]]:
    """What a data set holds, in plain Python: the rows of each query id."""
    return {
        query.id: [
            (features.tobytes(), float(label), document)
            for features, label, document in zip(
                query.features,
                query.labels,
                [None] * len(query.labels)
                if query.document_ids is None
                else query.document_ids.to_pylist(),
                strict=True,
            )
        ]
        for query in data
    }


def small(queries: int = 4) -> Dataset:
    rows = 2 * queries
    return Dataset.from_arrays(
        np.arange(3 * rows).reshape(rows, 3), labels=np.arange(rows), group=[2] * queries
    )


@given(datasets(), st.randoms(use_true_random=False))
def test_order_of_rows_across_queries_does_not_matter(data: Dataset, random) -> None:
    # A shuffle of the queries' turns that keeps the order of rows within each query.
    turns = data.query_of_row.tolist()
    random.shuffle(turns)
    next_rows = data.offsets[:-1].tolist()
    rows = []
    for query in turns:
        rows.append(next_rows[query])
        next_rows[query] += 1
    documents = None if data.document_ids is None else data.document_ids.take(pa.array(rows))
    again = Dataset.from_arrays(
        data.features[rows],
        labels=data.labels[rows],
        qid=data.query_id_of_row().take(pa.array(rows)),
        document_ids=documents,
    )
    assert contents(again) == contents(data)
    assert_same(again.select(data.query_ids.to_pylist()), data)


@given(datasets())
def test_groups_and_ids_make_the_same(data: Dataset) -> None:
    by_id = Dataset.from_arrays(
        data.features.tolist() if data.feature_names else data.features,
        labels=data.labels.tolist(),
        qid=data.query_id_of_row().to_pylist(),
        document_ids=data.document_ids,
    )
    assert_same(by_id, data)


@settings(max_examples=60)
@given(datasets(named=True), st.data())
def test_selecting(data: Dataset, draw: st.DataObject) -> None:
    chosen = draw.draw(st.lists(st.integers(0, len(data) - 1), unique=True))
    ids = [data.query_ids[position].as_py() for position in chosen]
    selected = data.select(chosen)
    by_query = contents(data)
    assert list(contents(selected).items()) == [(name, by_query[name]) for name in ids]
    assert selected.feature_names == data.feature_names
    assert_same(data.select(np.array(chosen, np.int32)), selected)
    assert_same(data.select([position - len(data) for position in chosen]), selected)
    if ids:
        assert_same(data.select(ids), selected)
        assert_same(data.select(pa.array(ids)), selected)
    mask = np.isin(np.arange(len(data)), chosen)
    assert_same(data.select(mask), data.select(sorted(chosen)))


def test_neighboring_queries_are_selected_without_a_copy() -> None:
    data = small()
    assert np.shares_memory(data.select([1, 2]).features, data.features)
    assert not np.shares_memory(data.select([2, 1]).features, data.features)


@pytest.mark.parametrize(
    ("queries", "problem"),
    [
        ([4], "out of range for 4 queries"),
        ([-5], "out of range for 4 queries"),
        ([1, 1], "selected twice"),
        ([1, -3], "selected twice"),
        (["1", "1"], "selected twice"),
        (["7"], "no query has id '7'"),
        ([True, False], "mask does not have 4"),
        ([0.7], "positions cannot have type"),
        ([b"1"], "positions cannot have type"),
    ],
)
def test_what_cannot_be_selected(queries: list, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        small().select(queries)


@given(
    datasets(),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
def test_splits_divide_the_queries(data: Dataset, weights: list[int], seed: int) -> None:
    fractions = [weight / sum(weights) for weight in weights]
    parts = data.split(*fractions, random_state=seed)
    assert len(parts) == len(weights)
    by_query = contents(data)
    order = list(by_query)
    selected = [list(contents(part).items()) for part in parts]
    assert Counter(name for part in selected for name, _ in part) == Counter(order)
    for part, fraction in zip(selected, fractions, strict=True):
        assert part == [(name, by_query[name]) for name in sorted(dict(part), key=order.index)]
        assert abs(len(part) - fraction * len(data)) <= 1
    again = data.split(*fractions, random_state=seed)
    assert all(one.equals(other) for one, other in zip(parts, again, strict=True))


def test_splits_depend_on_the_seed() -> None:
    data = small(queries=50)
    one, other = (data.split(0.5, 0.5, random_state=seed)[0] for seed in (1, 2))
    assert not one.equals(other)


@pytest.mark.parametrize("fractions", [(), (0.5,), (0.5, 0.6), (1.5, -0.5)])
def test_fractions_that_do_not_sum_to_one(fractions: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="do not sum to 1"):
        small().split(*fractions)


@given(st.integers(2, 12), st.data())
def test_folds_hold_out_each_query_once(queries: int, draw: st.DataObject) -> None:
    data = small(queries)
    count = draw.draw(st.integers(2, queries))
    folds = data.folds(count, random_state=draw.draw(st.integers(0, 99)))
    assert len(folds) == count
    tested = [query for _, test in folds for query in test.query_ids.to_pylist()]
    assert sorted(tested) == sorted(data.query_ids.to_pylist())
    for train, test in folds:
        assert len(test) in (queries // count, -(-queries // count))
        assert contents(train) | contents(test) == contents(data)
        assert not contents(train).keys() & contents(test).keys()


@pytest.mark.parametrize("count", [1, 5])
def test_impossible_folds(count: int) -> None:
    with pytest.raises(ArgumentError, match=f"{count} folds of 4 queries"):
        small().folds(count)


@settings(max_examples=60)
@given(datasets(named=True), st.data())
def test_concat_of_pieces_is_the_whole(data: Dataset, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(1, len(data)), max_size=3)) | {0, len(data)})
    pieces = [data.select(np.arange(a, b)) for a, b in pairwise(cuts)]
    assert_same(concat_datasets(pieces), data)


def test_concat_fills_missing_document_ids() -> None:
    one = Dataset.from_arrays([[1.0]], labels=[1], qid=["a"], document_ids=["d"])
    two = Dataset.from_arrays([[2.0], [3.0]], labels=[1, 0], qid=["b", "b"])
    assert concat_datasets([two, one]).document_ids.to_pylist() == [None, None, "d"]
    assert concat_datasets([two]).document_ids is None


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ([], "nothing to concatenate"),
        ([small(), small()], "query '0' is in two"),
        ([small(), small(2).without_features()], "different features"),
    ],
)
def test_what_cannot_be_concatenated(others: list[Dataset], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        concat_datasets(others)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"features": [1.0, 2.0]}, "features have 1 dimensions"),
        ({"features": [["x"], ["y"]]}, "features are not numbers"),
        ({"features": [[1.0], [np.inf]]}, "a feature is infinite"),
        ({"features": [[1.0], [1e39]]}, "a feature is infinite"),
        ({"features": [[1.0]]}, "1 features for 2 rows"),
        ({"labels": [1, np.nan]}, "the label of row 1 is nan"),
        ({"labels": [-np.inf, 1]}, "the label of row 0 is -inf"),
        ({"labels": [[1], [2]]}, "labels have 2 dimensions"),
        ({"labels": [1, None]}, "the label of row 1 is nan"),
        ({"labels": [1]}, "1 labels for 2 rows"),
        ({"qid": [1, 2, 3]}, "2 features for 3 rows"),
        ({"qid": [1, None]}, "missing values"),
        ({"document_ids": ["a"]}, "1 document ids for 2 rows"),
        ({"document_ids": "ab"}, "one string"),
        ({"feature_names": ["a", "b"]}, "2 feature names for 1 features"),
        ({"features": [[1, 2], [3, 4]], "feature_names": ["a", "a"]}, "two features are named 'a'"),
    ],
)
def test_arrays_that_do_not_fit(arguments: dict, problem: str) -> None:
    good = {"features": [[1.0], [2.0]], "labels": [0, 1], "qid": ["a", "b"]}
    with pytest.raises(DataError, match=problem):
        Dataset.from_arrays(**good | arguments)


@pytest.mark.parametrize(
    ("offsets", "ids", "problem"),
    [
        ([], [], "do not divide"),
        ([0, 1], ["a"], "document_ids has 2 entries for 1 rows"),
        ([0, 2], ["a", "b"], "2 offsets for 2 queries"),
        ([0, 0, 2], ["a", "b"], "a query has no rows"),
        ([0, 3, 2], ["a", "b"], "do not divide"),
    ],
)
def test_offsets_that_do_not_fit(offsets: list[int], ids: list[str], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        Judgments(
            query_ids=pa.array(ids, pa.large_string()),
            offsets=np.array(offsets, np.int64),
            document_ids=pa.array(["x", "y"], pa.large_string()),
            labels=np.zeros(2, np.float32),
        )


def test_features_of_the_constructor_are_two_dimensional() -> None:
    with pytest.raises(DataError, match="not two-dimensional"):
        Dataset(
            query_ids=pa.array(["a"], pa.large_string()),
            offsets=np.array([0, 1]),
            features=np.zeros(1, np.float32),
            labels=np.zeros(1, np.float32),
        )


def test_queries_by_position() -> None:
    data = small()
    assert data[1].id == data[-3].id == "1"
    assert data[1].labels.tolist() == [2, 3]
    assert [query.id for query in data] == ["0", "1", "2", "3"]
    for position in (4, -5):
        with pytest.raises(IndexError):
            data[position]


def test_an_empty_data_set() -> None:
    data = Dataset.from_arrays(np.empty((0, 2)), labels=[], qid=[])
    assert (len(data), data.rows, data.feature_names) == (0, 0, ("1", "2"))
    assert data.select([]).equals(data)
    assert data.normalize().equals(data)
    assert data.top_k(3).equals(data)


def test_equality_sees_every_field() -> None:
    def make(**changes: object) -> Dataset:
        fields = {"features": [[1.0], [np.nan]], "labels": [0, 1], "qid": ["a", "b"]}
        return Dataset.from_arrays(**fields | changes)

    assert make().equals(make())
    others = [
        make(features=[[1.0], [2.0]]),
        make(labels=[0, 2]),
        make(qid=["a", "a"]),
        make(qid=["a", "c"]),
        make(document_ids=["x", "y"]),
        make(feature_names=["bm25"]),
    ]
    assert not any(make().equals(other) or other.equals(make()) for other in others)


def test_relabel_by_ids() -> None:
    data = Dataset.from_arrays(
        np.arange(5.0)[:, None],
        labels=[9, 9, 9, 9, 9],
        qid=["p", "q", "p", "q", "r"],
        document_ids=["a", "a", "b", "c", "a"],
    )
    judgments = Judgments.from_columns(
        ["q", "q", "p", "s"], ["c", "z", "b", "a"], [2.0, 1.0, 3.0, 1.0]
    )
    selected = data.relabel(judgments, unjudged=-1)
    assert selected.query_ids.to_pylist() == ["p", "q"]
    assert selected.labels.tolist() == [-1, 3, -1, 2]
    assert selected.features.ravel().tolist() == [0, 2, 1, 3]
    with pytest.raises(DataError, match="no query was judged"):
        data.relabel(Judgments.from_columns(["x"], ["a"], [1]))
    with pytest.raises(DataError, match="no document ids"):
        Dataset.from_arrays([[1.0]], labels=[0], qid=["q"]).relabel(judgments)
