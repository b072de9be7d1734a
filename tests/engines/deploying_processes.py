"""Processes that deploy an export, one after the other, each of which may be killed.

Starting Python takes longer than a deployment: one process imports Podium and forks the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DeployingProcesses:
    """Starts processes that deploy."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, folder: Path, target: str, url: str) -> int:
        """Start to deploy a folder; return the process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\t{target}\t{url}\n")
        self._process.stdin.flush()
        return self._number()

    def wait(self) -> int:
        """Wait for the process; return its status, negative for a signal."""
        return self._number()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@contextmanager
def deploying_processes() -> Iterator[DeployingProcesses]:
    """Run the process that forks the others."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        yield DeployingProcesses(process)
    finally:
        process.kill()
        process.communicate()


def _main() -> None:
    from podium.errors import PodiumError
    from podium.export import connect_engine, deploy_export

    for line in sys.stdin:
        folder, target, url = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if deploy_export(folder, connect_engine(target, url)).live else 2
            except PodiumError:
                pass
            finally:
                os._exit(status)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _main()
