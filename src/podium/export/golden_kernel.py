"""Compiled search for rows that together reach every side of every split."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, Ints, inner, kernel

LEFT, RIGHT, MISSING = 0, 1, 2
"""The goals of a split: the last value that goes left, the first that goes right, a missing one."""

_TRIES = 4096
"""The number of further goals that are tried for each row."""


@inner
def _meet(
    node: int,
    goal: int,
    feature: Ints,
    parent: Ints,
    is_left: NDArray[np.bool_],
    missing_left: NDArray[np.bool_],
    edges: Doubles,
    exact: NDArray[np.bool_],
    low: Doubles,
    high: Doubles,
    missing: NDArray[np.bool_],
    low_before: Doubles,
    high_before: Doubles,
    missing_before: NDArray[np.bool_],
) -> bool:
    """Narrow the values of a row so that it meets a goal; unchanged if it cannot."""
    # The features on the way are few: what they were is kept, to be restored.
    below, fits, came_left = node, True, False
    steps = 0
    while below >= 0:
        column = feature[below]
        low_before[steps] = low[column]
        high_before[steps] = high[column]
        missing_before[steps] = missing[column]
        steps += 1
        side = goal
        if below != node:
            side = LEFT if came_left else RIGHT
        if side == MISSING:
            low[column], high[column] = np.inf, -np.inf
        else:
            edge = edges[side, below]
            if exact[below] or below == node:
                low[column], high[column] = max(low[column], edge), min(high[column], edge)
            elif side == LEFT:
                high[column] = min(high[column], edge)
            else:
                low[column] = max(low[column], edge)
            if below == node or missing_left[below] != (side == LEFT):
                missing[column] = False
        if low[column] > high[column] and not missing[column]:
            fits = False
            break
        came_left = is_left[below]
        below = parent[below]
    if fits:
        return True
    below = node
    columns = np.empty(steps, np.int64)
    for step in range(steps):
        columns[step] = feature[below]
        below = parent[below]
    for step in range(steps - 1, -1, -1):  # the first change of a feature is undone last
        low[columns[step]] = low_before[step]
        high[columns[step]] = high_before[step]
        missing[columns[step]] = missing_before[step]
    return False


@kernel
def cover(
    feature: Ints,
    parent: Ints,
    is_left: NDArray[np.bool_],
    missing_left: NDArray[np.bool_],
    edges: Doubles,
    exact: NDArray[np.bool_],
    splits: Ints,
    met: NDArray[np.bool_],
    smallest: Doubles,
    can_miss: bool,
    random: Doubles,
    background: Doubles,
    rows: Doubles,
) -> int:
    """Fill rows until every goal is met that can be; return how many rows there are.

    Args:
        feature: The feature of each node; -1 for a leaf.
        parent: The parent of each node; -1 for a root.
        is_left: Whether a node is the left child of its parent.
        missing_left: Whether a missing value goes left.
        edges: The last value that goes left and the first that goes right, for each node.
        exact: Whether only these values do (categories).
        splits: The nodes that are splits, in the order in which goals are tried.
        met: Whether a goal of a node is met, or need not be.
        smallest: The smallest value of each feature.
        can_miss: Whether a value may be missing.
        random: Random numbers from 0 to 1, one per row and feature.
        background: Rows whose values a feature has that no goal needs.
        rows: The rows to fill.
    """
    columns = rows.shape[1]
    low, high = np.empty(columns), np.empty(columns)
    missing = np.empty(columns, np.bool_)
    deepest = 8192
    low_before, high_before = np.empty(deepest), np.empty(deepest)
    missing_before = np.empty(deepest, np.bool_)
    goals = len(splits) * 3
    next_goal, filled = 0, 0
    while filled < len(rows):
        while next_goal < goals and met[next_goal % 3, splits[next_goal // 3]]:
            next_goal += 1
        if next_goal == goals:
            break
        for column in range(columns):
            low[column], high[column] = smallest[column], np.inf
            missing[column] = can_miss
        tried = 0
        goal = next_goal
        first = True
        while goal < goals and tried < _TRIES:
            node, kind = splits[goal // 3], goal % 3
            if not met[kind, node]:
                tried += 1
                done = _meet(
                    node,
                    kind,
                    feature,
                    parent,
                    is_left,
                    missing_left,
                    edges,
                    exact,
                    low,
                    high,
                    missing,
                    low_before,
                    high_before,
                    missing_before,
                )
                if done or first:
                    met[kind, node] = True  # or it cannot be met by any row
                if first and not done:
                    break
                first = False
            goal += 1
        if first:
            continue
        source = filled % len(background)
        for column in range(columns):
            value = background[source, column]
            if low[column] > high[column]:
                value = np.nan
            elif value != value and missing[column]:
                pass
            elif not low[column] <= value <= high[column]:
                lower, upper = low[column], high[column]
                use_lower = random[filled, column] < 0.5
                use_upper = lower == -np.inf or (upper < np.inf and not use_lower)
                value = upper if use_upper else lower
                if not np.isfinite(value):
                    value = 0.0
            rows[filled, column] = value
        filled += 1
    return filled


@inner
def _child(
    node: int,
    row: Doubles,
    feature: Ints,
    threshold: Doubles,
    left: Ints,
    right: Ints,
    missing_left: NDArray[np.bool_],
    strict: bool,
) -> int:
    number = row[feature[node]]
    if number != number:
        goes_left = missing_left[node]
    elif strict:
        goes_left = number < threshold[node]
    else:
        goes_left = number <= threshold[node]
    return int(left[node] if goes_left else right[node])


@kernel
def mark_shown(
    rows: Doubles,
    resolution: Doubles,
    roots: Ints,
    feature: Ints,
    threshold: Doubles,
    left: Ints,
    right: Ints,
    missing_left: NDArray[np.bool_],
    strict: bool,
    value: Doubles,
    sizes: Doubles,
    edges: Doubles,
    leaves: NDArray[np.bool_],
    sides: NDArray[np.bool_],
) -> None:
    """Mark the leaves and the sides of splits that the scores of rows show.

    Splits by categories are left out: no engine that is asked has them.

    Args:
        rows: The rows.
        resolution: The change that the score of each row shows.
        roots: The first node of each tree.
        feature: The feature of each node; -1 for a leaf.
        threshold: The threshold of each split.
        left: The left child.
        right: The right child.
        missing_left: Whether a missing value goes left.
        strict: Whether a value equal to the threshold goes right.
        value: The value of each leaf.
        sizes: By how much the value of a leaf is changed.
        edges: The last value that goes left and the first that goes right, for each node.
        leaves: Whether a leaf is shown; it is marked here.
        sides: Whether the goals of a split are shown; they are marked here.
    """
    path = np.empty(8192, np.int64)
    for row in range(len(rows)):
        for root in roots:
            steps, node = 0, root
            while feature[node] >= 0:
                path[steps] = node
                steps += 1
                node = _child(
                    node, rows[row], feature, threshold, left, right, missing_left, strict
                )
            leaf = node
            if sizes[leaf] > resolution[row]:
                leaves[leaf] = True
            for step in range(steps):
                node = path[step]
                number = rows[row, feature[node]]
                if number != number:
                    goal = MISSING
                elif number == edges[LEFT, node]:
                    goal = LEFT
                elif number == edges[RIGHT, node]:
                    goal = RIGHT
                else:
                    continue
                if sides[goal, node]:
                    continue
                taken = path[step + 1] if step + 1 < steps else leaf
                other = right[node] if taken == left[node] else left[node]
                while feature[other] >= 0:
                    other = _child(
                        other, rows[row], feature, threshold, left, right, missing_left, strict
                    )
                sides[goal, node] = abs(value[other] - value[leaf]) > resolution[row]
