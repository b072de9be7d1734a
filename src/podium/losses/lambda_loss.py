"""LambdaLoss: pairs weighted by how much swapping them would change a DCG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.gains import DISCOUNTS, GAINS, DiscountsName, GainsName, relative_gains
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints, inner
from podium.losses.base import Batch, normalize_k
from podium.losses.compiled import CompiledLoss, index_memory, top, work
from podium.losses.orders import first_rows

Table = tuple[tuple[float, ...], ...]


def _lambda_loss(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    steepness: float,
    gains: Doubles,
    linear: bool,
    utility: Doubles,
    rows: Ints,
    memory: Doubles,
) -> float:
    """One query's loss.

    Args:
        scores: The scores of the documents.
        labels: The labels of the documents.
        gradient: Arrives as zeros.
        curvature: Arrives as zeros.
        steepness: The factor of differences of scores.
        gains: The gain of each grade; if empty, ``2^label - 1``, or the labels if ``linear``.
        linear: Whether labels are gains.
        utility: A row for each position and one of zeros: its discount, or if there are more
            columns the utility of each grade there.
        rows: Work memory.
        memory: Work memory.
    """
    size = len(scores)
    cut = min(size, len(utility) - 1)
    order, position = rows[0], rows[1]
    gain, ties = memory[0, :size], memory[1, :size]
    _document_gains(labels, gains, linear, utility, gain)
    first_rows(labels, labels, cut, order)
    ideal = 0.0
    for rank in range(cut):
        ideal += _utility(utility, rank, gain[order[rank]])
    if ideal <= 0.0:
        return 0.0
    # Where scores are equal the worse document counts as first, whatever the order of rows.
    for row in range(size):
        ties[row] = -labels[row]
        position[row] = cut
    first_rows(scores, ties, cut, order)
    for rank in range(cut):
        position[order[rank]] = rank
    value = 0.0
    for rank in range(cut):
        upper = order[rank]
        for lower in range(size):
            if position[lower] <= rank or labels[lower] == labels[upper]:
                continue
            other_rank = position[lower]
            weight = abs(_swap(utility, rank, other_rank, gain[upper], gain[lower])) / ideal
            lead = steepness * (scores[upper] - scores[lower])
            tail = math.exp(-lead)
            value += weight * math.log1p(tail)
            wrong = tail / (1.0 + tail)
            side = 1.0
            if labels[lower] > labels[upper]:
                value += weight * lead
                wrong = 1.0 / (1.0 + tail)
                side = -1.0
            force = side * weight * steepness * wrong
            hessian = weight * steepness * steepness * wrong * (1.0 - wrong)
            gradient[upper] -= force
            gradient[lower] += force
            curvature[upper] += hessian
            curvature[lower] += hessian
    return value


@inner
def _document_gains(
    labels: Doubles, gains: Doubles, linear: bool, utility: Doubles, gain: Doubles
) -> None:
    """Write what the utility of a document depends on: its gain, or its grade for a table."""
    if len(gains):
        for row in range(len(labels)):
            gain[row] = gains[int(labels[row])]
    elif linear or utility.shape[1] > 1:
        for row in range(len(labels)):
            gain[row] = labels[row]
    else:
        relative_gains(labels, gain)


@inner
def _utility(utility: Doubles, rank: int, gain: float) -> float:
    if utility.shape[1] == 1:
        return float(utility[rank, 0]) * gain
    return float(utility[rank, int(gain)])


@inner
def _swap(utility: Doubles, rank: int, other_rank: int, here: float, there: float) -> float:
    """The decrease of the DCG if two documents swap ranks."""
    if utility.shape[1] == 1:
        return float(utility[rank, 0] - utility[other_rank, 0]) * (here - there)
    one, two = int(here), int(there)
    lost = utility[rank, one] - utility[rank, two]
    return float(lost - (utility[other_rank, one] - utility[other_rank, two]))


@dataclass(frozen=True)
class LambdaLoss(CompiledLoss):
    """LambdaMART's and LambdaLoss's objective for any DCG: each pair's logistic loss, weighted.

    A pair's weight is how much the DCG would change if the two swapped positions in the order of
    the current scores, relative to the DCG of the labels' own order. Gradient and curvature are
    exact for fixed weights; the weights jump where two documents swap ranks, so the
    loss is neither smooth nor convex: use it with trees and neural scorers. Where scores are equal
    the document with the smaller label counts as first.

    O(n k) for n documents, and an exponential and a logarithm for each pair with different labels.

    Attributes:
        gains: ``"exponential"`` for ``2^label - 1``, ``"linear"`` for the labels themselves, or
            the gain of each grade from 0.
        discounts: ``"log2"`` for ``1 / log2(1 + position)``, ``"letor"`` or ``"reciprocal"`` as
            ``Conventions`` has them, or the discount of each position from 1; positions beyond
            do not count.
        table: Instead of both, the utility of each grade at each position, as ``DCGLearn``
            learns it. Only differences within a position count.
        k: The cut-off of the DCG, or None.
        steepness: The factor of the differences of scores in the logistic loss.

    Example:
        >>> import math
        >>> dcg = LambdaLoss(gains=(0, 1), discounts=(1, 0.5))
        >>> math.isclose(dcg.evaluate([0.0, 0.0], [1, 0], [0, 2]).total, 0.5 * math.log(2))
        True
    """

    gains: GainsName | tuple[float, ...] = "exponential"
    discounts: DiscountsName | tuple[float, ...] = "log2"
    table: Table | None = None
    k: int | None = None
    steepness: float = 1.0

    row_weighting = "gradient"
    smooth = False
    convex = False
    query = staticmethod(_lambda_loss)

    def __post_init__(self) -> None:
        normalize_k(self)
        if not self.steepness > 0:
            raise ArgumentError(f"steepness is {self.steepness}. Give a number above 0.")
        for name, known in (("gains", GAINS), ("discounts", DISCOUNTS)):
            value = getattr(self, name)
            if isinstance(value, str):
                if value not in known:
                    choices = ", ".join(map(repr, known))
                    raise ArgumentError(f"{name} is {value!r}. Give one of {choices}, or numbers.")
            else:
                object.__setattr__(self, name, _numbers(value, name))
        if self.table is not None:
            rows = tuple(_numbers(row, "a row of table") for row in self.table)
            if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
                raise ArgumentError("table needs the same grades, at least two, at each position.")
            object.__setattr__(self, "table", rows)

    def check(self, batch: Batch) -> None:
        """Reject labels that are not grades where gains are per grade."""
        grades = len(self.table[0]) if self.table else len(self.gains)
        if (self.table is None and isinstance(self.gains, str)) or not len(batch.labels):
            return
        low, high = batch.labels.min(), batch.labels.max()
        if low < 0 or high >= grades or np.any(batch.labels != np.floor(batch.labels)):
            raise DataError(
                f"a label is not a grade from 0 to {grades - 1}",
                hint="Give a gain for every grade.",
            )

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """The numbers of the DCG, and work memory."""
        by_grade = self.table is None and not isinstance(self.gains, str)
        gains = np.array(self.gains if by_grade else (), np.float64)
        linear = self.gains == "linear"
        utility = self._utility(largest)
        memory = index_memory(2, largest), work(2, largest)
        return float(self.steepness), gains, linear, utility, *memory

    def _utility(self, largest: int) -> Doubles:
        positions = min(top(self.k), largest)
        if self.table is not None:
            values = np.array(self.table)[:positions]
            values = values - values[:, :1]
        elif isinstance(self.discounts, str):
            values = DISCOUNTS[self.discounts](np.arange(1.0, positions + 1.0))[:, None]
        else:
            values = np.array(self.discounts[:positions])[:, None]
        return np.concatenate((values, np.zeros((1, values.shape[1]))))


def _numbers(values: Sequence[float], name: str) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ArgumentError(f"{name} must be numbers, at least one.")
    return numbers
