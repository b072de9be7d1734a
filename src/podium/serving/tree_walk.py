"""Trees laid out for a fast walk: siblings side by side, thresholds in the precision of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.kernels import Doubles, Ints
from podium.scorers.single_precision import below
from podium.scorers.trees import TreeModel
from podium.serving.rows import Rows, row_type
from podium.serving.tree_walk_kernel import walk_trees

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
