"""The features of documents, in the precision that a model compares in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.floating[Any]]
"""One row per document, one column per feature."""


def row_type(*, single: bool) -> type[np.floating[Any]]:
    """Return the type of a model's rows."""
    return np.float32 if single else np.float64
