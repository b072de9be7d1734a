"""The compiled walk of several rows at a time down each tree.

A row alone waits for one node after the other. Rows that go down side by side, each in a lane and
without a branch, wait together. A leaf is its own left child and compares a column of zeros with
infinity, so that a lane that has arrived stays. Each column is there twice, with missing values
as minus infinity and as infinity: a split reads the one in which they go its way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, kernel
from podium.serving.rows import Rows

LANES = 16


@kernel
def walk_trees(
    rows: Rows,
    roots: NDArray[np.uint32],
    depths: NDArray[np.uint32],
    column: NDArray[np.uint32],
    threshold: Rows,
    child: NDArray[np.uint32],
    value: Doubles,
    scores: Doubles,
) -> None:
    """Add the leaves that rows reach to their scores.

    Args:
        rows: Numbers, or NaN where missing.
        roots: The first node of each tree.
        depths: The splits above the deepest leaf of each tree.
        column: What each node compares: a feature with missing values as minus infinity, plus the
            number of features with missing values as infinity, or, for a leaf, twice that number.
        threshold: A number below it goes left; of the type of the rows.
        child: The left child of each node; the right one comes after it.
        value: The value of each leaf.
        scores: What is added to.
    """
    width = rows.shape[1]
    block = np.zeros((2 * width + 1) * LANES, rows.dtype)
    node = np.zeros(LANES, np.uint32)
    total = np.zeros(LANES, np.float64)
    one, zero, lanes = np.uint32(1), np.uint32(0), np.uint32(LANES)
    for start in range(0, len(rows), LANES):
        count = min(LANES, len(rows) - start)
        for lane in range(count):
            for feature in range(width):
                number = rows[start + lane, feature]
                missing = number != number
                block[feature * LANES + lane] = -np.inf if missing else number
                block[(width + feature) * LANES + lane] = np.inf if missing else number
        total[:] = 0.0
        for tree in range(len(roots)):
            node[:] = roots[tree]
            for _ in range(depths[tree]):
                for lane in range(LANES):
                    at = node[lane]
                    number = block[column[at] * lanes + np.uint32(lane)]
                    node[lane] = child[at] + (zero if number < threshold[at] else one)
            for lane in range(LANES):
                total[lane] += value[node[lane]]
        for lane in range(count):
            scores[start + lane] += total[lane]
