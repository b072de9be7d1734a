"""Groups of documents whose majorities go in circles, best group first.

An order that keeps the groups in turn goes against no majority between two of them, so that each
group can be ordered by itself (the extended Condorcet criterion).
"""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, Ints, kernel


@kernel
def grouped_order(table: Doubles, order: Ints) -> tuple[Ints, Ints]:
    """Documents in an order that keeps groups together and in turn, and where groups begin.

    Where majorities leave open which of two groups is first, the one with the earlier document
    in the given order is; inside a group the given order stays. Takes O(n²).
    """
    size = len(order)
    group = _groups(table, order)
    groups = 0
    for document in range(size):
        groups = max(groups, group[document] + 1)
    blocked = np.zeros(groups, np.int64)  # majorities for documents of other groups not yet taken
    sizes = np.zeros(groups, np.int64)
    earliest = np.full(groups, size, np.int64)
    for place in range(size):
        document = order[place]
        sizes[group[document]] += 1
        earliest[group[document]] = min(earliest[group[document]], place)
        for other in range(size):
            if table[other, document] > 0 and group[other] != group[document]:
                blocked[group[document]] += 1
    found = np.empty(size, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    for turn in range(groups):
        chosen = -1
        for each in range(groups):
            if blocked[each] == 0 and (chosen < 0 or earliest[each] < earliest[chosen]):
                chosen = each
        blocked[chosen] = -1
        at = starts[turn]
        starts[turn + 1] = at + sizes[chosen]
        for place in range(size):
            document = order[place]
            if group[document] == chosen:
                found[at] = document
                at += 1
                for other in range(size):
                    if table[document, other] > 0 and group[other] != chosen:
                        blocked[group[other]] -= 1
    return found, starts


@kernel
def _groups(table: Doubles, order: Ints) -> Ints:
    """The strongly connected component of each document (Kosaraju's two searches)."""
    size = len(order)
    finished = np.empty(size, np.int64)
    path = np.empty(size, np.int64)
    following = np.zeros(size, np.int64)
    seen = np.zeros(size, np.bool_)
    count = 0
    for place in range(size):
        if seen[order[place]]:
            continue
        depth = 1
        path[0] = order[place]
        seen[order[place]] = True
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
    for place in range(size - 1, -1, -1):
        if group[finished[place]] >= 0:
            continue
        depth = 1
        path[0] = finished[place]
        group[finished[place]] = groups
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
