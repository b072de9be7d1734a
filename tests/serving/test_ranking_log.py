"""The ranking log: complete, in files of bounded size, and never in the way of a request."""

from __future__ import annotations

import json
import time

import httpx
import numpy as np
import pytest

from podium.monitoring import read_ranking_log
from podium.serving import ServingSettings, parse_model
from podium.serving import ranking_log as module
from podium.serving.metrics import ServingMetrics
from podium.serving.model import ServedModel
from podium.serving.ranking_log import LoggedRanking, RankingLog
from tests.serving.service import NAMES, linear, rank_body, rows, serving, trees


@pytest.fixture(scope="module")
def model():
    return ServedModel("m", 1, trees().to_bytes(), {}, 100)


def ranking(model, number=0, shadow=None):
    X = rows()[number : number + 5]
    return LoggedRanking(
        1e9 + number, model, shadow, f"q{number}", list("abcde"), X, model.score(X)
    )


def lines(folder):
    files = sorted(folder.glob("rankings-*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


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
        answer = httpx.post(f"{address}/rank", json=rank_body(X), timeout=60).json()
        missing = X.copy()
        missing[0, 0] = np.nan
        httpx.post(f"{address}/rank", json=rank_body(missing, "q2"), timeout=60)
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
    size = len(ranking(model).line())
    log = RankingLog(tmp_path, ServingMetrics(), most_bytes=2 * size + size // 2)
    for number in range(5):
        log.append(ranking(model, number))
    log.close()
    counts = sorted(len(file.read_text().splitlines()) for file in tmp_path.iterdir())
    assert counts == [1, 2, 2]
    assert sorted(entry["query"] for entry in lines(tmp_path)) == [f"q{n}" for n in range(5)]


def test_files_end_by_age(tmp_path, model):
    log = RankingLog(tmp_path, ServingMetrics(), most_seconds=0.0)
    for number in range(3):
        log.append(ranking(model, number))
        time.sleep(0.01)
    log.close()
    assert [len(file.read_text().splitlines()) for file in tmp_path.iterdir()] == [1, 1, 1]


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


def test_a_folder_that_cannot_be_written_is_counted_and_recovers(tmp_path, model):
    metrics = ServingMetrics()
    folder = tmp_path / "log"
    log = RankingLog(folder, metrics)
    folder.rmdir()
    log.append(ranking(model))
    deadline = time.monotonic() + 60
    while b'{reason="write"} 1.0' not in metrics.text() and time.monotonic() < deadline:
        time.sleep(0.01)
    folder.mkdir()
    log.append(ranking(model, 1))
    log.close()
    assert [entry["query"] for entry in lines(folder)] == ["q1"]
    assert b'podium_serving_log_dropped_total{reason="write"} 1.0' in metrics.text()
    assert b"podium_serving_logged_total 1.0" in metrics.text()
