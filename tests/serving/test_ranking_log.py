"""The ranking log: complete, in files of bounded size, and never in the way of a request."""

from __future__ import annotations

import gzip
import json
import os
import resource
import stat
import time
from types import SimpleNamespace

import httpx2
import numpy as np
import pytest

from podium.monitoring import read_ranking_log
from podium.serving import ServingSettings
from podium.serving import ranking_log as module
from podium.serving.metrics import ServingMetrics
from podium.serving.model import ServedModel
from podium.serving.ranking_log import LoggedRanking, RankingLog, SearchNames
from podium.serving.settings import parse_model
from tests.serving.service import NAMES, linear, rank_body, rows, serving, trees


@pytest.fixture(scope="module")
def model():
    return ServedModel("m", 1, trees().to_bytes(), {}, 100)


def ranking(model, number=0, shadow=None):
    X = rows()[number : number + 5]
    names = SearchNames(f"s{number}", number, f"q{number}")
    return LoggedRanking(1e9 + number, model, shadow, names, list("abcde"), X, model.score(X))


def lines(folder):
    files = sorted(folder.glob("rankings-*.jsonl.gz"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(line) for file in files for line in content(file)]


def content(file):
    return gzip.decompress(file.read_bytes()).splitlines()


def size(entry):
    return len(gzip.compress(entry.line(), 1))


def test_what_was_ranked_can_be_ranked_again(tmp_path):
    trees().save(tmp_path / "m.podium")
    linear().save(tmp_path / "shadow.podium")
    settings = ServingSettings(
        models=(parse_model(str(tmp_path / "m.podium")),),
        shadows=(parse_model(f"m={tmp_path / 'shadow.podium'}"),),
        ranking_log=str(tmp_path / "log"),
    )
    X = rows()[:20].copy()
    with serving(settings) as address:
        answer = httpx2.post(f"{address}/rank", json=rank_body(X), timeout=60).json()
        missing = X.copy()
        missing[0, 0] = np.nan
        httpx2.post(f"{address}/rank", json=rank_body(missing, "q2"), timeout=60)
    first, second = lines(tmp_path / "log")
    assert (first["model"], first["version"], first["sha256"]) == ("m", 1, answer["sha256"])
    scores = {each["id"]: each["score"] for each in answer["ranking"]}
    assert dict(zip(first["ids"], first["scores"], strict=True)) == scores
    np.testing.assert_allclose(first["shadow"]["scores"], linear()._predict(X))
    # The shadow takes no missing value; the served model's ranking is logged all the same.
    assert second["shadow"]["error"] == "feature 'bm25' of document 0 is missing"
    data = read_ranking_log(tmp_path / "log").dataset()
    np.testing.assert_array_equal(data.features, np.concatenate([X, missing]))
    assert data.feature_names == NAMES


def test_files_end_by_size(tmp_path, model):
    log = RankingLog(tmp_path, ServingMetrics(), most_bytes=int(2.5 * size(ranking(model))))
    for number in range(5):
        log.append(ranking(model, number))
    log.close()
    counts = sorted(len(content(file)) for file in tmp_path.iterdir())
    assert counts == [1, 2, 2]
    assert sorted(entry["query"] for entry in lines(tmp_path)) == [f"q{n}" for n in range(5)]


def test_files_end_by_age(tmp_path, model):
    log = RankingLog(tmp_path, ServingMetrics(), most_seconds=0.0)
    for number in range(3):
        log.append(ranking(model, number))
        time.sleep(0.01)
    log.close()
    assert [len(content(file)) for file in tmp_path.iterdir()] == [1, 1, 1]


def test_the_sample_is_a_share_of_the_rankings(tmp_path, model):
    metrics = ServingMetrics()
    log = RankingLog(tmp_path, metrics, sample=0.25)
    log._random.seed(0)
    entry = ranking(model)
    for _ in range(400):
        log.append(entry)
    log.close()
    # Four standard deviations of 400 draws with probability 0.25 are 35.
    assert abs(len(lines(tmp_path)) - 100) < 35
    assert b'podium_serving_log_dropped_total{reason="queue"} 0.0' in metrics.text()


def test_a_full_queue_drops_and_counts(tmp_path, model, monkeypatch):
    metrics = ServingMetrics()
    log = RankingLog(tmp_path, metrics)
    entry = ranking(model)
    monkeypatch.setattr(module, "_MOST_WAITING", 3)
    with log._changed:  # the writer cannot take one meanwhile
        log._waiting.extend([entry] * 3)
        log._bytes += 3 * entry.rows.nbytes
        log.append(entry)  # the lock is reentrant for this thread
    log.close()
    assert len(lines(tmp_path)) == 3
    assert b'podium_serving_log_dropped_total{reason="queue"} 1.0' in metrics.text()


def test_large_rankings_that_wait_are_bounded_too(tmp_path, model, monkeypatch):
    metrics = ServingMetrics()
    log = RankingLog(tmp_path, metrics)
    entry = ranking(model)
    monkeypatch.setattr(module, "_MOST_BYTES", 2 * entry.rows.nbytes)
    with log._changed:  # the writer cannot take one meanwhile
        for _ in range(3):
            log.append(entry)
    log.close()
    assert len(lines(tmp_path)) == 2
    assert b'podium_serving_log_dropped_total{reason="queue"} 1.0' in metrics.text()


def wait_for(metrics, text):
    """Wait until the figures, which are read again and again, have a text."""
    deadline = time.monotonic() + 60
    while text not in metrics() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert text in metrics()


def test_a_folder_that_cannot_be_written_is_counted_and_recovers(tmp_path, model, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    metrics = ServingMetrics()
    folder = tmp_path / "log"
    log = RankingLog(folder, metrics)
    folder.rmdir()
    log.append(ranking(model))
    wait_for(metrics.text, b'{reason="write"} 1.0')
    folder.mkdir()
    time.sleep(0.02)
    log.append(ranking(model, 1))
    log.close()
    assert [entry["query"] for entry in lines(folder)] == ["q1"]
    assert b'podium_serving_log_dropped_total{reason="write"} 1.0' in metrics.text()
    assert b"podium_serving_logged_total 1.0" in metrics.text()


def test_a_full_disk_is_left_alone_for_a_while_and_has_whole_lines_in_one_file(
    tmp_path, monkeypatch
):
    """What the disk takes again during a pause is dropped, and each failure doubles the pause."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    trees().save(tmp_path / "m.podium")
    settings = ServingSettings(
        models=(parse_model(str(tmp_path / "m.podium")),), ranking_log=str(tmp_path / "log")
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    logged, dropped = "logged_total", 'log_dropped_total{reason="write"}'
    counts = {logged: 0, dropped: 0}
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:

        def rank(number, room, counted):
            """Ask while the disk has room for so many bytes more, as a file's limit has."""
            size = sum(path.stat().st_size for path in (tmp_path / "log").iterdir())
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, limits[1]))
            try:
                client.post("/rank", json=rank_body(rows(), f"q{number}")).raise_for_status()
                counts[counted] += 1
                line = f"podium_serving_{counted} {counts[counted]}.0"
                wait_for(lambda: client.get("/metrics").text, line)
                if counted == dropped:
                    assert size == sum(path.stat().st_size for path in (tmp_path / "log").iterdir())
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        # A part of a line fits: the limit takes it and refuses the rest, as a disk does.
        room, full = 1 << 20, 1000
        for number, (moment, free, counted) in enumerate(
            [
                (0.0, room, logged), (0.0, full, dropped),
                (0.9, room, dropped), (1.1, full, dropped),  # the first pause: 1 s
                (3.0, room, dropped), (3.2, room, logged),  # the next: 2 s
                (3.3, full, dropped), (4.4, room, logged),  # what was written ended them
            ]
        ):  # fmt: skip
            now[0] = moment
            rank(number, free, counted)
    assert [entry["query"] for entry in lines(tmp_path / "log")] == ["q0", "q5", "q7"]
    assert len(list((tmp_path / "log").iterdir())) == 1


def test_files_are_for_their_owner_only(tmp_path, model):
    before = os.umask(0)
    try:
        log = RankingLog(tmp_path / "log", ServingMetrics())
        log.append(ranking(model))
        log.close()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "log").iterdir()]
    assert (modes, stat.S_IMODE((tmp_path / "log").stat().st_mode)) == ([0o600], 0o700)


def test_old_files_are_removed_by_age_and_by_size(tmp_path, model):
    one = size(ranking(model))
    log = RankingLog(
        tmp_path, ServingMetrics(), most_bytes=1, kept_bytes=2.5 * one, kept_seconds=3600
    )
    aged = tmp_path / "rankings-1.jsonl"
    aged.write_text("")
    os.utime(aged, (0, 0))
    for number in range(5):
        log.append(ranking(model, number))
    log.close()
    # When the last file was begun, it was empty and two others were within the size.
    assert [entry["query"] for entry in lines(tmp_path)] == ["q2", "q3", "q4"]
    assert not aged.exists()


def test_a_file_that_another_process_writes_is_not_removed(tmp_path, model):
    other = RankingLog(tmp_path, ServingMetrics())
    other.append(ranking(model, 7))
    log = RankingLog(tmp_path, ServingMetrics(), most_bytes=1, kept_bytes=1)
    while not lines(tmp_path):
        time.sleep(0.001)
    for number in range(3):
        log.append(ranking(model, number))
    log.close()
    other.close()
    assert {entry["query"] for entry in lines(tmp_path)} == {"q7", "q2"}


def test_fewer_digits_say_the_same():
    X = np.concatenate([rows(), rows() * 1e30, rows() * 1e-30, np.zeros((1, 3), np.float32)])
    X[-1, 0] = np.nan
    short = module._shortened(X)
    np.testing.assert_array_equal(short.astype(np.float32), X)
    assert module._shortened(np.array([0.4, 0.134364], np.float32)).tolist() == [0.4, 0.134364]
    assert max(len(repr(value)) for value in short[:200].ravel().tolist()) <= 15
    np.testing.assert_array_equal(module._shortened(X.astype(np.float64)), X.astype(np.float64))


def test_searches_have_ids_in_the_answer_the_header_and_the_log(tmp_path):
    trees().save(tmp_path / "m.podium")
    settings = ServingSettings(
        models=(parse_model(str(tmp_path / "m.podium")),), ranking_log=str(tmp_path / "log")
    )
    ask = rank_body(rows()[:3], "red shoes") | {"query_id": "q 17"}
    tensor = {"name": "features", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}
    infer = {"inputs": [tensor], "parameters": {"query_id": "q 18", "query": "red shoes"}}
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        answers = [
            client.post("/rank", json=ask | {"search_id": "mine-1"}),
            client.post("/rank", json=ask, headers={"X-Search-Id": "mine-2"}),
            client.post("/rank", json=ask),
            client.post("/v2/models/m/infer", json=infer, headers={"X-Search-Id": "mine-4"}),
        ]
        for refused in (
            client.post("/rank", json=ask, headers={"X-Search-Id": "a b"}),
            client.post("/rank", json=ask | {"search_id": "line\r\nbreak"}),
            client.post(
                "/v2/models/m/infer",
                json=infer | {"parameters": {"query": "a" * 10_001}},
            ),
        ):
            assert refused.status_code == 400
    ids = [answer.headers["x-search-id"] for answer in answers]
    assert ids[:2] + ids[3:] == ["mine-1", "mine-2", "mine-4"]
    assert len(ids[2]) == 32
    assert [answer.json()["search_id"] for answer in answers[:3]] == ids[:3]
    assert answers[3].json()["parameters"]["search_id"] == "mine-4"
    logged = lines(tmp_path / "log")
    assert [entry["search_id"] for entry in logged] == ids
    assert [entry["query_id"] for entry in logged] == ["q 17"] * 3 + ["q 18"]
    assert {entry["query"] for entry in logged} == {"red shoes"}
    assert read_ranking_log(tmp_path / "log").dataset().query_ids.to_pylist() == ["q 17", "q 18"]
