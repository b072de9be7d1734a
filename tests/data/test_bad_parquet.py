"""Parquet files that are wrong, or from elsewhere."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium.data import Dataset, Judgments, Rankings, read_parquet, write_parquet
from podium.data.formats import parquet
from podium.data.formats.parquet import iter_parquet
from podium.data.preferences import PreferenceLevels, Preferences
from podium.errors import DataError
from tests.data.strategies import assert_same

DATA = Dataset.from_arrays(
    np.arange(60).reshape(20, 3),
    labels=np.arange(20) % 3,
    group=[4] * 5,
    document_ids=[f"d{row}" for row in range(20)],
)
GOOD: dict[str, object] = {"query_id": ["q", "q"], "label": [1.0, 0.0], "bm25": [0.5, 0.25]}


def stored(columns: dict[str, object] | pa.Table) -> io.BytesIO:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, file := io.BytesIO())
    return io.BytesIO(file.getvalue())


def test_files_cut_short_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    write_parquet(DATA, path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        for read in (
            lambda: read_parquet(path, Dataset),
            lambda: list(iter_parquet(path)),
            lambda size=size: read_parquet(io.BytesIO(whole[:size]), Dataset),
        ):
            with pytest.raises(DataError, match="cannot be read as Parquet") as caught:
                read()
            assert caught.value.path in (str(path), "stream")
            assert caught.value.hint


def test_flipped_bytes_are_errors_or_harmless() -> None:
    write_parquet(DATA, file := io.BytesIO())
    whole = file.getvalue()
    random = np.random.default_rng(4)
    refused = 0
    for index in random.integers(0, len(whole), 400).tolist():
        damaged = bytearray(whole)
        damaged[index] ^= 1 << random.integers(0, 8)
        try:
            data = read_parquet(io.BytesIO(damaged), Dataset)
        except DataError:
            refused += 1
        else:
            assert data.features.shape == (data.rows, len(data.feature_names))
            assert len(data.labels) == data.rows == data.offsets[-1]
    assert 40 < refused < 400


def test_text_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    with pytest.raises(DataError, match=r"data\.parquet: no such file"):
        read_parquet(path, Dataset)
    with pytest.raises(DataError, match=r"data\.parquet: no such file"):
        list(iter_parquet(path))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_parquet(tmp_path, Dataset)
    path.write_bytes(b"1 qid:1 1:2\n")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_parquet(path, Dataset)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"query_id": None}, "has 0 columns 'query_id' instead of one"),
        ({"label": None}, "has 0 columns 'label' instead of one"),
        ({"query_id": ["q", None]}, "qid has missing values"),
        ({"query_id": [1.5, 2.0]}, "query ids are not all strings or all integers"),
        ({"query_id": [["q"], ["q"]]}, "query ids are not all strings"),
        ({"label": [1.0, None]}, "a label is missing or not finite"),
        ({"label": [1.0, np.nan]}, "a label is missing or not finite"),
        ({"label": [1.0, np.inf]}, "a label is missing or not finite"),
        ({"label": [1.0, 1e39]}, "a label is missing or not finite"),
        ({"label": ["1", "0"]}, "column 'label' is string, not numeric"),
        ({"bm25": ["1", "0"]}, "column 'bm25' is string, not numeric"),
        ({"bm25": [[1.0], [2.0]]}, "column 'bm25' is list"),
        ({"bm25": [1.0, -np.inf]}, "a feature is infinite"),
        ({"bm25": [1.0, 1e39]}, "a feature is infinite"),
        ({"document_id": [["d"], ["d"]]}, "document_id are not all strings"),
    ],
)
def test_wrong_columns(changes: dict[str, object], problem: str) -> None:
    columns = {name: value for name, value in (GOOD | changes).items() if value is not None}
    for read in (lambda file: read_parquet(file, Dataset), lambda file: list(iter_parquet(file))):
        with pytest.raises(DataError) as caught:
            read(stored(columns))
        assert problem in caught.value.problem
        assert caught.value.path == "stream"
        assert caught.value.hint


@pytest.mark.parametrize("name", ["query_id", "document_id", "label", "bm25"])
def test_columns_that_come_twice(name: str) -> None:
    columns = GOOD | {"document_id": ["a", "b"]}
    table = pa.table(columns).append_column(name, pa.array(columns[name]))
    with pytest.raises(DataError, match=f"2 columns '{name}'|not have exactly one column '{name}'"):
        read_parquet(stored(table), Dataset)


def test_other_types_and_names() -> None:
    columns = {
        "qid": pa.array([7, 8, 7], pa.int32()),
        "grade": pa.array([True, False, True]),
        "title": pa.array([1, None, 3], pa.uint16()),
        "body": pa.array([0.5, 0.25, None], pa.float16()),
        "url": ["a", "b", "c"],
        "day": pa.array([1, 2, 3], pa.date32()),
    }
    rename = {"qid": "query_id", "grade": "label", "url": "document_id"}
    data = read_parquet(stored(columns), Dataset, rename=rename, features=["title", "body"])
    assert data.query_ids.to_pylist() == ["7", "8"]
    assert data.labels.tolist() == [1, 1, 0]
    assert data.document_ids.to_pylist() == ["a", "c", "b"]
    assert data.feature_names == ("title", "body")
    assert np.array_equal(
        data.features, np.float32([[1, 0.5], [3, np.nan], [np.nan, 0.25]]), equal_nan=True
    )
    bare = read_parquet(stored(columns), Dataset, rename=rename, features=[])
    assert bare.features.shape == (3, 0)
    with pytest.raises(DataError, match="column 'day' is date32"):
        read_parquet(stored(columns), Dataset, rename=rename)
    with pytest.raises(DataError, match="not have exactly one column 'clicks'"):
        read_parquet(stored(columns), Dataset, rename=rename, features=["clicks"])


def test_dictionaries_and_large_strings() -> None:
    names = pa.array(["q", "q", "p"], pa.large_string()).dictionary_encode()
    data = read_parquet(stored({"query_id": names, "label": [1, 2, 3]}), Dataset)
    assert data.query_ids.to_pylist() == ["q", "p"]


@pytest.mark.parametrize(
    ("kind", "columns", "problem"),
    [
        (Judgments, {"query_id": ["q"], "document_id": [None], "label": [1]}, "id is missing"),
        (Judgments, {"query_id": ["q"], "document_id": ["d"]}, "has 0 columns 'label'"),
        (Judgments, {"query_id": ["q"], "document_id": ["d"], "label": [None]}, "is null, not"),
        (
            Judgments,
            {"query_id": ["q"] * 2, "document_id": ["d"] * 2, "label": [1, 2]},
            "document 'd' is listed twice",
        ),
        (
            Rankings,
            {"query_id": ["q"], "document_id": ["d"], "score": [np.inf]},
            "scores of row 0 is inf",
        ),
        (
            Preferences,
            {"query_id": ["q"], "left": ["a"], "right": ["b"], "verdict": [2]},
            "not -1, 0 or 1",
        ),
        (
            Preferences,
            {"query_id": ["q"] * 2, "left": ["a"] * 2, "right": ["b"] * 2, "verdict": [1, None]},
            "not -1, 0 or 1",
        ),
        (
            PreferenceLevels,
            {
                "query_id": ["q"],
                "group": ["g"],
                "subgroup": [None],
                "document_id": ["d"],
                "level": [1.0],
            },
            "subgroups have missing values",
        ),
    ],
)
def test_other_kinds(kind: type, columns: dict[str, object], problem: str) -> None:
    with pytest.raises(DataError) as caught:
        read_parquet(stored(columns), kind)
    assert problem in caught.value.problem
    assert caught.value.path == "stream"


def test_rows_of_a_query_apart() -> None:
    columns = {"query_id": ["a", "b", "a"], "label": [1, 2, 3]}
    assert read_parquet(stored(columns), Dataset).labels.tolist() == [1, 3, 2]
    with pytest.raises(DataError, match=r"the rows of query 'a' are not contiguous.*Sort"):
        list(iter_parquet(stored(columns)))


def test_files_without_rows() -> None:
    empty = Dataset.from_arrays(np.empty((0, 2)), labels=[], qid=[])
    write_parquet(empty, file := io.BytesIO())
    assert_same(read_parquet(io.BytesIO(file.getvalue()), Dataset), empty)
    assert list(iter_parquet(io.BytesIO(file.getvalue()))) == []


def test_a_feature_cannot_be_named_as_another_column() -> None:
    data = Dataset.from_arrays([[1.0]], labels=[1], group=[1], feature_names=["document_id"])
    with pytest.raises(DataError, match="a feature is named 'document_id'"):
        write_parquet(data, io.BytesIO())


def test_blocks_are_brought_to_the_first_ones_columns() -> None:
    first = Dataset.from_arrays([[1, 2]], labels=[1], qid=["a"], document_ids=["d"])
    narrow = Dataset.from_arrays([[3]], labels=[0], qid=["b"])
    write_parquet(iter([first, narrow]), file := io.BytesIO())
    data = read_parquet(io.BytesIO(file.getvalue()), Dataset)
    assert data.features.tolist() == [[1, 2], [3, 0]]
    assert data.document_ids.to_pylist() == ["d", None]


def test_blocks_with_more_columns_than_the_first_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BLOCK_BYTES", 1)  # so that blocks are not gathered
    first = Dataset.from_arrays([[1]], labels=[1], qid=["a"])
    wider = Dataset.from_arrays([[1, 2]], labels=[1], qid=["b"])
    other = Dataset.from_arrays([[1]], labels=[1], qid=["b"], feature_names=["x"])
    for block in (wider, other):
        with pytest.raises(DataError, match=r"the first one lacks.*Write shards"):
            write_parquet(iter([first, block]), tmp_path / "data.parquet")
        assert not list(tmp_path.iterdir())
    named = Dataset.from_arrays(np.ones((1, 1)), labels=[1], qid=["b"], document_ids=["d"])
    with pytest.raises(DataError, match="the first one lacks"):
        write_parquet(iter([first, named]), tmp_path / "data.parquet")


def test_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to write"):
        write_parquet(iter([]), tmp_path / "data.parquet")
    assert not list(tmp_path.iterdir())


def test_row_groups_hold_whole_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BLOCK_BYTES", 100)
    write_parquet(DATA, tmp_path / "data.parquet")
    with pq.ParquetFile(tmp_path / "data.parquet") as file:
        groups = [file.read_row_group(index) for index in range(file.num_row_groups)]
    assert len(groups) > 2
    assert [len(group) % 4 for group in groups] == [0] * len(groups)
    # Batches that cut queries are put together again.
    blocks = list(iter_parquet(tmp_path / "data.parquet"))
    assert sum(len(block) for block in blocks) == len(DATA)
    assert_same(read_parquet(tmp_path / "data.parquet", Dataset), DATA)
