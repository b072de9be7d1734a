"""The interface of losses: a value, a gradient and a curvature for each query's scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data.numbers import as_numbers
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.registry import Registry
from podium.threads import for_each_query


class LossValues(NamedTuple):
    """The result of evaluating a loss.

    Attributes:
        values: The loss of each query.
        gradient: Its derivative by the score of each row (a subgradient where it has a kink).
        curvature: For each row the second derivative by its own score, or where that is of no
            use, the non-negative substitute that the loss documents.
    """

    values: Doubles
    gradient: Doubles
    curvature: Doubles

    @property
    def total(self) -> float:
        """The loss of all queries together."""
        return float(self.values.sum())


class Batch(NamedTuple):
    """Checked arrays of many queries: what to evaluate, and where to write the results."""

    scores: Doubles
    labels: Doubles
    offsets: Ints
    values: Doubles
    gradient: Doubles
    curvature: Doubles

    def largest(self, first: int, last: int) -> int:
        """Return the number of rows of the largest of some queries."""
        return int(np.diff(self.offsets[first : last + 1]).max(initial=0))

    def part(self, first: int, last: int) -> Batch:
        """Return some of the queries as views: writing to them writes to this batch."""
        begin, end = self.offsets[first], self.offsets[last]
        return Batch(
            self.scores[begin:end],
            self.labels[begin:end],
            self.offsets[first : last + 1] - begin,
            self.values[first:last],
            self.gradient[begin:end],
            self.curvature[begin:end],
        )

    def fresh(self, scores: Doubles) -> Batch:
        """Return a batch with the same labels, other scores and new result arrays."""
        rows, queries = len(scores), len(self.offsets) - 1
        return self._replace(
            scores=scores,
            values=np.empty(queries),
            gradient=np.empty(rows),
            curvature=np.empty(rows),
        )


@dataclass(frozen=True)
class Loss(ABC):
    """A loss of one query's scores and labels; its fields are its parameters.

    A loss is a value: two with equal parameters are equal, it can be a dictionary key, and its
    ``repr`` is the text that ``parse_loss`` reads. It knows nothing of features or models.
    """

    REGISTRY: ClassVar[Registry[type[Loss]]] = Registry("loss")
    """Every loss by its name, the user's own included."""

    row_weighting: ClassVar[Literal["loss", "gradient"] | None] = None
    """What the weight of a single row multiplies: its own term of the loss (``"loss"``), or its
    gradient and curvature, as LightGBM defines it for pairs (``"gradient"``: no longer the gradient
    of a function). None if a loss is of the list as a whole, and only queries have weights."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        Loss.REGISTRY[cls.__name__] = cls

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether the gradient is continuous, as L-BFGS assumes."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether the loss is convex in the scores, so that tangent planes bound it from below."""

    @abstractmethod
    def evaluate_range(self, batch: Batch, first: int, last: int) -> None:
        """Write values, gradient and curvature of the queries from ``first`` up to ``last``."""

    def evaluate(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        offsets: ArrayLike,
        *,
        query_weights: ArrayLike | None = None,
        row_weights: ArrayLike | None = None,
        out: tuple[Doubles, Doubles] | None = None,
    ) -> LossValues:
        """Evaluate every query, spread over threads; threads do not change the result.

        Args:
            scores: A score for each row, of any float type.
            labels: A label for each row; larger is better, equal means no preference known.
            offsets: Where each query's rows begin, and the number of rows last.
            query_weights: A weight for each query, by default 1.
            row_weights: Or a weight for each row, for losses that have a ``row_weighting``; if that
                is ``"gradient"``, a query's value is multiplied by the mean of its weights.
            out: Two float64 arrays with an entry for each row, which gradient and curvature
                overwrite, to spare their allocation.

        Example:
            >>> from podium.losses import PairHinge
            >>> result = PairHinge().evaluate([0.0, 0.5, 2.0], labels=[1, 0, 0], offsets=[0, 2, 3])
            >>> result.values.tolist(), result.gradient.tolist()
            ([1.5, 0.0], [-1.0, 1.0, 0.0])
        """
        batch = _batch(scores, labels, offsets, out)
        self.check(batch)
        if row_weights is not None:
            if query_weights is not None:
                raise ArgumentError(
                    "there are weights of queries and of rows",
                    hint="Multiply the weights of rows by those of their queries.",
                )
            return self._evaluate_rows(batch, _checked_weights(row_weights, len(batch.scores)))
        for_each_query(lambda first, last: self.evaluate_range(batch, first, last), batch.offsets)
        result = LossValues(batch.values, batch.gradient, batch.curvature)
        if query_weights is not None:
            _weigh(result, query_weights, batch.offsets)
        return result

    def _evaluate_rows(self, batch: Batch, weights: Doubles) -> LossValues:
        if self.row_weighting is None:
            raise ArgumentError(
                f"{self!r} has no weights of single rows, and weights differ within a query",
                hint="Give one weight per query, or use SquaredError, LambdaLoss or a loss of "
                "pairs.",
            )
        own_terms = self.row_weighting == "loss"

        def work(first: int, last: int) -> None:
            if own_terms:
                self.evaluate_weighted_range(batch, weights, first, last)
            else:
                self.evaluate_range(batch, first, last)

        for_each_query(work, batch.offsets)
        if not own_terms:
            np.multiply(batch.gradient, weights, out=batch.gradient)
            np.multiply(batch.curvature, weights, out=batch.curvature)
            sums = np.concatenate(([0.0], np.cumsum(weights)))[batch.offsets]
            batch.values[:] *= np.diff(sums) / np.maximum(np.diff(batch.offsets), 1)
        return LossValues(batch.values, batch.gradient, batch.curvature)

    def evaluate_weighted_range(
        self, batch: Batch, row_weights: Doubles, first: int, last: int
    ) -> None:
        """As ``evaluate_range``, with a weight for each row of the batch.

        Defined by losses whose ``row_weighting`` is ``"loss"``.
        """
        raise NotImplementedError

    def rounded(self, _width: float) -> tuple[Loss, Loss] | None:
        """Return two smooth substitutes for a convex loss with kinks, or None if there are none.

        The first is close to this loss and easy to minimize. The second has the first one's
        gradient; its value is that of the highest plane with this gradient below this loss.
        """
        return None

    def check(self, batch: Batch) -> None:  # noqa: B027 (most losses take any labels)
        """Raise a DataError for labels that the loss is not defined for."""

    def values_at_zero(self, batch: Batch) -> Doubles:
        """Return the values for scores of 0: the scale of the loss for each query."""
        zero = batch.fresh(np.zeros(len(batch.scores)))
        self.evaluate_range(zero, 0, len(zero.values))
        return zero.values


def normalize_k(loss: Any) -> None:
    """Validate k, and convert NumPy's numbers to Python's."""
    plain_numbers(loss)
    if loss.k is None:
        return
    if isinstance(loss.k, bool) or not isinstance(loss.k, Integral) or loss.k < 1:
        raise ArgumentError(f"k is {loss.k!r}. Give an integer of at least 1, or None for all.")
    object.__setattr__(loss, "k", int(loss.k))


def plain_numbers(loss: Any) -> None:
    """Convert NumPy's numbers to Python's: a loss is saved by its ``repr``."""
    for field in fields(loss):
        value = getattr(loss, field.name)
        if isinstance(value, tuple):
            plain: Any = tuple(
                each.item() if isinstance(each, np.generic) else each for each in value
            )
            object.__setattr__(loss, field.name, plain)
        elif isinstance(value, np.generic):
            object.__setattr__(loss, field.name, value.item())


def empty_batch(labels: ArrayLike, offsets: Ints) -> Batch:
    """Return a batch of validated labels, with uninitialized scores and results."""
    label_of = _labels(labels)
    scores, gradient, curvature = np.empty((3, len(label_of)))
    return Batch(scores, label_of, offsets, np.empty(len(offsets) - 1), gradient, curvature)


def _batch(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike, out: tuple[Doubles, Doubles] | None
) -> Batch:
    score_of = _vector(scores, np.float64, "scores")
    label_of = _labels(labels)
    starts = _vector(offsets, np.int64, "offsets")
    rows = len(score_of)
    if len(label_of) != rows:
        raise DataError(f"{len(label_of)} labels for {rows} scores", hint="Give one for each row.")
    if not len(starts) or starts[0] != 0 or starts[-1] != rows or np.any(np.diff(starts) < 0):
        raise DataError(
            f"offsets do not divide {rows} rows into queries",
            hint="They start at 0, never decrease, and end at the number of rows.",
        )
    if not _all_finite(score_of):
        raise nonfinite_score()
    gradient, curvature = (np.empty(rows), np.empty(rows)) if out is None else out
    for buffer in (gradient, curvature):
        if buffer.shape != (rows,) or buffer.dtype != np.float64 or not buffer.flags.carray:
            raise DataError(
                "an output array has the wrong shape or type",
                hint=f"Give {rows} contiguous, writable float64 entries.",
            )
    return Batch(score_of, label_of, starts, np.empty(len(starts) - 1), gradient, curvature)


def nonfinite_score() -> DataError:
    """Return the error of a score that is not finite."""
    return DataError("a score is NaN or infinite", hint="Look at the features and the step size.")


def _all_finite(values: Doubles) -> bool:
    with np.errstate(over="ignore"):
        # One pass: a sum is finite unless an entry is not, or large ones add up beyond any number.
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def _labels(labels: ArrayLike) -> Doubles:
    vector = _vector(labels, np.float64, "labels")
    if not _all_finite(vector):
        raise DataError("a label is NaN or infinite", hint="Give unjudged documents label 0.")
    return vector


def _vector(values: ArrayLike, dtype: type[np.generic], what: str) -> NDArray[Any]:
    array = np.ascontiguousarray(as_numbers(values, dtype, what, dimensions=1))
    # Kernels are compiled for writable arrays; a memory-mapped label column may not be.
    return array if array.flags.writeable else array.copy()


def _checked_weights(weights: ArrayLike, rows: int) -> Doubles:
    weight_of: Doubles = _vector(weights, np.float64, "weights")
    if len(weight_of) != rows:
        raise DataError(f"{len(weight_of)} weights for {rows} rows", hint="Give one for each.")
    return weight_of


def _weigh(result: LossValues, weights: ArrayLike, offsets: Ints) -> None:
    weight_of = _vector(weights, np.float64, "weights")
    if len(weight_of) != len(offsets) - 1:
        raise DataError(
            f"{len(weight_of)} weights for {len(offsets) - 1} queries", hint="Give one for each."
        )
    by_row = np.repeat(weight_of, np.diff(offsets))
    for array, factor in zip(result, (weight_of, by_row, by_row), strict=True):
        np.multiply(array, factor, out=array)
