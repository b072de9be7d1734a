"""Ranking logs as data sets."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from podium.data import Dataset, read_parquet, write_parquet
from podium.data.definitions_hash import common_hash
from podium.errors import DataError
from podium.monitoring import Sample, read_ranking_log
from podium.monitoring.log_reader import last_rankings
from podium.rankers import LinearRanker
from tests.cli.run_podium import fail, podium


def line(query, ids, scores, model="m", **features):
    content = {"model": model, "query": query, "ids": ids, "scores": scores, "features": features}
    return json.dumps(content) + "\n"


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "rankings-1.jsonl").write_text(
        line("p", ["a", "b"], [2.0, 1.0], x=[1, 2], y=[None, 4])
        + line("q", [7], [0.5], x=[5], y=[6])
        + line("q", [7, 8], [0.5, 0.1], y=[60, 80], x=[50, 70])
    )
    (folder / "rankings-2.jsonl").write_text(
        line(None, ["c"], [0.0], x=[9], y=[9]) + '{"model": "m", "query": "cut'
    )
    return folder


def test_the_last_ranking_of_each_query_is_its_rows(log):
    data = read_ranking_log(log).dataset()
    assert data.query_ids.to_pylist() == ["p", "q", "rankings-2.jsonl:1"]
    assert data.document_ids.to_pylist() == ["a", "b", "7", "8", "c"]
    assert data.feature_names == ("x", "y")
    expected = [[1, np.nan], [2, 4], [50, 60], [70, 80], [9, 9]]
    np.testing.assert_array_equal(data.features, np.array(expected, np.float32))
    assert data.labels.tolist() == [0] * 5


def test_the_last_ranking_is_the_latest_of_all_files(tmp_path):
    def at(time, value):
        return line("q", ["a"], [1.0], x=[value]).replace("{", f'{{"time": "{time}", ', 1)

    first, second = "2026-01-01T10:50:00.000+00:00", "2026-01-01T10:02:00.000+00:00"
    (tmp_path / "rankings-20260101T100000-1.jsonl").write_text(at(first, 5))
    (tmp_path / "rankings-20260101T100100-2.jsonl").write_text(at(second, 6))
    log = read_ranking_log(tmp_path)
    assert log.dataset().features.tolist() == [[5.0]]
    assert [rows.tolist() for rows in log.features] == [[[6.0]], [[5.0]]]


def test_rankings_of_one_model(log):
    with (log / "rankings-3.jsonl").open("w") as file:
        file.write(line("p", ["z"], [1.0], model="other", z=[1]))
    with pytest.raises(DataError, match=r"rankings-3\.jsonl, line 1: .*other features"):
        read_ranking_log(log)
    assert read_ranking_log(log, model="other").queries == ("p",)
    assert len(read_ranking_log(log, model="m").queries) == 4
    with pytest.raises(DataError, match="has no ranking"):
        read_ranking_log(log, model="unknown")


@pytest.mark.parametrize(
    "text",
    [
        line("p", ["a"], [1.0], x=[1, 2]),
        line("p", ["a"], [1.0], x=[10**400]),
        line("p", ["a"], [], x=[1]),
        line("p", ["a"], ["s"], x=[1]),
        line("p", ["a"], [1.0]),
        '{"query": "p"}\n',
        "[]\n",
        "{\n",
        line("p", ["a"], [1.0], x="1"),
        line("p", ["a"], [1.0], x=["1"]),
        line("p", ["a"], [True], x=[1]),
        line("p", ["a"], [1.0], x=[1e999]),
    ],
)
def test_lines_that_are_not_rankings_are_refused_by_number(tmp_path, text):
    file = tmp_path / "rankings-1.jsonl"
    file.write_text(line("p", ["a"], [1.0], x=[1]) + text)
    with pytest.raises(DataError, match=r"rankings-1\.jsonl, line 2: "):
        read_ranking_log(file)


def test_the_command_writes_parquet_with_labels(log, tmp_path):
    (tmp_path / "labels.qrels").write_text("p 0 b 3\nq 0 7 1\n")
    target = tmp_path / "data.parquet"
    podium("features", "from-log", log, target, "--labels", tmp_path / "labels.qrels")
    data = read_parquet(target, Dataset)
    assert data.query_ids.to_pylist() == ["p", "q"]
    assert data.labels.tolist() == [0, 3, 1, 0]


def test_labels_are_joined_by_ids_with_spaces_in_compressed_logs(tmp_path):
    entries = [
        {"search_id": f"s{number}", "query_id": query_id, "query": query, "model": "m",
         "ids": ["a b", "c"], "scores": [1, 0], "features": {"x": [1, 2]}}
        for number, (query_id, query) in enumerate(
            [("q 17", "red shoes"), (None, "blue shoes"), (18, "green shoes")]
        )
    ]  # fmt: skip
    log = tmp_path / "rankings-1.jsonl.gz"
    content = [gzip.compress(json.dumps(entry).encode() + b"\n") for entry in entries]
    # The process that wrote the last line was killed.
    log.write_bytes(b"".join(content) + content[0][:-9])
    labels = tmp_path / "labels.csv"
    labels.write_text("query_id,document_id,label\nq 17,a b,3\nblue shoes,c,2\n")
    done = podium("features", "from-log", log, tmp_path / "data.parquet", "--labels", labels)
    data = read_parquet(tmp_path / "data.parquet", Dataset)
    # The line of "q 17" that was complete is its last ranking: queries are in the order of these.
    assert data.query_ids.to_pylist() == ["blue shoes", "q 17"]
    assert data.labels.tolist() == [0, 2, 3, 0]
    assert "1 query without judgments is left out" in done.stderr.decode()


def test_a_log_in_blocks_is_the_log_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.monitoring.log_reader._RANKINGS", 3)
    lines = [
        line(f"q{number % 8}", ["a", "b"], [1.0, 0.0], x=[number, None])
        .replace("{", f'{{"time": "{number:02}", ', 1)
        for number in range(20)
    ]  # fmt: skip
    lines.append(line("empty", [], [], x=[]))
    # Two processes: what is later is in the file before.
    (tmp_path / "rankings-1.jsonl").write_text("".join(lines[1::2]))
    (tmp_path / "rankings-2.jsonl").write_text("".join(lines[::2]))
    blocks = list(last_rankings(tmp_path))
    assert [len(block) for block in blocks] == [3, 3, 2]
    whole = read_ranking_log(tmp_path).dataset()
    values = {query.id: query.features[0, 0] for block in blocks for query in block}
    assert values == {query.id: query.features[0, 0] for query in whole}
    assert values == {f"q{number % 8}": number for number in range(12, 20)}


def test_a_log_grows_while_it_is_read(tmp_path, monkeypatch):
    def grows(hashes, what):
        with (tmp_path / "rankings-1.jsonl").open("a") as file:
            file.write(line("r", ["c"], [1.0], x=[9]))
        return common_hash(hashes, what)

    (tmp_path / "rankings-1.jsonl").write_text(line("\ud800", [], [], x=[]))
    (tmp_path / "rankings-2.jsonl").write_text(
        line("q", ["a"], [1.0], x=[1]) + line("p", ["b"], [1.0], x=[2])
    )
    monkeypatch.setattr("podium.monitoring.log_reader.common_hash", grows)
    blocks = list(last_rankings(tmp_path))
    assert [query.id for block in blocks for query in block] == ["q", "p"]


def test_labels_of_other_queries_write_nothing(log, tmp_path):
    (tmp_path / "labels.qrels").write_text("other 0 b 3\n")
    target = tmp_path / "data.parquet"
    message = fail("features", "from-log", log, target, "--labels", tmp_path / "labels.qrels")
    assert "none of the documents of 3 queries was judged" in message
    assert not target.exists()


def test_a_damaged_log_is_named(tmp_path):
    log = tmp_path / "rankings-1.jsonl.gz"
    for damaged in (b"not gzip", gzip.compress(b"{}")[:12] + b"\xff" * 9):
        log.write_bytes(damaged)
        with pytest.raises(DataError, match=r"rankings-1\.jsonl\.gz"):
            read_ranking_log(log)


def test_drift_between_training_data_and_a_log(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2)).astype(np.float32)
    train = Dataset.from_arrays(X, np.zeros(400), group=[2] * 200, feature_names=["x", "y"])
    write_parquet(train, tmp_path / "train.parquet")
    folder = tmp_path / "log"
    folder.mkdir()
    today = random.normal(size=(200, 2, 2))
    today[:, :, 1] += 2
    (folder / "rankings-1.jsonl").write_text(
        "".join(
            line(f"q{number}", ["a", "b"], [1, 0], x=rows[:, 0].tolist(), y=rows[:, 1].tolist())
            for number, rows in enumerate(today)
        )
    )
    page = tmp_path / "drift.html"
    done = podium("drift", tmp_path / "train.parquet", folder, "--yesterday", folder,
                      "--report", page)  # fmt: skip
    assert "Against training: 1 of 2 features have shifted" in done.stdout.decode()
    assert "Against yesterday: 0 of 3 features have shifted" in done.stdout.decode()
    assert "<h2>Against yesterday</h2>" in page.read_text()


def test_a_ranker_scores_all_that_is_not_a_log(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2)).astype(np.float32)
    labels = (X[:, 0] > 0).astype(float)
    train = Dataset.from_arrays(X, labels, group=[3] * 200, feature_names=["x", "y"])
    write_parquet(train, tmp_path / "train.parquet")
    LinearRanker("PairLogistic()").fit(train).save(tmp_path / "r.podium")
    done = podium("drift", tmp_path / "train.parquet", tmp_path / "train.parquet",
                      "--ranker", tmp_path / "r.podium")  # fmt: skip
    assert "Against training: 0 of 3 features have shifted" in done.stdout.decode()
    message = fail("drift", tmp_path / "train.parquet", tmp_path / "train.parquet", "--model", "m")
    assert "--model chooses rankings of a log" in message
    (tmp_path / "rankings-1.jsonl").write_text(line("q", ["a"], [1.0], x=[1.0]))
    logs = [tmp_path / "rankings-1.jsonl"] * 2
    assert "--ranker scores data" in fail("drift", *logs, "--ranker", tmp_path / "r.podium")


def test_scores_of_several_models_are_not_mixed(log, tmp_path):
    with (log / "rankings-3.jsonl").open("w") as file:
        file.write(line("p", ["a"], [9.0], "other", x=[1], y=[2]))
    assert read_ranking_log(log).models == ("m", "other")
    with pytest.raises(DataError, match="rankings of 2 models: m, other"):
        Sample.of_log(read_ranking_log(log))
    data = read_ranking_log(log, model="m").dataset()
    write_parquet(data, tmp_path / "train.parquet")
    refused = fail("drift", tmp_path / "train.parquet", log)
    assert "Name one: --model" in refused
    one = podium("drift", tmp_path / "train.parquet", log, "--model", "m")
    assert b"0 of 2 features have shifted" in one.stdout
