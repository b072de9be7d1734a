"""Weights of rankers, learned from their quality on validation queries.

The caller defines quality: a function of scores, such as a measure of ``podium.measures``
on the validation queries' labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from podium.aggregation.kemeny_solver import KemenyOrders
from podium.aggregation.votes import checked_votes, checked_weights
from podium.data.numbers import as_numbers
from podium.errors import DataError
from podium.kernels import Doubles

Quality: TypeAlias = Callable[[Doubles], float]
"""Returns the quality of scores of all rows; larger is better."""

_FACTORS = (0.0, 0.5, 2.0, 4.0)


def proportional_weights(
    votes: ArrayLike, quality: Quality, offsets: ArrayLike | None = None
) -> Doubles:
    """Weight each ranker in proportion to its own quality (Cheng et al. 2014).

    Args:
        votes: Votes on the validation queries: a row for each document, a column for each ranker,
            larger is better (negate ranks). Documents not ranked (NaN) come below all others.
        quality: The quality of scores; negative values count as 0.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.

    Returns:
        A weight for each ranker; they sum to 1.

    Example:
        >>> from podium.measures import evaluate
        >>> def quality(scores):
        ...     return evaluate("RR", [0, 1, 0], scores, group=[3])["RR"].mean()
        >>> proportional_weights([[3, 1], [2, 3], [1, 2]], quality).round(3).tolist()
        [0.333, 0.667]
    """
    checked = checked_votes(votes, offsets, None)
    values = np.empty(checked.values.shape[1])
    for ranker, column in enumerate(np.ascontiguousarray(checked.values.T)):
        missing = np.isnan(column)
        ranked = column[~missing]
        below = float(ranked.min() - 1.0 - np.abs(ranked).max() * 1e-9) if len(ranked) else 0.0
        values[ranker] = max(0.0, _value(quality, np.where(missing, below, column)))
    return values / values.sum() if values.sum() > 0 else np.full(len(values), 1 / len(values))


def tuned_weights(
    votes: ArrayLike,
    quality: Quality,
    aggregate: Callable[..., Doubles | KemenyOrders],
    offsets: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    factors: Sequence[float] = _FACTORS,
    rounds: int = 3,
) -> Doubles:
    """Tune the weights for an aggregation's quality, one ranker at a time.

    Deterministic coordinate ascent from ``start``. It takes at most
    ``rounds * rankers * len(factors)`` aggregations.

    Args:
        votes: Votes on the validation queries: a row for each document, a column for each ranker.
        quality: The quality of the aggregation's scores.
        aggregate: ``aggregate(votes, offsets, ranker_weights=…)``: a function of this package, or
            your own.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        start: The first weights; ``proportional_weights`` if not given.
        factors: The factors to try on each weight.
        rounds: The largest number of passes over the rankers; it stops when one changes nothing.

    Returns:
        A weight for each ranker; they sum to 1.

    Example:
        >>> from podium.aggregation import borda
        >>> def quality(scores):
        ...     return float(scores[1] - scores[0])
        >>> tuned_weights([[3, 1], [2, 3], [1, 2]], quality, borda).tolist()
        [0.0, 1.0]
    """
    table = as_numbers(votes, np.float64, "votes", dimensions=2)
    if start is None:
        weights = proportional_weights(table, quality, offsets)
    else:
        weights = checked_weights(start, table.shape[1]).copy()

    def value_of(candidate: Doubles) -> float:
        aggregated = aggregate(table, offsets, ranker_weights=candidate)
        scores = aggregated.scores if isinstance(aggregated, KemenyOrders) else aggregated
        return _value(quality, scores)

    best = value_of(weights)
    for _ in range(rounds):
        changed = False
        for ranker in range(len(weights)):
            current = weights[ranker]
            for factor in factors:
                candidate = weights.copy()
                candidate[ranker] = current * factor
                if not candidate.any():
                    continue
                value = value_of(candidate)
                if value > best + 1e-12:
                    best, weights, changed = value, candidate, True
        if not changed:
            break
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))


def _value(quality: Quality, scores: Doubles) -> float:
    value = float(quality(scores))
    if np.isnan(value):
        raise DataError("quality is not a number", hint="Leave out queries without a value.")
    return value
