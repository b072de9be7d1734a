"""Losses that are one compiled function of one query: their bases, and what they share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints, inner
from podium.kernels.intrinsics import borrow
from podium.kernels.specialize import specialize
from podium.losses.base import Batch, Loss, normalize_k

EVERYTHING = 2**62
"""A k larger than any query: what ``k=None`` is in kernels."""

query_loss: Any = None  # filled in by ``specialize``


def over_losses(
    scores: Doubles,
    labels: Doubles,
    offsets: Ints,
    values: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    first: int,
    last: int,
    arguments: tuple[Any, ...],
) -> None:
    """Evaluate a loss for a range of queries: a template for ``podium.kernels.specialize``."""
    own_scores, own_labels, own_arguments = borrow(scores), borrow(labels), borrow(arguments)
    own_gradient, own_curvature = borrow(gradient), borrow(curvature)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        gradient[begin:end] = 0.0
        curvature[begin:end] = 0.0
        values[query] = 0.0
        if end > begin:
            values[query] = query_loss(
                own_scores[begin:end],
                own_labels[begin:end],
                own_gradient[begin:end],
                own_curvature[begin:end],
                *own_arguments,
            )


@dataclass(frozen=True)
class CompiledLoss(Loss):
    """A loss that is one compiled function of one query."""

    @property
    @abstractmethod
    def query(self) -> Callable[..., float]:
        """``query(scores, labels, gradient, curvature, *arguments)``, which returns the value.

        Gradient and curvature arrive as zeros.
        """

    @abstractmethod
    def arguments(self, largest: int) -> tuple[Any, ...]:
        """The further arguments of ``query``, with work memory for a query of ``largest`` rows."""

    def evaluate_range(self, batch: Batch, first: int, last: int) -> None:
        """Write values, gradient and curvature of the queries from ``first`` up to ``last``."""
        arguments = self.arguments(batch.largest(first, last))
        loop = specialize(over_losses, {"query_loss": self.query})
        loop(*batch, first, last, arguments)


@dataclass(frozen=True)
class TopLoss(CompiledLoss):
    """A compiled loss of the top k, whose function takes k and work memory.

    Attributes:
        k: How many documents are the top, or None for all.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        normalize_k(self)

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """K and work memory."""
        return top(self.k), index_memory(1, largest)[0], work(1, largest)[0]


def work(rows: int, largest: int) -> Doubles:
    """Allocate work memory: float64 rows as long as the largest query."""
    return np.empty((rows, largest))


def index_memory(rows: int, largest: int) -> Ints:
    """Allocate work memory for row numbers, as ``work`` does."""
    return np.empty((rows, largest), np.int64)


def top(k: int | None) -> int:
    """Return the k that kernels take."""
    return EVERYTHING if k is None else k


@inner
def softplus(x: float) -> float:
    """``log(1 + exp(x))``."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner
def add_logs(one: float, other: float) -> float:
    """``log(exp(one) + exp(other))``."""
    return max(one, other) + math.log1p(math.exp(-abs(one - other)))


@inner
def spread(values: Doubles) -> tuple[float, float]:
    """Return the smallest and the largest value."""
    low = high = values[0]
    for value in values:
        low = min(low, value)
        high = max(high, value)
    return low, high


@dataclass(frozen=True)
class PairLoss(CompiledLoss):
    """A sum over pairs of a top-k document and a document with a smaller label.

    Documents tied with the k-th count as top-k documents; equal labels make no pair. ``Focused``
    asks for the pairs *across* only: of the top k against the rest, none inside the top k.

    Attributes:
        k: How many documents are the top, or None for all.
        pairs: ``"all"`` pairs of a top-k document, or only those ``"across"`` the edge.
    """

    row_weighting = "gradient"

    k: int | None = None
    pairs: Literal["all", "across"] = "all"

    def __post_init__(self) -> None:
        normalize_k(self)
        if self.pairs not in ("all", "across"):
            raise ArgumentError(f"pairs is {self.pairs!r}. Give 'all' or 'across'.")

    @abstractmethod
    def arguments(self, largest: int) -> tuple[Any, ...]:
        """The further arguments of ``query``."""
