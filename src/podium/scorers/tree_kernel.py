"""The compiled walk down the trees of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, Ints, kernel

ZERO = float(np.float32(1e-35))
"""LightGBM's zero: a value that is not farther from 0 counts as 0."""


@kernel
def reached_leaves(
    features: Doubles,
    roots: Ints,
    feature: Ints,
    threshold: Doubles,
    left: Ints,
    right: Ints,
    missing_left: NDArray[np.bool_],
    category_set: Ints,
    set_starts: Ints,
    set_members: Ints,
    zero_missing: NDArray[np.bool_],
    strict: bool,
    floor: bool,
    leaves: Ints,
) -> None:
    """Write the leaf that each row reaches in each tree to ``leaves``."""
    for row in range(len(features)):
        for tree in range(len(roots)):
            node = roots[tree]
            while feature[node] >= 0:
                value = features[row, feature[node]]
                if zero_missing[feature[node]] and abs(value) <= ZERO:
                    value = np.nan
                if value != value:
                    goes_left = missing_left[node]
                elif category_set[node] >= 0:
                    category = np.floor(value) if floor else np.trunc(value)
                    goes_left = False
                    if category >= 0.0 and category < 2147483648.0:
                        first = set_starts[category_set[node]]
                        last = set_starts[category_set[node] + 1]
                        position = first + np.searchsorted(
                            set_members[first:last], np.int64(category)
                        )
                        goes_left = position < last and set_members[position] == category
                elif strict:
                    goes_left = value < threshold[node]
                else:
                    goes_left = value <= threshold[node]
                node = left[node] if goes_left else right[node]
            leaves[row, tree] = node
