"""What several processes that fit one ranker do together.

A process holds whole queries and does all that a fit alone does; only sums over all rows, and the
decisions that hang on them, are common. So a scorer's loop is written once: alone, the sum over
processes is what the process has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.kernels import Doubles
from podium.rankers.storage import Archive


class Together:
    """The processes of one fit, as one of them sees the others; this class is a process alone.

    Attributes:
        rank: Which of them it is, from 0.
        size: How many there are.

    Example:
        >>> import numpy as np
        >>> Together().total(np.array([1.0, 2.0]))
        array([1., 2.])
    """

    rank: int = 0
    size: int = 1

    def total(self, values: Doubles) -> Doubles:
        """The sum of what each process gives; all must call it equally often."""
        return values

    def engine_parameters(self) -> dict[str, Any]:
        """What an engine with a distributed learner of its own must be told."""
        return {}

    def saved(self) -> Archive | None:
        """Where an attempt that was cut short had come to, if there was one."""
        return None

    def save(self, step: int, state: Callable[[], Archive]) -> None:
        """Offer the state after a step, from which ``saved`` lets another attempt go on."""


ALONE = Together()
