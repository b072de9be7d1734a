"""Compiled searches for an order near a majority table: insertion, and moves of one document."""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, Ints, kernel


@kernel
def best_first(scores: Doubles) -> Ints:
    """Rows by descending score, equal ones in the order they come."""
    return np.argsort(-scores, kind="mergesort").astype(np.int64)


@kernel
def insert_all(table: Doubles, order: Ints) -> None:
    """Take documents in order; each climbs while a majority prefers it to the one above."""
    for place in range(1, len(order)):
        document = order[place]
        to = place
        while to > 0 and table[document, order[to - 1]] > 0:
            order[to] = order[to - 1]
            to -= 1
        order[to] = document


@kernel
def move_all(table: Doubles, order: Ints, tolerance: float) -> None:
    """Move single documents to their best places, until no move lowers the distance."""
    size = len(order)
    moved = True
    while moved:
        moved = False
        for document in range(size):
            place = 0
            while order[place] != document:
                place += 1
            best, to = tolerance * size, place  # sums of rounded sums differ by more
            gain = 0.0
            for above in range(place - 1, -1, -1):
                gain += table[document, order[above]]
                if gain > best:
                    best, to = gain, above
            gain = 0.0
            for below in range(place + 1, size):
                gain -= table[document, order[below]]
                if gain > best:
                    best, to = gain, below
            if to != place:
                moved = True
                step = 1 if to > place else -1
                while place != to:
                    order[place] = order[place + step]
                    place += step
                order[to] = document


@kernel
def write_order(order: Ints, begin: int, scores: Doubles) -> None:
    """Score the rows of a query n, n - 1, …, 1 from first to last."""
    for place in range(len(order)):
        scores[begin + order[place]] = len(order) - place
