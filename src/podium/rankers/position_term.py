"""Position bias in a loss: an offset for each rank, learned with the scores, not predicted.

A loss sees the score of a document plus the offset of the rank at which it was shown. The gradient
of an offset is the sum of the loss's gradient over the documents shown there, whatever the loss and
the scorer: trees and networks move the offsets after each step (`PositionTerm.step`), as LightGBM
does for its own loss; a linear scorer has a column for each (`PositionTerm.columns`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data import Dataset
from podium.data.grouping import group_rows
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats, Ints
from podium.rankers.parameter_checks import check_number

OFFSET_RATE = 0.05
"""How far networks move the offsets in a step; trees take their learning rate."""

_LEAST_CURVATURE = 1e-3  # as in LightGBM


@dataclass(frozen=True)
class PositionTerm:
    """An offset for each context in which documents were shown, such as each rank.

    Attributes:
        context: The index of each row's context.
        names: The contexts.
        offsets: Their offsets, which a fit changes.
        regularization: The weight of an L2 penalty of each row's offset.
    """

    context: Ints
    names: NDArray[Any]
    offsets: Doubles
    regularization: float

    @classmethod
    def from_rows(
        cls, position: ArrayLike, regularization: float, data: Dataset, qid: Any
    ) -> PositionTerm:
        """Return the term of a fit in the order of its data.

        Args:
            position: The context of each row as the caller gave it.
            regularization: The weight of the penalty.
            data: The data, grouped by query.
            qid: The query of each row as the caller gave it; None if rows are grouped already.
        """
        check_number("position_regularization", regularization)
        contexts = np.asarray(position)
        if contexts.shape != (data.rows,):
            raise DataError(
                f"position has the shape {contexts.shape} for {data.rows} rows",
                hint="Give the rank at which each row was shown.",
            )
        if contexts.dtype.kind in ("f", "O"):
            unknown = [each is None or each != each for each in contexts.tolist()]  # NaN
            if any(unknown):
                raise DataError(
                    f"row {unknown.index(True) + 1} has no position", hint="Leave out such rows."
                )
        order = None if qid is None else group_rows(qid).order
        names, context = np.unique(
            contexts if order is None else contexts[order], return_inverse=True
        )
        return cls(context.astype(np.int64), names, np.zeros(len(names)), float(regularization))

    def select(self, rows: Ints | slice) -> PositionTerm:
        """Return the term of some rows, with the same offsets."""
        return replace(self, context=self.context[rows])

    def shifted(self, scores: ArrayLike) -> Doubles:
        """Return scores as the loss sees them."""
        return np.asarray(scores, np.float64) + self.offsets[self.context]

    def step(self, gradient: Doubles, curvature: Doubles, rate: float) -> None:
        """Move each offset by a part of a Newton step, given the loss's derivatives by the scores.

        With the learning rate of the trees it is the step of LightGBM's ``Dataset(position=)``.
        """
        self.move(self.sums(gradient, curvature), rate)

    def sums(self, gradient: Doubles, curvature: Doubles) -> Doubles:
        """Return the derivatives and the number of rows of each context, which add up."""
        return np.stack([self._sum(each) for each in (gradient, curvature, np.ones_like(gradient))])

    def move(self, sums: Doubles, rate: float) -> None:
        """Move each offset by a part of a Newton step, given the sums over all rows of the step."""
        gradient, curvature, rows = sums
        penalty = self.regularization * rows
        slope = gradient + penalty * self.offsets
        self.offsets[:] -= rate * slope / (curvature + penalty + _LEAST_CURVATURE)

    def _sum(self, values: Doubles) -> Doubles:
        return np.bincount(self.context, values, minlength=len(self.offsets)).astype(np.float64)

    def column_scales(self, alpha: float, queries: float) -> Doubles:
        """Return the values of the columns of a linear scorer, by context.

        The scorer's penalty ``alpha`` of a column's weight is then that of the offset.
        """
        if not alpha:
            if self.regularization:
                raise ArgumentError(
                    "alpha is 0, so offsets have no penalty either",
                    hint="Give an alpha above 0, or leave out position_regularization.",
                )
            return np.ones(len(self.offsets))
        shown = self._sum(np.ones(len(self.context)))
        # An offset without a penalty has a negligible one.
        penalty = np.maximum(self.regularization * shown / queries, 1e-4 * alpha)
        return np.sqrt(alpha / penalty)

    def columns(self, scales: Doubles) -> Floats:
        """Return a column for each context, which is 0 in the rows of others."""
        columns = np.zeros((len(self.context), len(scales)), np.float32)
        columns[np.arange(len(self.context)), self.context] = scales[self.context]
        return columns

    def bias(self) -> dict[str, float]:
        """Return the offset of each context, relative to the first."""
        return dict(
            zip(
                map(str, self.names.tolist()),
                (self.offsets - self.offsets[0]).tolist(),
                strict=True,
            )
        )
