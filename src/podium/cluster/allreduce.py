"""Where the workers of a fit under Ray Train add up numbers, and tell how far they are."""

from __future__ import annotations

import asyncio
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from podium.errors import PodiumError
from podium.kernels import Doubles
from podium.rankers.communicator import Together
from podium.rankers.storage import Archive, archive_bytes, read_archive

FAILURES = 5
"""So often an attempt may fail with the same error, but for those of Podium, and no checkpoint."""

STATE = "state"
"""The file of a checkpoint."""


class Exchange:
    """Adds up arrays of a few numbers; an actor on the driver's machine.

    Attempts are kept apart: what a worker gave before another was lost is not counted again. An
    attempt that fails is made again, but not where that would fail for ever.
    """

    def __init__(self) -> None:
        self._attempt = ""
        self._over: set[str] = set()
        self._given: dict[int, dict[int, Doubles]] = {}
        self._complete: dict[int, asyncio.Event] = {}
        self._steps: list[tuple[int, float, float | None]] = []
        self._failures: dict[str, set[str]] = {}
        self._refused: PodiumError | None = None

    async def begin(self, attempt: str) -> PodiumError | None:
        """Begin an attempt, which ends the one before; gives the reason if it is of no use."""
        if attempt != self._attempt and attempt not in self._over:
            self._over.add(self._attempt)
            self._attempt = attempt
            for waiting in self._complete.values():
                waiting.set()
            self._given, self._complete = {}, {}
        return self._refused

    async def failed(self, attempt: str, text: str, error: PodiumError | None) -> None:
        """Take the failure of an attempt: an error of Podium, or the text of any other."""
        if attempt != self._attempt:
            return
        attempts = self._failures.setdefault(text, set())
        attempts.add(attempt)
        if error is None and len(attempts) >= FAILURES:
            error = PodiumError(
                f"workers failed {FAILURES} times without getting further: {text}",
                hint="Is there memory enough? Do the engine's parameters fit?",
            )
        self._refused = self._refused or error

    async def refused(self) -> PodiumError | None:
        """Why no further attempt is of use, if none is."""
        return self._refused

    async def kept(self) -> None:
        """A checkpoint was kept: failures before it count no more."""
        self._failures.clear()

    async def total(
        self, attempt: str, turn: int, rank: int, size: int, values: Doubles
    ) -> Doubles:
        """The sum of what all workers give in a turn, in the order of ranks."""
        if attempt == self._attempt:
            given = self._given.setdefault(turn, {})
            complete = self._complete.setdefault(turn, asyncio.Event())
            given[rank] = values
            if len(given) == size:
                complete.set()
                # All have given in this turn, so all have taken what the one before came to.
                self._given.pop(turn - 1, None)
                self._complete.pop(turn - 1, None)
            await complete.wait()
        if attempt != self._attempt:
            raise PodiumError("this attempt is over")
        return np.asarray(np.sum([given[one] for one in sorted(given)], axis=0))

    async def tell(self, step: int, loss: float, value: float | None) -> None:
        """Report a step of the fit."""
        self._steps.append((step, loss, value))

    async def told(self) -> list[tuple[int, float, float | None]]:
        """The steps reported since the last time."""
        steps, self._steps = self._steps, []
        return steps


class UnderRayTrain(Together):
    """The workers of one fit under Ray Train.

    Args:
        attempt: The name of the attempt, the same for all.
        exchange: The actor through which numbers are added up.
        by_torch: Whether PyTorch adds them up instead.
        parameters: What the engine must be told.
        seconds: After which a checkpoint is due.
    """

    def __init__(
        self,
        attempt: str,
        exchange: Any,
        *,
        by_torch: bool,
        parameters: dict[str, Any],
        seconds: float,
    ) -> None:
        from ray import train

        context = train.get_context()
        self.rank, self.size = context.get_world_rank(), context.get_world_size()
        self._attempt = attempt
        self._exchange = exchange
        self._by_torch = by_torch
        self._parameters = parameters
        self._seconds = seconds
        self._last = time.monotonic()
        self._turn = 0

    def total(self, values: Doubles) -> Doubles:
        """The sum of what each worker gives."""
        if self.size == 1:
            return values
        if self._by_torch:
            return _total_by_torch(values)
        import ray

        self._turn += 1
        asked = self._exchange.total.remote(self._attempt, self._turn, self.rank, self.size, values)
        return np.asarray(ray.get(asked))

    def engine_parameters(self) -> dict[str, Any]:
        """What the engine must be told of the others."""
        return self._parameters if self.size > 1 else {}

    def saved(self) -> Archive | None:
        """The latest checkpoint, if there is one."""
        from ray import train

        checkpoint = train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as folder:
            return read_archive(io.BytesIO((Path(folder) / STATE).read_bytes()))

    def save(self, step: int, state: Callable[[], Archive]) -> None:
        """Keep a checkpoint, where one is due."""
        # The first worker's clock decides for all: they must report together.
        due = self.rank == 0 and time.monotonic() - self._last >= self._seconds
        if self.total(np.array([float(due)]))[0]:
            report(self.rank, state, step)
            self._last = time.monotonic()
            if self.rank == 0:
                self._exchange.kept.remote()


def report(rank: int, state: Callable[[], Archive], step: int) -> None:
    """Give Ray Train a checkpoint; all workers must call it, and the first one's counts."""
    from ray import train

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if rank == 0:
            (Path(folder) / STATE).write_bytes(archive_bytes(state()))
            checkpoint = train.Checkpoint.from_directory(folder)
        train.report({"step": step}, checkpoint=checkpoint)


def _total_by_torch(values: Doubles) -> Doubles:
    import torch
    from torch import distributed

    tensor = torch.from_numpy(np.array(values, np.float64))
    distributed.all_reduce(tensor)
    return tensor.numpy()
