"""Models are replaced and processes are killed while clients send requests."""

from __future__ import annotations

import hashlib
import os
import signal
import time

import httpx2
import pytest

from tests.serving.load import Load
from tests.serving.service import ADMIN, bearer, command, rows, trees, write_tokens

TIMES = {"short": (2, 1), "full": (20, 20)}
"""Reloads and kills, in CI and before a release."""


def run(tmp_path, reloads, kills):
    """Reload and kill under load; return what the clients saw."""
    file = tmp_path / "m.podium"
    contents = [trees(sign).to_bytes() for sign in (1.0, -1.0)]
    expected = {
        hashlib.sha256(content).hexdigest(): trees(sign)._predict(rows()[:20])
        for sign, content in zip((1.0, -1.0), contents, strict=True)
    }
    file.write_bytes(contents[0])
    with command([str(file), "--workers", "2"], tmp_path / "log") as service:
        service.wait_for_event("ready", 2)
        with Load(service.port, expected) as load:
            for number in range(reloads):
                partial = tmp_path / "next"
                partial.write_bytes(contents[(number + 1) % 2])
                partial.replace(file)
                service.signal(signal.SIGHUP)
                service.wait_for_event("models loaded", number + 1)
                load.wait_for(hashlib.sha256(contents[(number + 1) % 2]).hexdigest())
                time.sleep(0.3)
            lost_by_reloads = load.failed
            for number in range(kills):
                victim = service.workers()[0]
                os.kill(victim, signal.SIGKILL)
                service.wait_for_event("ready", 3 + number)
                time.sleep(0.3)
        codes = service.stop()
    return load, lost_by_reloads, codes, service.events()


@pytest.mark.slow
@pytest.mark.parametrize("size", ["short", pytest.param("full", marks=pytest.mark.long)])
def test_no_answer_is_wrong_and_only_requests_in_flight_are_lost(tmp_path, size):
    reloads, kills = TIMES[size]
    load, lost_by_reloads, code, events = run(tmp_path, reloads, kills)
    assert load.wrong == []
    assert load.refused == []
    assert lost_by_reloads == 0
    # Four clients with one request in flight each: a kill breaks at most these connections.
    assert load.failed <= 4 * kills
    assert all(count > 0 for count in load.answers.values())
    assert code == 0
    assert not [event for event in events if event["level"] == "error"]


@pytest.mark.slow
@pytest.mark.long
def test_a_load_over_http_reaches_all_processes_before_it_is_answered(tmp_path):
    file = tmp_path / "m.podium"
    trees().save(file)
    arguments = [str(file), "--workers", "2", "--token-file", write_tokens(tmp_path / "tokens")]
    with command(arguments, tmp_path / "log") as service:
        service.wait_for_event("ready", 2)
        trees(-1.0).save(file)
        load = f"{service.address}/v2/repository/models/m/load"
        assert httpx2.post(load, headers=bearer(ADMIN), timeout=60).status_code == 200
        digests = {
            httpx2.get(f"{service.address}/v2/models/m", headers=bearer(ADMIN), timeout=60).json()[
                "parameters"
            ]["sha256"]
            for _ in range(40)  # each connection reaches either process
        }
    assert digests == {hashlib.sha256(file.read_bytes()).hexdigest()}
