"""The processes that train one text ranker together, if ``torch.distributed`` has any."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.rankers.communicator import SINGLE_PROCESS, Communicator


class TorchProcesses(Communicator):
    """The default process group of ``torch.distributed``.

    Args:
        device: Where tensors are summed.
    """

    def __init__(self, device: torch.device) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._device = device

    def all_reduce(self, values: Doubles) -> Doubles:
        """Sum the values of all processes."""
        summed = torch.from_numpy(np.ascontiguousarray(values)).to(self._device)
        dist.all_reduce(summed)
        return summed.cpu().numpy()


def text_processes(device: torch.device) -> Communicator:
    """Return the processes of the default process group, or this process alone."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return TorchProcesses(device)
    return SINGLE_PROCESS


def require_same(epoch: int, processes: Communicator) -> None:
    """Raise an ArgumentError in all processes unless all continue after the same epoch."""
    epochs, squares = processes.all_reduce(np.array([epoch, epoch**2], np.float64))
    if processes.size * squares != epochs**2:
        raise ArgumentError(
            "the processes have different checkpoints",
            hint="Give a checkpoint_folder that all of them read.",
        )


def sum_gradients(module: Any, processes: Communicator) -> None:
    """Replace each gradient by the sum over processes; what no process used keeps none."""
    if processes.size == 1:
        return
    parameters = list(module.parameters())
    own = np.array([parameter.grad is not None for parameter in parameters], np.float64)
    used = processes.all_reduce(own) > 0
    for parameter, is_used in zip(parameters, used, strict=True):
        if is_used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
