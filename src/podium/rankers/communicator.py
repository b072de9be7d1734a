"""Communication between the processes that fit one ranker together.

Each process holds whole queries and runs the same loop as a fit in a single process. Only sums over
all rows, and the decisions that depend on them, are shared. So the training loop is written once:
in a single process, the sum over processes is the process's own value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.kernels import Doubles
from podium.rankers.storage import Archive


class Communicator:
    """The processes of one fit, as seen by one of them; this base class is a single process.

    Attributes:
        rank: The number of this process, from 0.
        size: The number of processes.

    Example:
        >>> import numpy as np
        >>> Communicator().all_reduce(np.array([1.0, 2.0]))
        array([1., 2.])
    """

    rank: int = 0
    size: int = 1

    def all_reduce(self, values: Doubles) -> Doubles:
        """Sum the values of all processes; all of them must call it equally often."""
        return values

    def engine_params(self) -> dict[str, Any]:
        """Return the parameters that an engine's own distributed learner needs."""
        return {}

    def load_checkpoint(self) -> Archive | None:
        """Return the latest checkpoint of an interrupted attempt, or None."""
        return None

    def save_checkpoint(self, step: int, make_state: Callable[[], Archive]) -> None:
        """Save the state after a step if a checkpoint is due; ``load_checkpoint`` returns it."""


SINGLE_PROCESS = Communicator()
