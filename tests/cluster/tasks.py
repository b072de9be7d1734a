"""Tasks of sweeps that workers import by this module's name."""

import os
from typing import Any


def dies(number: int, copy: int = 0) -> dict[str, Any]:
    """A task whose process ends, as by a fault in a library or for want of memory."""
    if number == 1:
        os._exit(1)
    return {"number": number, "copy": copy}
