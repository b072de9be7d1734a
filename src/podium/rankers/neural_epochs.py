"""The state of a neural fit between epochs, and gradients shared by several processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data import Dataset
from podium.kernels import Floats
from podium.rankers.communicator import Together
from podium.rankers.storage import Archive
from podium.rankers.validation_monitor import Watch


def share_gradients(module: Any, batch: Dataset | None, together: Together) -> None:
    """Put the mean gradient of all processes' queries in place of that of this one's.

    A batch is then the batches of all processes together, as if one had held them.
    """
    import torch

    weight = 0 if batch is None else len(batch)
    parameters = list(module.parameters())
    own = np.zeros(sum(each.numel() for each in parameters) + 1)
    if weight:
        flat = torch.cat([each.grad.reshape(-1) for each in parameters])
        own[:-1] = weight * flat.numpy().astype(np.float64)
        own[-1] = weight
    summed = together.total(own)
    mean = torch.from_numpy((summed[:-1] / max(summed[-1], 1.0)).astype(np.float32))
    first = 0
    for each in parameters:
        each.grad = mean[first : first + each.numel()].reshape(each.shape).clone()
        first += each.numel()


def saved_epochs(
    epoch: int,
    state: dict[str, Floats],
    optimiser: Any,
    watch: Watch[dict[str, Floats]],
    random: np.random.Generator,
) -> Archive:
    """All that the next epoch depends on: weights now and at their best, Adam's moments, draws."""
    arrays = {f"now.{name}": value for name, value in state.items()}
    arrays |= {f"best.{name}": value for name, value in (watch.model or {}).items()}
    for place, moments in optimiser.state_dict()["state"].items():
        for name, value in moments.items():
            arrays[f"adam.{place}.{name}"] = value.numpy()
    return Archive("", watch.facts(epoch) | {"draws": random.bit_generator.state}, arrays)


def resume_epochs(
    saved: Archive,
    optimiser: Any,
    watch: Watch[dict[str, Floats]],
    random: np.random.Generator,
) -> int:
    """Bring all but the weights back to where ``saved_epochs`` saw them; gives the epoch."""
    import torch

    moments: dict[int, dict[str, Any]] = {}
    for name, value in arrays_under("adam.", saved).items():
        place, _, what = name.partition(".")
        moments.setdefault(int(place), {})[what] = torch.tensor(value)
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    random.bit_generator.state = saved.facts["draws"]
    best = arrays_under("best.", saved)
    watch.model = best or None
    return watch.resume(saved.facts)


def arrays_under(prefix: str, archive: Archive) -> dict[str, Floats]:
    """The arrays of an archive whose names begin so, without that beginning."""
    return {
        name.removeprefix(prefix): value
        for name, value in archive.arrays.items()
        if name.startswith(prefix)
    }
