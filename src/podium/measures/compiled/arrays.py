"""Types of the arrays that loops over ranked lists use besides those of ``podium.kernels``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Positions: TypeAlias = NDArray[np.int32]
Booleans: TypeAlias = NDArray[np.bool_]
