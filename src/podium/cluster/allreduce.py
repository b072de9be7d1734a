"""Communication between the workers of a fit under Ray Train: sums, progress, failures."""

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
from podium.rankers.communicator import Communicator
from podium.rankers.storage import Archive, archive_bytes, read_archive

FAILURES = 5
"""How often an attempt may fail with the same error without a checkpoint in between."""

STATE = "state"
"""The name of the file in a checkpoint."""


class FitCoordinator:
    """Sums small arrays over the workers of a fit; an actor on the driver's machine.

    Attempts are kept apart: values sent before a worker was lost are not counted again. A failed
    attempt is repeated unless it would fail again.
    """

    def __init__(self) -> None:
        self._attempt = ""
        self._ended: set[str] = set()
        self._values: dict[int, dict[int, Doubles]] = {}
        self._complete: dict[int, asyncio.Event] = {}
        self._steps: list[tuple[int, float, float | None]] = []
        self._failures: dict[str, set[str]] = {}
        self._fatal_error: PodiumError | None = None

    async def begin_attempt(self, attempt: str) -> PodiumError | None:
        """Begin an attempt, ending the one before; return the error that ends all attempts."""
        if attempt != self._attempt and attempt not in self._ended:
            self._ended.add(self._attempt)
            self._attempt = attempt
            for waiting in self._complete.values():
                waiting.set()
            self._values, self._complete = {}, {}
        return self._fatal_error

    async def report_failure(self, attempt: str, text: str, error: PodiumError | None) -> None:
        """Record the failure of an attempt: a PodiumError, or the text of any other error."""
        if attempt != self._attempt:
            return
        attempts = self._failures.setdefault(text, set())
        attempts.add(attempt)
        if error is None and len(attempts) >= FAILURES:
            error = PodiumError(
                f"workers failed {FAILURES} times without getting further: {text}",
                hint="Check that workers have enough memory, and the engine's parameters.",
            )
        self._fatal_error = self._fatal_error or error

    async def fatal_error(self) -> PodiumError | None:
        """Return the error that any further attempt would raise again, if there is one."""
        return self._fatal_error

    async def checkpoint_saved(self) -> None:
        """Forget the failures before a checkpoint."""
        self._failures.clear()

    async def all_reduce(
        self, attempt: str, turn: int, rank: int, size: int, values: Doubles
    ) -> Doubles:
        """Sum the values of all workers in a turn, in the order of ranks."""
        if attempt == self._attempt:
            by_rank = self._values.setdefault(turn, {})
            complete = self._complete.setdefault(turn, asyncio.Event())
            by_rank[rank] = values
            if len(by_rank) == size:
                complete.set()
                # All workers are in this turn, so all have received the sum of the turn before.
                self._values.pop(turn - 1, None)
                self._complete.pop(turn - 1, None)
            await complete.wait()
        if attempt != self._attempt:
            raise PodiumError("this attempt is over")
        return np.asarray(np.sum([by_rank[worker] for worker in sorted(by_rank)], axis=0))

    async def report_step(self, step: int, loss: float, value: float | None) -> None:
        """Report a step of the fit."""
        self._steps.append((step, loss, value))

    async def take_steps(self) -> list[tuple[int, float, float | None]]:
        """Return the steps reported since the last call."""
        steps, self._steps = self._steps, []
        return steps


class RayTrainCommunicator(Communicator):
    """The workers of one fit under Ray Train.

    Args:
        attempt: The name of the attempt, the same for all workers.
        coordinator: The actor that sums values.
        by_torch: Whether PyTorch sums them instead.
        parameters: Parameters of the engine's distributed learner.
        seconds: The time between checkpoints.
    """

    def __init__(
        self,
        attempt: str,
        coordinator: Any,
        *,
        by_torch: bool,
        parameters: dict[str, Any],
        seconds: float,
    ) -> None:
        from ray import train

        context = train.get_context()
        self.rank, self.size = context.get_world_rank(), context.get_world_size()
        self._attempt = attempt
        self._coordinator = coordinator
        self._by_torch = by_torch
        self._parameters = parameters
        self._seconds = seconds
        self._last = time.monotonic()
        self._turn = 0

    def all_reduce(self, values: Doubles) -> Doubles:
        """Sum the values of all workers."""
        if self.size == 1:
            return values
        if self._by_torch:
            return _all_reduce_by_torch(values)
        import ray

        self._turn += 1
        reference = self._coordinator.all_reduce.remote(
            self._attempt, self._turn, self.rank, self.size, values
        )
        return np.asarray(ray.get(reference))

    def engine_params(self) -> dict[str, Any]:
        """Return the parameters of the engine's distributed learner."""
        return self._parameters if self.size > 1 else {}

    def load_checkpoint(self) -> Archive | None:
        """Return the latest checkpoint, or None."""
        from ray import train

        checkpoint = train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as folder:
            return read_archive(io.BytesIO((Path(folder) / STATE).read_bytes()))

    def save_checkpoint(self, step: int, make_state: Callable[[], Archive]) -> None:
        """Save a checkpoint if one is due."""
        # The clock of the first worker decides, because all workers must report together.
        due = self.rank == 0 and time.monotonic() - self._last >= self._seconds
        if self.all_reduce(np.array([float(due)]))[0]:
            report(self.rank, make_state, step)
            self._last = time.monotonic()
            if self.rank == 0:
                self._coordinator.checkpoint_saved.remote()


def report(rank: int, make_state: Callable[[], Archive], step: int) -> None:
    """Report a checkpoint of the first worker to Ray Train; all workers must call it."""
    from ray import train

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if rank == 0:
            (Path(folder) / STATE).write_bytes(archive_bytes(make_state()))
            checkpoint = train.Checkpoint.from_directory(folder)
        train.report({"step": step}, checkpoint=checkpoint)


def _all_reduce_by_torch(values: Doubles) -> Doubles:
    import torch
    from torch import distributed

    tensor = torch.from_numpy(np.array(values, np.float64))
    distributed.all_reduce(tensor)
    return tensor.numpy()
