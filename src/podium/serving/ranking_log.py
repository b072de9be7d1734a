"""The ranking log: what was ranked, by which model, with which features and scores.

Requests never wait for it. They append to a bounded queue, and a thread of its own encodes,
scores by the shadow model and writes; what does not fit in the queue is dropped and counted.
Each line is compressed by itself: files have whole lines only, whenever a process ends.
"""

from __future__ import annotations

import errno
import gzip
import math
import os
import random
import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import structlog

from podium.data.atomic import try_lock
from podium.kernels import Doubles
from podium.serving.experiment import InterleavedPage
from podium.serving.metrics import ServingMetrics
from podium.serving.model import ServedModel
from podium.serving.refusal import Refusal
from podium.serving.rows import Rows

_MOST_WAITING = 1_000
_MOST_BYTES = 64 << 20
"""The largest size of the feature matrices that wait."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds without an attempt to write after one that failed; each further failure doubles them."""


@dataclass(frozen=True)
class SearchNames:
    """What a client calls a search, for the log.

    Attributes:
        search_id: The id of this one search, by which later events are joined to it.
        query_id: The id of its query, by which judgments are joined.
        query: What was searched for.
        start: How many documents come before the page that was asked for, if it was a page.
        size: The length of the page.
        client: A hash of who searches.
        page: What was shown of two rankings, if the search was interleaved.
    """

    search_id: str
    query_id: str | int | None = None
    query: str | int | None = None
    start: int | None = None
    size: int | None = None
    client: str | None = None
    page: InterleavedPage | None = None


@dataclass(frozen=True)
class LoggedRanking:
    """A ranking to log.

    Attributes:
        time: When it was made, in seconds since 1970.
        model: The model that scored it.
        shadow: The model whose scores are logged beside it, or None.
        names: What the client calls the search.
        ids: The documents' ids, or None if they only have positions.
        rows: Their features.
        scores: Their scores.
    """

    time: float
    model: ServedModel
    shadow: ServedModel | None
    names: SearchNames
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
            "search_id": self.names.search_id,
            "query_id": self.names.query_id,
            "query": self.names.query,
            "ids": ids,
            "scores": self.scores.tolist(),
            # NaN becomes null.
            "features": dict(
                zip(self.model.feature_names, _shortened(self.rows).T.tolist(), strict=True)
            ),
        }
        if self.names.size is not None:
            content |= {"from": self.names.start, "size": self.names.size}
        if self.names.client is not None:
            content["client"] = self.names.client
        page = self.names.page
        if page is not None:
            experiment = {
                "id": page.experiment, "method": page.settings.method, "old": page.settings.old,
                "new": page.settings.new,
            }  # fmt: skip
            content |= {"experiment": experiment, "shown": page.shown, "credits": page.credits}
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


def _shortened(rows: Rows) -> Rows:
    """Return single-precision numbers with seven or nine digits, where these say the same."""
    if rows.dtype != np.float32:
        return rows
    numbers = wide = rows.astype(np.float64)
    with np.errstate(all="ignore"):  # zeros and NaN stay as they are
        exponent = np.floor(np.log10(np.abs(wide)))
        for digits in (9, 7):
            scale = 10.0 ** (digits - 1 - exponent)
            short = np.round(wide * scale) / scale
            numbers = np.where(short.astype(np.float32) == rows, short, numbers)
    return numbers


class RankingLog:
    """Writes rankings to compressed files that end by size or age, and removes old ones.

    Queries may be personal data: only the owner of the process may read the files.

    Args:
        folder: Where; each process writes files of its own.
        metrics: Counts what is written and dropped.
        sample: The share of rankings that are logged.
        most_bytes: The size at which a file ends.
        most_seconds: The age at which it ends.
        kept_bytes: The size of all files above which the oldest are removed.
        kept_seconds: The age at which a file is removed.
    """

    def __init__(
        self,
        folder: Path,
        metrics: ServingMetrics,
        *,
        sample: float = 1.0,
        most_bytes: int = 64 << 20,
        most_seconds: float = 3600.0,
        kept_bytes: float = math.inf,
        kept_seconds: float = math.inf,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._metrics, self._sample = folder, metrics, sample
        self._most_bytes, self._most_seconds = most_bytes, most_seconds
        self._kept_bytes, self._kept_seconds = kept_bytes, kept_seconds
        self._random = random.Random()  # noqa: S311 - a sample, not a secret
        self._waiting: deque[LoggedRanking] = deque()
        self._bytes = 0
        self._closing = False
        self._changed = threading.Condition()
        self._file: BinaryIO | None = None
        self._size = 0
        self._opened = 0.0
        self._writer = secrets.token_hex(4)  # processes of several machines may share a number
        self._number = 1
        self._pause = 0.0
        self._pause_ends = 0.0
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
        if time.monotonic() < self._pause_ends:
            self._metrics.log_dropped("write")
            return
        try:
            line = gzip.compress(ranking.line(), compresslevel=1, mtime=0)
            file = self._open(len(line))
            if self._pause:
                file.truncate(self._size)
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except Exception as error:  # a full disk must not end the log, nor the service
            if not self._pause:
                structlog.get_logger("podium.serving").error("ranking log", error=repr(error))
            self._pause = min(max(_FIRST_PAUSE, 2 * self._pause), _LONGEST_PAUSE)
            self._pause_ends = time.monotonic() + self._pause
            with suppress(OSError):  # no part of a line, even if the process ends now
                if self._file is not None:
                    self._file.truncate(self._size)
            self._metrics.log_dropped("write")
        else:
            self._metrics.log_written()
            self._size += len(line)
            self._pause = 0.0

    def _open(self, size: int) -> BinaryIO:
        """Return the file for a line of a size: the present one, or a new one."""
        now = time.monotonic()
        if self._file is not None and self._size:
            old = now - self._opened > self._most_seconds
            if old or self._size + size > self._most_bytes:
                self._file.close()
                self._file = None
        if self._file is None:
            moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            name = f"rankings-{moment}-{self._writer}-{self._number}.jsonl.gz"
            # Unbuffered: a process that is killed loses no ranking that was counted.
            self._file = open(  # noqa: SIM115 - until it has its size or age
                self._folder / name, "ab", buffering=0, opener=_open_privately
            )
            try_lock(self._file)  # so that no other process removes it
            self._number += 1
            self._opened, self._size = now, 0
            self._remove_old()
        return self._file

    def _remove_old(self) -> None:
        """Remove files that are too old, and the oldest ones if all are too large together."""
        files = []
        for path in self._folder.glob("rankings-*.jsonl*"):
            with suppress(OSError):  # another process may remove it, too
                files.append((path.stat().st_mtime, path.stat().st_size, path))
        total = removed = 0
        for moment, size, path in sorted(files, reverse=True):
            total += size
            if total <= self._kept_bytes and moment >= time.time() - self._kept_seconds:
                continue
            with suppress(OSError), path.open("rb") as file:
                if try_lock(file):
                    path.unlink()
                    removed += 1
        if removed:
            structlog.get_logger("podium.serving").info("ranking log files removed", files=removed)


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
