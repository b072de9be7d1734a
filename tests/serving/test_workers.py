"""The processes of a service know which of them live, and what they serve."""

from __future__ import annotations

import os
import subprocess
import sys

from podium.serving.workers import WorkerFile, living_workers, wait_for_generation

_WORKER = """
import sys
from pathlib import Path
from podium.serving.workers import WorkerFile
worker = WorkerFile(Path(sys.argv[1]))
for line in sys.stdin:
    worker.set_generation(int(line))
    print(line, end="", flush=True)
"""


def test_killed_processes_are_forgotten(tmp_path):
    own = WorkerFile(tmp_path)
    own.set_generation(7)
    other = subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with other:
        other.stdin.write("6\n")
        other.stdin.flush()
        assert other.stdout.readline() == "6\n"
        assert living_workers(tmp_path) == {os.getpid(): 7, other.pid: 6}
        assert not wait_for_generation(tmp_path, 7, seconds=0.05)
        other.kill()
    assert wait_for_generation(tmp_path, 7, seconds=60)
    assert living_workers(tmp_path) == {os.getpid(): 7}
    own.remove()
    assert living_workers(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
