"""The input of every aggregation: several rankings of each query's documents, with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from podium.data.grouping import checked_offsets
from podium.data.numbers import as_numbers
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints, kernel
from podium.threads import over_queries

Unranked: TypeAlias = Literal["below", "ignore"]
"""How documents that a ranker did not rank are treated: as ``"below"`` all that it ranked (and tied
with each other), or pairs with such a document are ``"ignore"``d."""

_POLICIES = ("below", "ignore")


@dataclass(frozen=True)
class Votes:
    """Checked votes: a row for each document, a column for each ranker.

    Attributes:
        values: Larger is better; not ranked is NaN, or minus infinity where that means below.
        offsets: Where each query's rows begin, and the number of rows last.
        weights: One for each ranker.
    """

    values: Doubles
    offsets: Ints
    weights: Doubles

    @property
    def tolerance(self) -> float:
        """Sums of weights that differ by less are equal up to rounding."""
        return 1e-12 * float(self.weights.sum())


def checked_votes(
    votes: ArrayLike,
    offsets: ArrayLike | None,
    weights: ArrayLike | None,
    unranked: Unranked = "ignore",
    top: int | ArrayLike | None = None,
) -> Votes:
    """Validate votes and convert them to the arrays that compiled loops need."""
    if unranked not in _POLICIES:
        raise ArgumentError(f"unranked is {unranked!r}", hint=f"Choose: {', '.join(_POLICIES)}.")
    if top is not None and np.min(top, initial=1) < 1:
        raise ArgumentError(
            f"top is {top}", hint="Count at least the first document of each ranker."
        )
    values: Doubles = as_numbers(votes, np.float64, "votes", dimensions=2).copy(order="C")
    if not values.shape[1]:
        raise DataError(
            f"votes have shape {values.shape}",
            hint="Give a row for each document and a column for each ranker.",
        )
    if np.isinf(values).any():
        raise DataError("a vote is infinite", hint="Give NaN for documents a ranker left out.")
    starts = checked_offsets([0, len(values)] if offsets is None else offsets, len(values))
    if top is not None:
        most = np.array(np.broadcast_to(np.asarray(top, np.int64), len(starts) - 1))
        over_queries(lambda first, last: _cut(values, starts, most, first, last), starts)
    if unranked == "below":
        values[np.isnan(values)] = -np.inf
    return Votes(values, starts, checked_weights(weights, values.shape[1]))


def checked_weights(weights: ArrayLike | None, rankers: int) -> Doubles:
    """Validate the weights of rankers, finite and at least 0; all 1 by default."""
    if weights is None:
        return np.ones(rankers)
    checked: Doubles = as_numbers(weights, np.float64, "weights", dimensions=1)
    if checked.shape != (rankers,) or not np.all(np.isfinite(checked) & (checked >= 0)):
        raise DataError(
            f"weights are not {rankers} numbers of at least 0",
            hint="Give one for each ranker, a column of the votes.",
        )
    return checked


def row_scores(scores: ArrayLike, rows: int, what: str) -> Doubles:
    """Validate one finite score per row."""
    checked: Doubles = as_numbers(scores, np.float64, what, dimensions=1)
    if checked.shape != (rows,) or not np.isfinite(checked).all():
        raise DataError(f"{what} is not {rows} finite numbers", hint="Give a score for each row.")
    return checked


@kernel
def _cut(values: Doubles, offsets: Ints, most: Ints, first: int, last: int) -> None:
    """Keep the best documents of each ranker in each query, with those tied with the last."""
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        top = most[query]
        for ranker in range(values.shape[1]):
            ranked = np.empty(end - begin)
            count = 0
            for row in range(begin, end):
                if not np.isnan(values[row, ranker]):
                    ranked[count] = values[row, ranker]
                    count += 1
            if count > top:
                least = np.sort(ranked[:count])[count - top]
                for row in range(begin, end):
                    if values[row, ranker] < least:
                        values[row, ranker] = np.nan
