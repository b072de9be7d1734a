"""Groups of documents with cyclic majorities (strongly connected components), best group first.

An order that keeps these groups in sequence contradicts no majority between two groups, so that
each group can be ordered separately (the extended Condorcet criterion).
"""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, Ints, kernel


@kernel
def grouped_order(table: Doubles, order: Ints) -> tuple[Ints, Ints]:
    """Return the documents ordered group by group, and the index at which each group begins.

    Where majorities do not decide which of two groups is first, the one with the earlier document
    in the given order is; within a group the given order is kept. Takes O(n²).
    """
    size = len(order)
    group = _groups(table, order)
    groups = 0
    for document in range(size):
        groups = max(groups, group[document] + 1)
    blocked = np.zeros(groups, np.int64)  # majorities won by documents of groups not yet placed
    sizes = np.zeros(groups, np.int64)
    earliest = np.full(groups, size, np.int64)
    for position in range(size):
        document = order[position]
        sizes[group[document]] += 1
        earliest[group[document]] = min(earliest[group[document]], position)
        for other in range(size):
            if table[other, document] > 0 and group[other] != group[document]:
                blocked[group[document]] += 1
    result = np.empty(size, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    for turn in range(groups):
        chosen = -1
        for each in range(groups):
            if blocked[each] == 0 and (chosen < 0 or earliest[each] < earliest[chosen]):
                chosen = each
        blocked[chosen] = -1
        end = starts[turn]
        starts[turn + 1] = end + sizes[chosen]
        for position in range(size):
            document = order[position]
            if group[document] == chosen:
                result[end] = document
                end += 1
                for other in range(size):
                    if table[document, other] > 0 and group[other] != chosen:
                        blocked[group[other]] -= 1
    return result, starts


@kernel
def _groups(table: Doubles, order: Ints) -> Ints:
    """Return the strongly connected component of each document (Kosaraju's algorithm)."""
    size = len(order)
    finished = np.empty(size, np.int64)
    path = np.empty(size, np.int64)
    following = np.zeros(size, np.int64)
    seen = np.zeros(size, np.bool_)
    count = 0
    for position in range(size):
        if seen[order[position]]:
            continue
        depth = 1
        path[0] = order[position]
        seen[order[position]] = True
        while depth:
            document = path[depth - 1]
            while following[document] < size and (
                seen[following[document]] or table[document, following[document]] <= 0
            ):
                following[document] += 1
            if following[document] == size:
                finished[count] = document
                count += 1
                depth -= 1
            else:
                path[depth] = following[document]
                seen[path[depth]] = True
                depth += 1
    group = np.full(size, -1, np.int64)
    groups = 0
    for position in range(size - 1, -1, -1):
        if group[finished[position]] >= 0:
            continue
        depth = 1
        path[0] = finished[position]
        group[finished[position]] = groups
        while depth:
            depth -= 1
            document = path[depth]
            for other in range(size):
                if group[other] < 0 and table[other, document] > 0:
                    group[other] = groups
                    path[depth] = other
                    depth += 1
        groups += 1
    return group
