"""The features of documents, in the precision that a model compares in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles

Rows: TypeAlias = NDArray[np.floating[Any]]
"""One row per document, one column per feature."""


def order_of(scores: Doubles) -> list[int]:
    """Return the rows, best first; equal scores in their own order."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def row_type(*, single: bool) -> type[np.floating[Any]]:
    """Return the type of a model's rows."""
    return np.float32 if single else np.float64
