"""Labels of a top-k order, made of any labels (in kernels)."""

from __future__ import annotations

import numpy as np

from podium.kernels import Floats, kernel
from podium.measures.definitions._shared import larger_in


@kernel
def top_k_labels(labels: Floats, ideal: Floats, k: int, size: int) -> Floats:
    """``k + 1 - position`` for the k best documents of a query, 0 for the others.

    The position counts the documents with larger labels, so any labels may be given: a top-k
    order, a full order, or grades, of which equal ones share a position.

    Args:
        labels: Of which the first ``size`` are wanted.
        ideal: The labels of all documents of the query, largest first.
        k: The length of the order.
        size: How many labels to make.
    """
    found = np.zeros(size, np.float32)
    for place in range(size):
        if labels[place] > 0.0:
            found[place] = max(k - larger_in(ideal, labels[place]), 0)
    return found
