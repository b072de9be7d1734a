"""Compiled searches for an order near a majority table: insertion, and moves of one document."""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, Ints, kernel


@kernel
def best_first(scores: Doubles) -> Ints:
    """Return rows by descending score; ties keep their order."""
    return np.argsort(-scores, kind="mergesort").astype(np.int64)


@kernel
def insert_all(table: Doubles, order: Ints) -> None:
    """Insertion sort: each document moves up while a majority prefers it to the one above."""
    for position in range(1, len(order)):
        document = order[position]
        target = position
        while target > 0 and table[document, order[target - 1]] > 0:
            order[target] = order[target - 1]
            target -= 1
        order[target] = document


@kernel
def move_all(table: Doubles, order: Ints, tolerance: float) -> None:
    """Move single documents to their best positions until no move lowers the distance."""
    size = len(order)
    moved = True
    while moved:
        moved = False
        for document in range(size):
            position = 0
            while order[position] != document:
                position += 1
            best, target = tolerance * size, position  # below that, gains are rounding errors
            gain = 0.0
            for above in range(position - 1, -1, -1):
                gain += table[document, order[above]]
                if gain > best:
                    best, target = gain, above
            gain = 0.0
            for below in range(position + 1, size):
                gain -= table[document, order[below]]
                if gain > best:
                    best, target = gain, below
            if target != position:
                moved = True
                step = 1 if target > position else -1
                while position != target:
                    order[position] = order[position + step]
                    position += step
                order[target] = document


@kernel
def write_order(order: Ints, begin: int, scores: Doubles) -> None:
    """Score the rows of a query n, n - 1, …, 1 from first to last."""
    for position in range(len(order)):
        scores[begin + order[position]] = len(order) - position
