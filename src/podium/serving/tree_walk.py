"""Trees laid out for a fast walk: siblings side by side, thresholds in the precision of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, Ints, kernel
from podium.scorers.single_precision import below
from podium.scorers.trees import TreeModel
from podium.serving.rows import Rows, row_type

LANES = 16
"""How many rows go down a tree side by side."""
_DEEPEST = 64
"""All lanes go as deep as the deepest leaf, which costs too much in trees that are chains."""


def can_walk(model: TreeModel) -> bool:
    """Return whether ``tree_walk`` scores by these trees: by numbers, and not too deep."""
    numerical = not (model.category_set >= 0).any() and not model.zero_missing.any()
    return numerical and bool((_depths(model) <= _DEEPEST).all())


def tree_walk(model: TreeModel, *, single: bool) -> Callable[[Rows], Doubles]:
    """Return what scores rows as the model does in double precision.

    Args:
        model: The trees.
        single: Whether rows have single precision, which half the memory holds; or double.
    """
    order, position = _siblings_together(model)
    inner = model.feature[order] >= 0
    right = ~model.missing_left[order]
    column = np.where(inner, model.feature[order] + right * model.features, 2 * model.features)
    limits: Rows = model.threshold[order]
    if single:
        limits = below(limits, strict=model.strict)
    else:
        exclusive = limits if model.strict else np.nextafter(limits, np.inf)
        # A missing value that goes left is minus infinity, which has to be below all of them.
        limits = np.maximum(exclusive, -np.finfo(np.float64).max)
    threshold = np.where(inner, limits, np.inf)
    child = np.where(inner, position[model.left[order]], np.arange(len(order)))
    depths = _depths(model)
    arrays = (
        position[model.roots].astype(np.uint32),
        np.array([depths[a:b].max() for a, b in _spans(model)], np.uint32),
        column.astype(np.uint32),
        threshold.astype(row_type(single=single)),
        child.astype(np.uint32),
        np.where(inner, 0.0, model.value[order]),
    )

    def score(rows: Rows) -> Doubles:
        scores = np.full(len(rows), model.base_score)
        walk_trees(rows, *arrays, scores)
        return scores

    return score


def _spans(model: TreeModel) -> list[tuple[int, int]]:
    """Return the first node of each tree and the node after its last."""
    ends = [*model.roots.tolist()[1:], len(model.feature)]
    return list(zip(model.roots.tolist(), ends, strict=True))


def _depths(model: TreeModel) -> Ints:
    """Return how many splits are above each node; parents come before their children."""
    depths = np.zeros(len(model.feature), np.int64)
    for node in np.flatnonzero(model.feature >= 0).tolist():
        depths[model.left[node]] = depths[model.right[node]] = depths[node] + 1
    return depths


def _siblings_together(model: TreeModel) -> tuple[Ints, Ints]:
    """Return the nodes in an order with each right child after its sibling, and their positions."""
    order: list[int] = []
    left, right, feature = model.left.tolist(), model.right.tolist(), model.feature.tolist()
    for root, _ in _spans(model):
        start = len(order)
        order.append(root)
        while start < len(order):
            node = order[start]
            if feature[node] >= 0:
                order += (left[node], right[node])
            start += 1
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return np.array(order, np.int64), position


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

    A row alone waits for one node after the other. Rows that go down side by side, each in a lane
    and without a branch, wait together. A leaf is its own left child and compares a column of zeros
    with infinity, so that a lane that has arrived stays. Each column is there twice, with missing
    values as minus infinity and as infinity: a split reads the one in which they go its way.

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
