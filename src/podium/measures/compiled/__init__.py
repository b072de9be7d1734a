"""The compiled side of an evaluation: ranking, ties, and the loop that calls every measure."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Positions: TypeAlias = NDArray[np.int32]
Booleans: TypeAlias = NDArray[np.bool_]
