"""A service behind a real socket, in a thread of the tests' process or as the real command."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from podium.data import Dataset
from podium.rankers import LinearRanker, Ranker, TreeRanker
from podium.serving import ServingSettings, create_app
from tests.app_thread import serving_app
from tests.ports import free_port

NAMES = ("bm25", "age", "clicks")
TOKEN, ADMIN = "reader-secret", "admin-secret"


@cache
def rows() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(200, len(NAMES))).astype(np.float32)


def training_data(sign: float = 1.0) -> Dataset:
    X = rows()
    labels = np.clip(np.round(sign * (2 * X[:, 0] + X[:, 1] * X[:, 2]) + 2), 0, 4)
    return Dataset.from_arrays(X, labels, group=[20] * 10, feature_names=NAMES)


@cache
def trees(sign: float = 1.0, trees: int = 20) -> Ranker:
    ranker = TreeRanker("LambdaMART", n_estimators=trees, min_child_samples=3)
    return ranker.fit(training_data(sign))


@cache
def linear() -> Ranker:
    return LinearRanker("ListNet()").fit(training_data())


def write_tokens(path: Path) -> str:
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in (TOKEN, ADMIN)}
    path.write_text(f"# tokens\n{digests[TOKEN]} reader\n\n{digests[ADMIN]} deployer admin\n")
    return str(path)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def rank_body(X: Any, query: str | None = "q1") -> dict[str, Any]:
    documents = [
        {
            "id": f"d{number}",
            "features": {
                name: None if np.isnan(value) else float(value)
                for name, value in zip(NAMES, row, strict=True)
            },
        }
        for number, row in enumerate(X)
    ]
    return {"query": query, "documents": documents}


def serving(settings: ServingSettings) -> AbstractContextManager[str]:
    """Run a service in a thread; gives its address."""
    return serving_app(create_app(settings))


class Command:
    """``podium serve`` in a process of its own."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "podium", "serve", *arguments, "--port", str(self.port)],
                stderr=stderr,
            )

    def wait_until_ready(self, seconds: float = 120.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if httpx2.get(f"{self.address}/v2/health/ready", timeout=60).status_code == 200:
                    return
            except httpx2.HTTPError:
                pass
            time.sleep(0.1)
        raise RuntimeError(self.log.read_text())

    def events(self) -> list[dict[str, Any]]:
        whole = self.log.read_text().rpartition("\n")[0]  # without a line that is being written
        return [json.loads(line) for line in whole.splitlines()]

    def wait_for_event(self, name: str, count: int = 1, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while sum(event["event"] == name for event in self.events()) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(self.log.read_text())
            time.sleep(0.05)

    def workers(self) -> list[int]:
        """The ids of the processes that answer requests, oldest first."""
        ready = [event["process"] for event in self.events() if event["event"] == "ready"]
        return [process for process in ready if Path(f"/proc/{process}").exists()]

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def command(arguments: list[str], log: Path) -> Iterator[Command]:
    """Run the real command until the block ends."""
    service = Command(arguments, log)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.stop()
