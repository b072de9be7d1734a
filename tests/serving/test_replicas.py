"""The service on a real Ray Serve of this machine."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress

import httpx2
import pytest

from podium.errors import ArgumentError
from podium.serving.replicas import Scale
from tests.ports import free_port
from tests.serving.load import Load
from tests.serving.service import rank_body, rows, trees

_DEPLOY_TWICE = """
import json, sys
from podium.cluster.connection import Cluster
from podium.serving import ServingSettings
from podium.serving.settings import parse_model
from podium.serving.replicas import APPLICATION, Scale, deploy
from ray import serve

port, files = int(sys.argv[1]), sys.argv[2:]
with Cluster("local", workers=2) as cluster:
    for file in files:
        settings = ServingSettings(models=(parse_model("m=" + file),))
        deploy(settings, cluster, Scale(1, 2), host="127.0.0.1", port=port)
        print("deployed", flush=True)
        sys.stdin.readline()
    deployments = serve.status().applications[APPLICATION].deployments
    print(json.dumps(deployments["service"].replica_states), flush=True)
    serve.shutdown()
"""


@pytest.mark.slow
@pytest.mark.long
def test_a_second_deployment_replaces_the_first_under_load_which_adds_a_replica(tmp_path):
    expected = {}
    for number, sign in enumerate((1.0, -1.0)):
        content = trees(sign).to_bytes()
        (tmp_path / f"{number}.podium").write_bytes(content)
        expected[hashlib.sha256(content).hexdigest()] = trees(sign)._predict(rows()[:20])
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", _DEPLOY_TWICE, str(port),
         str(tmp_path / "0.podium"), str(tmp_path / "1.podium")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "deployed\n"
        with Load(port, expected, clients=12) as load:
            time.sleep(40)  # Ray Serve adds replicas after 30 seconds of load
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "deployed\n"
            before = load.answers.copy()
            time.sleep(5)
        process.stdin.write("\n")
        process.stdin.flush()
        states = json.loads(process.stdout.readline())
        assert process.wait(120) == 0
    first, second = expected
    assert (load.wrong, load.refused, load.failed) == ([], [], 0)
    assert before[first] > 0
    assert load.answers[second] > before[second]
    assert states == {"RUNNING": 2}


@pytest.mark.slow
@pytest.mark.long
def test_the_command_deploys_on_a_cluster_of_this_machine_until_sigterm(tmp_path):
    trees().save(tmp_path / "m.podium")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "podium", "serve", tmp_path / "m.podium", "--port", str(port),
         "--cluster", "local", "--replicas", "2"]
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 180
        status, answer = 0, {}
        while status != 200 and time.monotonic() < deadline and process.poll() is None:
            with suppress(httpx2.HTTPError):  # the proxy answers before there is a replica
                body = rank_body(rows()[:20])
                done = httpx2.post(f"http://127.0.0.1:{port}/rank", json=body, timeout=30)
                status, answer = done.status_code, done.json() if done.is_success else {}
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
    digest = hashlib.sha256((tmp_path / "m.podium").read_bytes()).hexdigest()
    assert (status, answer["sha256"]) == (200, digest)


def test_fewer_at_most_than_at_least_are_refused():
    with pytest.raises(ArgumentError, match="at most 1 replicas are fewer than 2"):
        Scale(2, 1)
