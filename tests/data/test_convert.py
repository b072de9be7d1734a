"""Converting between formats: what becomes what, streamed or whole, and what cannot."""

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from podium.data import (
    Candidate,
    CandidateList,
    Dataset,
    Judgments,
    ShardSet,
    read_letor,
    read_pairs,
    read_parquet,
    read_qrels,
    read_run,
    write_csv,
    write_jsonl,
    write_letor,
    write_parquet,
)
from podium.data import files as data_files
from podium.data.conversion import convert, dataset_judgments
from podium.data.format_registry import FORMATS, format_of
from podium.data.sources import as_judgments
from podium.errors import ArgumentError, DataError
from tests.data.strategies import assert_same

DATA = Dataset.from_arrays(
    np.arange(24).reshape(12, 2) / 8,
    labels=np.arange(12) % 3,
    group=[5, 4, 3],
    query_ids=["a", "b", "c"],
    document_ids=[f"d{row}" for row in range(12)],
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_letor(DATA, tmp_path / "train.txt")
    return tmp_path / "train.txt"


def test_data_sets_go_round_through_every_format(source: Path, tmp_path: Path) -> None:
    steps = [source, *(tmp_path / name for name in ("x.parquet", "set", "y.txt.gz", "z.txt.zst"))]
    for one, other in pairwise(steps):
        convert(one, other)
    assert_same(read_letor(steps[-1]), DATA)
    assert_same(ShardSet.open(tmp_path / "set").load(), DATA)
    assert_same(read_parquet(tmp_path / "x.parquet", Dataset), DATA)


def test_judgments_of_texts_are_written_as_parquet_by_the_name(tmp_path: Path) -> None:
    source = tmp_path / "judged.json"
    ratings = '[{"query": "red shoes", "ratings": [{"docId": "d", "rating": "2"}]}]'
    source.write_text(f'{{"judgmentRatings": {ratings}}}')
    with pytest.raises(DataError, match=r"first is 'red shoes'.*ends with \.parquet"):
        convert(source, tmp_path / "judged.qrels", source_format="workbench")
    convert(source, tmp_path / "judged.parquet", source_format="workbench")
    judged = as_judgments(tmp_path / "judged.parquet")
    assert isinstance(judged, Judgments)
    assert (judged.query_ids.to_pylist(), judged.labels.tolist()) == (["red shoes"], [2.0])


@pytest.mark.parametrize("name", ["qrels", "run", "pairs", "prefs"])
def test_tables_go_through_parquet_and_back(name: str, tmp_path: Path) -> None:
    text = {
        "qrels": b"q 0 a 2\nq 0 b 0.5\n",
        "run": b"q Q0 b 1 0.5 bm25\nq Q0 a 2 0.25 bm25\n",
        "pairs": b"q a b b\nq a c =\n",
        "prefs": b"q g s a 1\nq g s b 0\n",
    }[name]
    path = tmp_path / "in"
    path.write_bytes(text)
    convert(path, tmp_path / "p", source_format=name, target_format=f"{name}-parquet")
    convert(tmp_path / "p", tmp_path / "out", source_format=f"{name}-parquet", target_format=name)
    assert (tmp_path / "out").read_bytes() == text


def test_judgments_of_a_data_set(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "judged.qrels")
    judgments = read_qrels(tmp_path / "judged.qrels")
    assert_same(judgments, dataset_judgments(DATA))
    assert judgments.labels.tolist() == DATA.labels.tolist()


def test_judgments_and_rankings_of_candidates(tmp_path: Path) -> None:
    lists = [
        CandidateList("q", "shoes", (Candidate("a", label=1, score=2), Candidate("b", score=3)))
    ]
    write_jsonl(lists, tmp_path / "queries.jsonl")
    convert(tmp_path / "queries.jsonl", tmp_path / "out.qrels")
    convert(tmp_path / "queries.jsonl", tmp_path / "out.run")
    convert(tmp_path / "queries.jsonl", tmp_path / "again.jsonl.gz")
    assert read_qrels(tmp_path / "out.qrels").document_ids.to_pylist() == ["a"]
    assert read_run(tmp_path / "out.run").document_ids.to_pylist() == ["b", "a"]
    assert list(FORMATS["jsonl"].read(tmp_path / "again.jsonl.gz")) == lists


def test_pairs_of_levels(tmp_path: Path) -> None:
    (tmp_path / "in.prefs").write_bytes(b"q g s a 2\nq g s b 1\nq g t c 0\n")
    convert(tmp_path / "in.prefs", tmp_path / "out.pref")
    assert read_pairs(tmp_path / "out.pref").left.to_pylist() == ["a"]


def test_a_change_is_made_streamed_whole_and_grouped(source: Path, tmp_path: Path) -> None:
    def change(data: Dataset) -> Dataset:
        return data.top_k(2, random_state=5)

    expected = change(DATA)
    convert(source, tmp_path / "streamed.txt", change=change)
    convert(source, tmp_path / "whole.txt", change=change, whole=True)
    assert_same(read_letor(tmp_path / "streamed.txt"), expected)
    assert_same(read_letor(tmp_path / "whole.txt"), expected)
    convert(source, tmp_path / "judged.qrels", change=change)
    assert read_qrels(tmp_path / "judged.qrels").labels.tolist() == expected.labels.tolist()


@pytest.fixture
def grouped(tmp_path: Path) -> Path:
    """LightGBM's way: no query ids, and the rows of each query in a file beside it."""
    path = tmp_path / "rank.txt"
    path.write_bytes(b"1 1:5 #docid = x\n0 1:6 #docid = y\n2 2:7 #docid = z\n")
    path.with_name("rank.txt.query").write_bytes(b"2\n1\n")
    return path


def test_group_sizes_beside_the_file_or_named(grouped: Path, tmp_path: Path) -> None:
    expected = read_letor(grouped)
    convert(grouped, tmp_path / "one.parquet")
    elsewhere = grouped.with_name("rank.txt.query").rename(tmp_path / "sizes")
    convert(grouped, tmp_path / "two.parquet", group=str(elsewhere))
    for name in ("one.parquet", "two.parquet"):
        assert_same(read_parquet(tmp_path / name, Dataset), expected)
    convert(
        grouped,
        tmp_path / "top.qrels",
        group=str(elsewhere),
        change=lambda data: data.top_k(1),
    )
    assert read_qrels(tmp_path / "top.qrels").labels.tolist() == [1, 0, 1]


def test_rows_apart_need_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_bytes(b"1 qid:a 1:1\n2 qid:b 1:2\n3 qid:a 1:3\n")
    with pytest.raises(DataError, match=r"are not contiguous.*--whole"):
        convert(path, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    convert(path, tmp_path / "out.parquet", whole=True)
    assert_same(read_parquet(tmp_path / "out.parquet", Dataset), read_letor(path))


def test_features_that_come_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "CHUNK_BYTES", 30)
    path = tmp_path / "sparse.txt"
    path.write_bytes(b"".join(b"1 qid:%d %d:1\n" % (n, n) for n in range(1, 9)))
    whole = read_letor(path)
    assert whole.features.tolist() == np.eye(8).tolist()
    convert(path, tmp_path / "set")
    assert_same(ShardSet.open(tmp_path / "set").load(), whole)
    # One Parquet file has one schema: an error, never columns that are dropped.
    with pytest.raises(DataError, match=r"the first one lacks.*Write shards"):
        convert(path, tmp_path / "out.parquet")
    convert(path, tmp_path / "out.parquet", whole=True)
    assert_same(read_parquet(tmp_path / "out.parquet", Dataset), whole)


def test_document_ids_that_come_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "CHUNK_BYTES", 10)
    path = tmp_path / "late.txt"
    path.write_bytes(b"1 qid:1 1:1\n1 qid:2 1:1\n1 qid:3 1:1 #docid = d\n1 qid:4 1:1\n")
    whole = read_letor(path)
    for name in ("set", "out.parquet", "out.txt"):
        convert(path, tmp_path / name)
        assert_same(FORMATS[format_of(tmp_path / name).name].read(tmp_path / name), whole)


def test_reader_options(tmp_path: Path) -> None:
    path = tmp_path / "zero.txt"
    path.write_bytes(b"1 qid:1 0:nan 1:2\n")
    convert(path, tmp_path / "out.txt", zero_based=True, keep_nonfinite=True)
    assert (tmp_path / "out.txt").read_bytes() == b"1 qid:1 1:NULL 2:2\n"
    write_parquet(DATA, tmp_path / "in.parquet")
    for options in ({"zero_based": True}, {"group": "x"}, {"progres": None}):
        with pytest.raises(ArgumentError, match="parquet has no option"):
            convert(tmp_path / "in.parquet", tmp_path / "out.txt", **options)
    convert(tmp_path / "in.parquet", tmp_path / "two.txt", features=["2"])
    assert read_letor(tmp_path / "two.txt").features.tolist() == DATA.features[:, 1:].tolist()


def test_streams() -> None:
    write_letor(DATA, text := io.BytesIO())
    convert(io.BytesIO(text.getvalue()), out := io.BytesIO(), source_format="letor",
            target_format="parquet")  # fmt: skip
    convert(io.BytesIO(out.getvalue()), back := io.BytesIO(), source_format="parquet",
            target_format="letor")  # fmt: skip
    assert back.getvalue() == text.getvalue()


@pytest.mark.parametrize("target", ["-", io.BytesIO()])
def test_shards_are_no_stream(source: Path, target: object) -> None:
    for ways in ((source, target, "letor", "shards"), (target, source, "shards", "letor")):
        with pytest.raises(ArgumentError, match="shards are a folder, not a stream"):
            convert(*ways[:2], source_format=ways[2], target_format=ways[3])


@pytest.mark.parametrize(
    ("one", "other", "reachable"),
    [
        ("qrels", "letor", "Convert it to one of: qrels, workbench, qrels-parquet."),
        ("run", "qrels", "Convert it to one of: run, run-parquet."),
        (
            "letor",
            "jsonl",
            "Convert it to one of: letor, parquet, csv, tsv, shards, qrels, workbench, "
            "qrels-parquet.",
        ),
        ("pairs", "prefs", "Convert it to one of: pairs, pairs-parquet."),
    ],
)
def test_what_cannot_become_what(one: str, other: str, reachable: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        convert("in", "out", source_format=one, target_format=other)
    assert caught.value.problem == f"{one} cannot be converted to {other}"
    assert caught.value.hint == reachable


def test_only_data_sets_can_be_changed() -> None:
    with pytest.raises(ArgumentError, match="qrels is not a data set format"):
        convert("in.qrels", "out.qrels", change=lambda data: data)


def test_judgments_need_document_ids_and_rows(tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_bytes(b"1 qid:1 1:2\n")
    with pytest.raises(DataError, match="has no document ids"):
        convert(tmp_path / "bare.txt", tmp_path / "out.qrels")
    write_parquet(DATA.select([]), tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="no data to write"):
        convert(tmp_path / "empty.parquet", tmp_path / "out.qrels")
    assert not (tmp_path / "out.qrels").exists()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/train.txt", "letor"),
        ("train.svm.zst", "letor"),
        ("x.parquet", "parquet"),
        ("x.qrels.gz", "qrels"),
        ("x.run", "run"),
        ("x.pref", "pairs"),
        ("x.prefs", "prefs"),
        ("x.jsonl", "jsonl"),
        ("folder", "shards"),
        (Path("a.b/folder"), "shards"),
    ],
)
def test_names_tell_the_format(path: str | Path, name: str) -> None:
    assert format_of(path).name == name


def test_a_folder_with_an_ending_is_a_shard_set(tmp_path: Path) -> None:
    (tmp_path / "v1.2").mkdir()
    assert format_of(tmp_path / "v1.2").name == "shards"


def test_a_file_without_an_ending_is_no_shard_set(tmp_path: Path) -> None:
    (tmp_path / "train").write_bytes(b"1 qid:1 1:1\n")
    with pytest.raises(ArgumentError, match=r"the format of .* cannot be inferred"):
        format_of(tmp_path / "train")


@pytest.mark.parametrize("source", ["-", "x.xls", io.BytesIO()])
def test_names_that_do_not_tell(source: object) -> None:
    with pytest.raises(ArgumentError, match=r"the format of .* cannot be inferred") as caught:
        format_of(source)
    assert "letor" in caught.value.hint


def test_unknown_formats() -> None:
    with pytest.raises(ArgumentError, match=r"There is no format 'xls'\. Choose: letor"):
        format_of("x.txt", "xls")


def test_tables_of_text_have_the_columns_of_all_blocks(tmp_path: Path) -> None:
    narrow = Dataset.from_arrays([[1.0]], [1], qid=["a"])
    wide = Dataset.from_arrays([[2.0, 9.0]], [0], qid=["b"], document_ids=["d"])
    file = io.BytesIO()
    write_csv([narrow, wide], file)
    assert file.getvalue().decode().splitlines() == [
        '"query_id","document_id","label","1","2"',
        '"a",,1,1,0',
        '"b","d",0,2,9',
    ]
    other = Dataset.from_arrays([[2.0]], [0], qid=["b"], feature_names=["x"])
    for block in (narrow, wide):
        with pytest.raises(DataError, match="the blocks have different features"):
            write_csv([block, other], io.BytesIO())
    with pytest.raises(DataError, match="the blocks have different features"):
        write_parquet([wide, other], tmp_path / "other.parquet")
    # A feature that appears after the first block of a file.
    lines = [f"0 qid:{row // 50} 1:0.5\n" for row in range(300_000)]
    (tmp_path / "late.txt").write_text("".join([*lines, "1 qid:last 1:1 2:7\n"]))
    convert(tmp_path / "late.txt", tmp_path / "late.csv")
    header, *_, last = (tmp_path / "late.csv").read_text().splitlines()
    assert header == '"query_id","label","1","2"'
    assert last == '"last",1,1,7'


def test_options_of_readers_that_blocks_do_not_have(tmp_path: Path) -> None:
    write_letor(DATA, tmp_path / "a.txt")
    convert(tmp_path / "a.txt", tmp_path / "b.parquet", unlabeled=True)
    assert_same(read_parquet(tmp_path / "b.parquet", Dataset), read_letor(tmp_path / "a.txt"))
    (tmp_path / "plain.txt").write_text("1 1:0.5\n0 1:0.25\n2 1:1\n")
    convert(tmp_path / "plain.txt", tmp_path / "c.parquet", group=np.array([2, 1]))
    assert read_parquet(tmp_path / "c.parquet", Dataset).sizes.tolist() == [2, 1]
