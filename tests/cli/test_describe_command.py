"""``podium describe`` in a process of its own."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, Judgments, write_letor, write_parquet, write_shards
from tests.cli.run_podium import fail, podium, podium_on_terminal, succeed

DATA = Dataset.from_arrays(
    [[1, 0, np.nan], [2, 0, 5], [3, 0, np.nan], [4, 0, 7]],
    labels=[0, 2, 1, 1],
    qid=["a", "a", "b", "b"],
    feature_names=["bm25", "empty", "clicks"],
)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_parquet(DATA, tmp_path / "data.parquet")
    return tmp_path / "data.parquet"


def test_tables(path: Path) -> None:
    table = rows(succeed("describe", path))
    for line in (
        "queries 2",
        "documents 4 (no ids)",
        "documents per query 2 to 2, median 2, mean 2.0",
        "labels grades",
        "blank queries 1 (all labels equal)",
        "features 3, 1 of them constant, 2 values missing",
        "bm25 1 4 0",
        "empty 0 0 0",
        "clicks 5 7 2",
    ):
        assert line.split() in table
    shares = {line[0]: line[1:3] for line in table if line[0] in "012" and len(line) == 3}
    assert shares == {"0": ["1", "25.0%"], "1": ["2", "50.0%"], "2": ["1", "25.0%"]}


def test_json(path: Path, tmp_path: Path) -> None:
    expected = {
        "queries": 2,
        "rows": 4,
        "features": 3,
        "label_kind": "grades",
        "label_counts": {"0": 1, "1": 2, "2": 1},
        "blank_queries": 1,
        "documents_per_query": {"min": 2, "median": 2.0, "mean": 2.0, "max": 2},
        "constant_features": 1,
        "missing_values": 2,
        "document_ids": False,
        "feature_ranges": {"bm25": [1, 4], "empty": [0, 0], "clicks": [5, 7]},
    }
    assert json.loads(succeed("describe", path, "--json")) == expected
    write_shards(DATA, tmp_path / "set", shard_bytes=1)
    assert json.loads(succeed("describe", tmp_path / "set", "--json")) == expected


@pytest.mark.slow
def test_json_of_letor(path: Path, tmp_path: Path) -> None:
    expected = json.loads(succeed("describe", path, "--json"))
    write_letor(DATA, tmp_path / "data.txt.gz")
    letor = expected | {"feature_ranges": {"1": [1, 4], "2": [0, 0], "3": [5, 7]}}
    assert json.loads(succeed("describe", tmp_path / "data.txt.gz", "--json")) == letor
    write_letor(DATA, text := io.BytesIO())
    from_input = succeed("describe", "-", "--from", "letor", "--json", stdin=text.getvalue())
    assert json.loads(from_input) == letor


@pytest.mark.slow
def test_many_labels_and_features(tmp_path: Path) -> None:
    count = 40
    data = Dataset.from_arrays(
        np.tile(np.arange(count), (count, 1)), labels=np.arange(count, 0, -1), group=[count]
    )
    write_parquet(data, tmp_path / "wide.parquet")
    text = podium_on_terminal("describe", tmp_path / "wide.parquet")
    assert "full order" in text
    table = rows(text)
    assert ["1", "1", "2.5%", "█" * 24] in table
    assert ["…", "40", "29", "72.5%"] in table  # eleven labels are shown, the rest together
    assert ["10", "9", "9", "0"] in table
    assert ["11", "10", "10", "0"] not in table
    assert "The first 10 of 40 features; --features lists all." in text
    every = rows(podium_on_terminal("describe", tmp_path / "wide.parquet", "--features"))
    assert ["40", "39", "39", "0"] in every
    in_a_pipe = rows(succeed("describe", tmp_path / "wide.parquet"))  # nothing is left out
    assert ["40", "39", "39", "0"] in in_a_pipe
    assert ["40", "1", "2.5%"] in in_a_pipe


@pytest.mark.slow
def test_real_valued_labels_are_all_counted(tmp_path: Path) -> None:
    close = [0.1234567, 0.12345671, 1e-45, 3.4028235e38, 16777215]
    labels = np.float32(close)
    assert len(set(labels.tolist())) == len(labels)
    data = Dataset.from_arrays(np.ones((5, 1)), labels=labels, group=[5])
    write_parquet(data, tmp_path / "fine.parquet")
    description = json.loads(succeed("describe", tmp_path / "fine.parquet", "--json"))
    assert sum(description["label_counts"].values()) == 5
    assert {float(np.float32(label)) for label in description["label_counts"]} == set(
        labels.tolist()
    )


@pytest.mark.slow
def test_no_label_is_minus_zero(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"-0 qid:1 1:-0 2:3\n1 qid:1 1:-0 2:4\n-0.0 qid:2 1:-0 2:5\n")
    text = succeed("describe", path)
    assert "-0" not in text
    assert ["0", "2", "66.7%"] in [row[:3] for row in rows(text)]
    assert json.loads(succeed("describe", path, "--json"))["label_counts"] == {"0": 2, "1": 1}


def test_names_of_features_are_shown_without_their_effects(tmp_path: Path) -> None:
    names = ["[red]a[/]", "[/b]", "\x1b[2J", ":bug:", "a\nb"]
    data = Dataset.from_arrays(np.ones((1, 5)), labels=[1], group=[1], feature_names=names)
    write_parquet(data, tmp_path / "hostile.parquet")
    text = succeed("describe", tmp_path / "hostile.parquet")
    for name in ("[red]a[/]", "[/b]", "\ufffd[2J", ":bug:", "a\ufffdb"):
        assert f"\n{name}\t" in text
    description = json.loads(succeed("describe", tmp_path / "hostile.parquet", "--json"))
    assert list(description["feature_ranges"]) == names


@pytest.mark.slow
def test_group_sizes(tmp_path: Path) -> None:
    (tmp_path / "rank.txt").write_bytes(b"1 0:5\n0 0:nan\n2 1:7\n")
    (tmp_path / "sizes").write_bytes(b"2\n1\n")
    options = ("--group", tmp_path / "sizes", "--zero-based", "--keep-nonfinite", "--json")
    description = json.loads(succeed("describe", tmp_path / "rank.txt", *options))
    assert (description["queries"], description["rows"], description["missing_values"]) == (2, 3, 1)
    (tmp_path / "sizes").rename(tmp_path / "rank.txt.query")
    description = json.loads(succeed("describe", tmp_path / "rank.txt", *options[2:]))
    assert description["queries"] == 2
    assert "has no option --group" in fail("describe", tmp_path / "x.parquet", "--group", "y")


@pytest.mark.slow
def test_rows_apart(tmp_path: Path) -> None:
    (tmp_path / "mixed.txt").write_bytes(b"1 qid:a\n2 qid:b\n3 qid:a\n")
    assert "are not contiguous" in fail("describe", tmp_path / "mixed.txt")
    assert rows(succeed("describe", tmp_path / "mixed.txt", "--whole"))[0] == ["queries", "2"]


@pytest.mark.slow
def test_other_tables(tmp_path: Path) -> None:
    (tmp_path / "x.qrels").write_bytes(b"q 0 a 1\nq 0 b 1\np 0 a 1\n")
    assert json.loads(succeed("describe", tmp_path / "x.qrels", "--json")) == {
        "queries": 2,
        "rows": 3,
        "fewest rows per query": 1,
        "mean rows per query": 1.5,
        "most rows per query": 2,
    }
    assert "mean rows per query\t1.5" in succeed("describe", tmp_path / "x.qrels")
    line = '{"query_id": "q%d", "query": "x", "candidates": [{"document_id": "d"}]}\n'
    (tmp_path / "x.jsonl").write_text(line % 1 + line % 2)
    assert json.loads(succeed("describe", tmp_path / "x.jsonl", "--json")) == {
        "queries": 2,
        "candidates": 2,
        "most per query": 1,
    }


@pytest.mark.slow
def test_files_that_hold_nothing(tmp_path: Path) -> None:
    for name in ("x.jsonl", "x.qrels", "x.txt"):
        (tmp_path / name).write_bytes(b"")
        assert str(tmp_path / name) in fail("describe", tmp_path / name)
    write_parquet(DATA.select([]), tmp_path / "x.parquet")
    assert str(tmp_path / "x.parquet") in fail("describe", tmp_path / "x.parquet")
    write_parquet(Judgments.from_columns([], [], []), tmp_path / "y.parquet")
    message = fail("describe", tmp_path / "y.parquet", "--from", "qrels-parquet")
    assert str(tmp_path / "y.parquet") in message


@pytest.mark.slow
def test_unfinished_shards(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "unfinished").write_text("")
    assert "unfinished shard set. Run the conversion again." in fail("describe", tmp_path / "set")


@pytest.mark.slow
def test_help_and_version() -> None:
    assert succeed("--version").startswith("podium ")
    for arguments in ((), ("--help",), ("convert", "--help"), ("describe", "--help")):
        done = podium(*arguments)
        assert done.returncode in (0, 2)
        assert b"Usage" in done.stdout + done.stderr
