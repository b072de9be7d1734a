"""Tasks of sweeps that workers import by this module's name."""

import os
from pathlib import Path
from typing import Any

from podium.cluster import grid


def dies(number: int, copy: int = 0) -> dict[str, Any]:
    """A task whose process ends, as by a fault in a library or for want of memory."""
    if number == 1:
        os._exit(1)
    return {"number": number, "copy": copy}


TASKS = grid(k=[1, 2, 3], model=["linear", "trees"], rate=[0.1, 1])


def measured(k: int, model: str, rate: float, log: str | None = None) -> dict[str, Any]:
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{k}\n")
    return {"value": k * rate, "name": f"{model}-{k}"}
