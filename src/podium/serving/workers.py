"""The processes of a service: which of them live, and which release each of them serves."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from podium.data.atomic import try_lock

HAS_SIGNALS = hasattr(signal, "SIGHUP")
"""Whether processes can wake each other; on Windows a service is one process."""


class WorkerFile:
    """The file of this process: locked while it lives, with the generation that it serves."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"worker-{os.getpid()}"
        # It gets its name when it is locked: unlocked, it is that of a process that was killed.
        unlocked = folder / f"starting-{os.getpid()}"
        self._file: BinaryIO = unlocked.open("wb", buffering=0)
        try_lock(self._file)
        unlocked.rename(self._path)

    def set_generation(self, generation: int) -> None:
        """Say which generation this process serves."""
        self._file.seek(0)
        self._file.write(b"%020d" % generation)

    def remove(self) -> None:
        """Say that this process ends."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def living_workers(folder: Path) -> dict[int, int]:
    """Return the ids of the processes that live, and the generation that each serves."""
    workers = {}
    for path in sorted(folder.glob("worker-*")):
        with suppress(FileNotFoundError, ValueError), path.open("rb") as file:
            if int(path.name.partition("-")[2]) != os.getpid() and try_lock(file):
                path.unlink()  # nobody holds it: its process was killed
            else:
                workers[int(path.name.partition("-")[2])] = int(file.read() or b"0")
    return workers


def ask_to_apply(folder: Path) -> None:
    """Ask all other processes to serve the newest release."""
    for process in living_workers(folder):
        if process != os.getpid():
            _signal(process, signal.SIGUSR1)


def ask_to_reload(folder: Path) -> bool:
    """Ask one process to read the files anew for all; return whether one lives."""
    workers = list(living_workers(folder))
    if workers:
        _signal(workers[0], signal.SIGHUP)
    return bool(workers)


def wait_for_generation(folder: Path, generation: int, seconds: float) -> bool:
    """Wait until all processes serve a generation; return whether they do."""
    deadline = time.monotonic() + seconds
    while any(served < generation for served in living_workers(folder).values()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
