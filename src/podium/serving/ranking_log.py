"""The ranking log: what was ranked, by which model, with which features and scores.

Requests never wait for it. They append to a bounded queue, and a thread of its own encodes,
scores by the shadow model and writes; what does not fit in the queue is dropped and counted.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import structlog

from podium.kernels import Doubles
from podium.serving.metrics import ServingMetrics
from podium.serving.model import ServedModel
from podium.serving.refusal import Refusal
from podium.serving.rows import Rows

_MOST_WAITING = 1_000
_MOST_BYTES = 64 << 20
"""The largest size of the feature matrices that wait."""


@dataclass(frozen=True)
class LoggedRanking:
    """A ranking to log.

    Attributes:
        time: When it was made, in seconds since 1970.
        model: The model that scored it.
        shadow: The model whose scores are logged beside it, or None.
        query: The client's name of the query.
        ids: The documents' ids, or None if they only have positions.
        rows: Their features.
        scores: Their scores.
    """

    time: float
    model: ServedModel
    shadow: ServedModel | None
    query: str | int | None
    ids: list[str | int] | None
    rows: Rows
    scores: Doubles

    def line(self) -> bytes:
        """Encode it as a line of JSON."""
        ids = list(range(len(self.scores))) if self.ids is None else self.ids
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds"),
            "model": self.model.name,
            "version": self.model.version,
            "sha256": self.model.digest,
            "query": self.query,
            "ids": ids,
            "scores": self.scores.tolist(),
            # NaN becomes null.
            "features": dict(zip(self.model.feature_names, self.rows.T.tolist(), strict=True)),
        }
        if self.model.definitions_hash is not None:
            content["definitions"] = self.model.definitions_hash
        if self.shadow is not None:
            content["shadow"] = self._shadow(self.shadow)
        return msgspec.json.encode(content) + b"\n"

    def _shadow(self, shadow: ServedModel) -> dict[str, Any]:
        column = {name: number for number, name in enumerate(self.model.feature_names)}
        order = [column[name] for name in shadow.feature_names]
        result: dict[str, Any] = {"sha256": shadow.digest}
        try:
            scores = shadow.score(np.ascontiguousarray(self.rows[:, order]))
        except Refusal as refusal:  # such as a missing value, which the served model takes
            return result | {"error": refusal.reason}
        return result | {"scores": scores.tolist()}


class RankingLog:
    """Writes rankings to files that end by size or age.

    Args:
        folder: Where; each process writes files of its own.
        metrics: Counts what is written and dropped.
        sample: The share of rankings that are logged.
        most_bytes: The size at which a file ends.
        most_seconds: The age at which it ends.
    """

    def __init__(
        self,
        folder: Path,
        metrics: ServingMetrics,
        *,
        sample: float = 1.0,
        most_bytes: int = 64 << 20,
        most_seconds: float = 3600.0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._metrics, self._sample = folder, metrics, sample
        self._most_bytes, self._most_seconds = most_bytes, most_seconds
        self._random = random.Random()  # noqa: S311 - a sample, not a secret
        self._waiting: deque[LoggedRanking] = deque()
        self._bytes = 0
        self._closing = False
        self._changed = threading.Condition()
        self._file: BinaryIO | None = None
        self._opened = 0.0
        self._number = 0
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="ranking-log", daemon=True)
        self._thread.start()

    def append(self, ranking: LoggedRanking) -> None:
        """Log a ranking if the sample has it and the queue has room; never waits."""
        if self._sample < 1 and self._random.random() >= self._sample:
            return
        size = ranking.rows.nbytes
        with self._changed:
            full = len(self._waiting) >= _MOST_WAITING or self._bytes + size > _MOST_BYTES
            if not full and not self._closing:
                self._waiting.append(ranking)
                self._bytes += size
                self._changed.notify()
                return
        self._metrics.log_dropped("queue")

    def close(self, seconds: float = 10.0) -> None:
        """Write what waits, for at most so long."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                if not self._waiting:
                    break
                ranking = self._waiting.popleft()
                self._bytes -= ranking.rows.nbytes
            self._write(ranking)
        if self._file is not None:
            self._file.close()

    def _write(self, ranking: LoggedRanking) -> None:
        try:
            line = ranking.line()
            file = self._open(len(line))
            file.write(line)
        except Exception as error:  # a full disk must not end the log, nor the service
            self._metrics.log_dropped("write")
            if not self._failing:
                structlog.get_logger("podium.serving").error("ranking log", error=repr(error))
            self._failing = True
            self._file = None
        else:
            self._metrics.log_written()
            self._failing = False

    def _open(self, size: int) -> BinaryIO:
        """Return the file for a line of a size: the present one, or a new one."""
        now = time.monotonic()
        if self._file is not None:
            old = now - self._opened > self._most_seconds
            position = self._file.tell()
            if old or (position and position + size > self._most_bytes):
                self._file.close()
                self._file = None
        if self._file is None:
            moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            self._number += 1
            name = f"rankings-{moment}-{os.getpid()}-{self._number}.jsonl"
            # Unbuffered: a process that is killed loses no ranking that was counted.
            self._file = (self._folder / name).open("ab", buffering=0)
            self._opened = now
        return self._file
