"""Servers of the tests: they say why they did not start, and end with the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engines.servers import NotStartedError, Server


class Script(Server):
    """A shell script in the place of an engine."""

    ready_path = "/"

    def __init__(self, script: str) -> None:
        super().__init__()
        self.script = script

    def prepare(self) -> None:
        (self.folder / "script").write_text(self.script)

    def command(self) -> list[str]:
        return ["sh", str(self.folder / "script")]


def test_a_server_that_ends_is_told_with_the_tail_of_its_log():
    server = Script("echo the disk is full; exit 3")
    with pytest.raises(NotStartedError, match=r"(?s)ended with status 3\..*the disk is full\n$"):
        server.start()
    assert not server.folder.exists()


def test_a_server_that_never_answers_is_ended():
    class Waiting(Script):
        def _wait(self, end: float) -> None:
            while not self.log.read_text():  # a busy machine takes its time to get there
                time.sleep(0.01)
            super()._wait(end)

    server = Waiting("echo waiting; exec sleep 600")
    with pytest.raises(NotStartedError, match=r"(?s)not ready in time\..*waiting\n$"):
        server.start(seconds=1)
    assert server.process is not None
    assert server.process.returncode == -9


def test_a_server_runs_without_privileges():
    server = Script("id -u; exit 1")
    user = "65534" if os.getuid() == 0 else str(os.getuid())
    with pytest.raises(NotStartedError, match=rf"ends with:\n{user}\n$"):
        server.start()


_TESTS = """
import sys
from tests.engines.test_servers import Script
server = Script("echo $$ > pid; exec sleep 600")
print(server.folder, flush=True)
server.start()
"""


def test_a_server_ends_with_tests_that_are_killed():
    tests = subprocess.Popen([sys.executable, "-c", _TESTS], stdout=subprocess.PIPE, text=True)
    assert tests.stdout is not None
    file = Path(tests.stdout.readline().strip()) / "pid"
    end = time.monotonic() + 60
    while not (file.exists() and file.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.05)
    process = Path("/proc") / file.read_text().strip()
    assert process.exists()
    tests.kill()
    tests.wait()
    tests.stdout.close()
    while process.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    shutil.rmtree(file.parent)
