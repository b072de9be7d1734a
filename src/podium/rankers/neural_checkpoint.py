"""Checkpoints of a neural fit between epochs, and gradients averaged over processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data import Dataset
from podium.kernels import Floats
from podium.rankers.communicator import Communicator
from podium.rankers.storage import Archive
from podium.rankers.validation_monitor import ValidationMonitor


def average_gradients(module: Any, batch: Dataset | None, communicator: Communicator) -> None:
    """Replace the gradient by the mean over the queries of all processes.

    The batches of all processes then count as one batch.
    """
    import torch

    weight = 0 if batch is None else len(batch)
    parameters = list(module.parameters())
    local = np.zeros(sum(parameter.numel() for parameter in parameters) + 1)
    if weight:
        flat = torch.cat([parameter.grad.reshape(-1) for parameter in parameters])
        local[:-1] = weight * flat.numpy().astype(np.float64)
        local[-1] = weight
    summed = communicator.all_reduce(local)
    mean = torch.from_numpy((summed[:-1] / max(summed[-1], 1.0)).astype(np.float32))
    first = 0
    for parameter in parameters:
        last = first + parameter.numel()
        parameter.grad = mean[first:last].reshape(parameter.shape).clone()
        first = last


def make_checkpoint(
    epoch: int,
    state: dict[str, Floats],
    optimizer: Any,
    monitor: ValidationMonitor[dict[str, Floats]],
    rng: np.random.Generator,
) -> Archive:
    """Return all that the next epoch depends on: current and best weights, Adam's moments, RNG."""
    arrays = {f"now.{name}": value for name, value in state.items()}
    arrays |= {f"best.{name}": value for name, value in (monitor.model or {}).items()}
    for index, moments in optimizer.state_dict()["state"].items():
        for name, value in moments.items():
            arrays[f"adam.{index}.{name}"] = value.cpu().numpy()
    return Archive("", monitor.state(epoch) | {"rng": rng.bit_generator.state}, arrays)


def resume_from_checkpoint(
    checkpoint: Archive,
    optimizer: Any,
    monitor: ValidationMonitor[dict[str, Floats]],
    rng: np.random.Generator,
) -> int:
    """Restore all but the current weights from ``make_checkpoint``; return the epoch."""
    import torch

    moments: dict[int, dict[str, Any]] = {}
    for name, value in arrays_with_prefix("adam.", checkpoint).items():
        index, _, moment = name.partition(".")
        moments.setdefault(int(index), {})[moment] = torch.tensor(value)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    rng.bit_generator.state = checkpoint.metadata["rng"]
    best = arrays_with_prefix("best.", checkpoint)
    monitor.model = best or None
    return monitor.resume(checkpoint.metadata)


def arrays_with_prefix(prefix: str, archive: Archive) -> dict[str, Floats]:
    """Return the arrays of an archive whose names start with a prefix, without the prefix."""
    return {
        name.removeprefix(prefix): value
        for name, value in archive.arrays.items()
        if name.startswith(prefix)
    }
