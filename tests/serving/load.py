"""Clients that send requests without pause and check every answer."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any, Self

import numpy as np

from tests.serving.service import rank_body, rows


class Load:
    """Threads that each keep one request in flight until they are stopped.

    A request that fails is one that was in flight when its connection broke; its client connects
    anew and goes on. An answer is wrong if its scores are not those of the model it names.

    Args:
        port: The service's port.
        expected: The scores of the documents by each model, by the model's digest.
        clients: The number of threads.
    """

    path = "/rank"

    def __init__(self, port: int, expected: dict[str, Any], clients: int = 4) -> None:
        self._port, self._expected = port, expected
        self._body = self.body()
        self.answers: dict[str, int] = dict.fromkeys(expected, 0)
        self.wrong: list[str] = []
        self.refused: list[int] = []
        self.failed = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def body(self) -> bytes:
        """The body of every request."""
        return json.dumps(rank_body(rows()[:20])).encode()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)

    def wait_for(self, digest: str, seconds: float = 60.0) -> None:
        """Wait for one more answer of a model."""
        before, deadline = self.answers[digest], time.monotonic() + seconds
        while self.answers[digest] == before:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no answer of {digest}")
            time.sleep(0.01)

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._stopping.is_set():
            try:
                connection.request("POST", self.path, self._body)  # connects anew if closed
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                with self._lock:
                    self.failed += 1
                continue
            with self._lock:
                self._check(answer.status, content)
        connection.close()

    def _check(self, status: int, content: bytes) -> None:
        if status != 200:
            self.refused.append(status)
            return
        answer = json.loads(content)
        scores = {each["id"]: each["score"] for each in answer["ranking"]}
        values = [scores[f"d{number}"] for number in range(20)]
        if np.allclose(values, self._expected[answer["sha256"]], atol=1e-6):
            self.answers[answer["sha256"]] += 1
        else:
            self.wrong.append(answer["sha256"])
