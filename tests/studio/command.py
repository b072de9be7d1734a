"""``podium studio`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager

import httpx2

from tests.cli.run_podium import PODIUM


@contextmanager
def running(*words, folder, **variables):
    with subprocess.Popen(
        [PODIUM, "studio", *map(str, words)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        pipesize=1 << 20,  # a line for each request, which nobody reads before the end
        env={**os.environ, "PYTHONUNBUFFERED": "1", **variables},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()


def answers(client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx2.HTTPError:
        return False
