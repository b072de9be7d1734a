"""Jobs run in a child process of low priority, so that people who judge do not wait for them.

A thread of the server would share Python's interpreter lock with every request: an import of some
thousand documents would delay each answer. The child is started with the first job and kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock

from podium.studio.jobs.execution import JobFunction, JobOutcome
from podium.studio.jobs.queue import JobContext
from podium.studio.settings import Settings

_PROGRAM = "podium.studio.job_child"


class JobProcess:
    """A child process that does jobs one after the other.

    Args:
        settings: The server's settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._child: subprocess.Popen[str] | None = None

    def execute(self, _function: JobFunction, context: JobContext) -> JobOutcome:
        """Let the child do a job; if it dies, the job is begun again like any other."""
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            order = {"job": context.job.id, "worker": context.job.worker}
            child.stdin.write(json.dumps(order) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except OSError:
            line = ""
        if not line:
            code = child.wait()
            return JobOutcome("interrupted", {"error": f"the process of the job ended with {code}"})
        return JobOutcome(**json.loads(line))

    def close(self) -> None:
        """End the child; a job that it is at is begun again by another worker."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._child is None:
            return
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):  # an order that the child never read
                    pipe.close()
        self._child = None

    def _started(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                return self._child
            self._end()
            # The path of this process: with tests and editable installs it is not the default.
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._child = subprocess.Popen(  # noqa: S603 - our own module, no argument of others
                [sys.executable, "-P", "-m", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                text=True,
                encoding="utf-8",
            )
            assert self._child.stdin is not None
            self._child.stdin.write(self._settings.model_dump_json() + "\n")
            self._child.stdin.flush()
            return self._child
