from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset, write_shards
from podium.errors import DataError
from podium.measures import evaluate, evaluate_table

COLUMNS = ("query_id", "label", "score")


def scored(seed: int, queries: int) -> pa.Table:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 30, queries)
    rows = int(sizes.sum())
    return pa.table(
        {
            "query_id": [f"q{query}" for query in np.repeat(np.arange(queries), sizes)],
            "label": random.integers(0, 4, rows).astype(np.int8),
            "score": random.integers(0, 9, rows) / 8,
        }
    )


def whole(table: pa.Table) -> dict[str, np.ndarray]:
    result = evaluate(
        ["nDCG@5", "AP"],
        table["label"].to_numpy(),
        table["score"].to_numpy(),
        qid=table["query_id"].to_pylist(),
    )
    return {repr(measure): values for measure, values in result.values.items()}


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 60), st.integers(1, 50), st.integers(1, 40))
def test_row_groups_may_end_anywhere(
    tmp_path_factory: pytest.TempPathFactory, seed: int, queries: int, rows: int, lot: int
) -> None:
    table = scored(seed, queries)
    path = tmp_path_factory.mktemp("tables") / "scored.parquet"
    pq.write_table(table, path, row_group_size=rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("podium.data.scored._ROWS", lot)
        result = evaluate_table(["nDCG@5", "AP"], path)
    assert len(result) == queries
    for name, values in whole(table).items():
        np.testing.assert_allclose(result[name], values)


def test_a_shard_set_with_a_score_column(tmp_path: Path) -> None:
    table = scored(7, 40)
    data = Dataset.from_arrays(
        table["score"].to_numpy()[:, None],
        labels=table["label"].to_numpy(),
        qid=table["query_id"].to_pylist(),
        feature_names=["score"],
    )
    write_shards(data, tmp_path / "shards", shard_bytes=400)
    assert len(list((tmp_path / "shards").glob("*.parquet"))) > 1
    result = evaluate_table(["nDCG@5", "AP"], tmp_path / "shards")
    for name, values in whole(table).items():
        np.testing.assert_allclose(result[name], values)


def test_columns_by_other_names_and_whole_numbers_as_ids(tmp_path: Path) -> None:
    table = pa.table({"qid": [7, 7, 9], "grade": [0, 1, 1], "bm25": [3.0, 2.0, 1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    result = evaluate_table("RR", tmp_path / "t.parquet", query="qid", label="grade", score="bm25")
    assert result.query_ids.to_pylist() == ["7", "9"]
    assert result["RR"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query_id": ["a"], "label": [1]}, "not have exactly one column 'score'"),
        ({"query_id": ["a"], "label": [1], "score": ["x"]}, "'score' is not numeric"),
        ({"query_id": ["a", None], "label": [1, 1], "score": [1, 2]}, "missing values"),
        (
            {"query_id": ["a", "b", "a"], "label": [1, 1, 1], "score": [1, 2, 3]},
            "are not contiguous",
        ),
        (
            {"query_id": list("abac"), "label": [1] * 4, "score": [1, 2, 3, 4]},
            "'a' are not contiguous",
        ),
        ({name: pa.array([], pa.float32()) for name in COLUMNS}, "has no rows"),
        ({"query_id": [[1]], "label": [1], "score": [1]}, "'query_id' has lists or structures"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    tmp_path: Path, columns: dict[str, object], message: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=message):
        evaluate_table("RR", tmp_path / "t.parquet")


def test_a_damaged_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        evaluate_table("RR", tmp_path / "none.parquet")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="Parquet"):
        evaluate_table("RR", tmp_path / "t.parquet")
