"""A teacher's order as the labels of another ranker."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data.grouping import group_rows, group_sizes, ungrouped_rows
from podium.data.labels import from_ranks
from podium.data.numbers import as_numbers
from podium.errors import DataError
from podium.kernels import Floats
from podium.rankers.parameter_checks import check_integer


def teacher_labels(scores: Any, *, qid: Any = None, group: Any = None, k: int = 10) -> Floats:
    """Return top-k labels that have the order of a teacher's scores.

    A small ranker that is fitted to them learns the teacher's top k, by any loss, and from queries
    that nobody judged.

    Args:
        scores: The teacher's score of each row; of equal scores the first row is better.
        qid: One query id per row; or
        group: the number of rows of each query.
        k: How many documents of each query keep their order; all others get label 0.

    Example:
        >>> teacher_labels([0.3, 2.5, -1.0, 0.9], qid=["a", "a", "b", "b"], k=1).tolist()
        [0.0, 1.0, 0.0, 1.0]
    """
    check_integer("k", k)
    values = as_numbers(scores, np.float64, "scores", dimensions=1)
    if np.isnan(values).any():
        raise DataError("a score is NaN", hint="Score every row.")
    if (qid is None) == (group is None):
        raise ungrouped_rows(qid)
    grouping = group_rows(qid) if group is None else group_sizes(group, len(values), None)
    if grouping.offsets[-1] != len(values):
        raise DataError(
            f"{len(values)} scores for {grouping.offsets[-1]} rows", hint="Give one for each row."
        )
    rows = np.arange(len(values)) if grouping.order is None else grouping.order
    sizes = np.diff(grouping.offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    best_first = rows[np.lexsort((-values[rows], query))]
    labels = np.empty(len(values), np.float32)
    labels[best_first] = from_ranks(np.arange(len(rows)) - grouping.offsets[query] + 1, k=k)
    return labels
