"""What Windows lacks is not needed to import the service and to run it in one process."""

from __future__ import annotations

import subprocess
import sys

from tests.serving.service import trees

_WITHOUT = """
import os, signal, sys
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for module, names in ((signal, ["SIGHUP", "SIGUSR1"]), (os, ["pwrite"])):
    for name in names:
        delattr(module, name)
from fastapi.testclient import TestClient
from podium.serving import ServingSettings, create_app
from podium.serving.settings import parse_model
with TestClient(create_app(ServingSettings(models=(parse_model(sys.argv[1]),)))) as client:
    print(client.get("/v2/health/ready").json())
import podium.serving.server
"""


def test_the_service_runs_without_locks_and_signals(tmp_path):
    trees().save(tmp_path / "m.podium")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, str(tmp_path / "m.podium")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "{'ready': True}" in done.stdout.splitlines()
