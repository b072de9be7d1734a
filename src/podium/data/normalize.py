"""Query-level feature normalization."""

from __future__ import annotations

from typing import Literal

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import Floats, Ints, kernel
from podium.threads import over_queries


def normalize_features(
    features: Floats, offsets: Ints, method: Literal["min-max", "z-score"]
) -> Floats:
    """Normalize each feature within each query; NaN stays NaN and is left out of the statistics.

    ``min-max`` maps to [0, 1] (LETOR's QueryLevelNorm), ``z-score`` to mean 0 and standard
    deviation 1. A feature that is the same for all documents of a query becomes 0.
    """
    if method not in ("min-max", "z-score"):
        raise ArgumentError(
            f"unknown normalization {method!r}", hint="Choose 'min-max' or 'z-score'."
        )
    result = np.empty(features.shape, np.float32)
    z_score = method == "z-score"
    matrix = np.ascontiguousarray(features)
    over_queries(
        lambda first, last: _normalize(matrix, offsets, z_score, result, first, last), offsets
    )
    return result


@kernel
def _normalize(
    features: Floats, offsets: Ints, z_score: bool, result: Floats, first: int, last: int
) -> None:
    columns = features.shape[1]
    shift = np.empty(columns)
    scale = np.empty(columns)
    count = np.empty(columns)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        # Both statistics in two passes along rows, in memory order.
        shift[:] = 0.0 if z_score else np.inf
        scale[:] = 0.0 if z_score else -np.inf
        count[:] = 0.0
        for row in range(begin, end):
            for column in range(columns):
                value = float(features[row, column])
                if value == value:
                    count[column] += 1.0
                    if z_score:
                        shift[column] += value
                    else:
                        shift[column] = min(shift[column], value)
                        scale[column] = max(scale[column], value)
        for column in range(columns):
            if count[column] == 0.0:
                shift[column] = scale[column] = 0.0
            elif z_score:
                shift[column] /= count[column]
            else:
                scale[column] -= shift[column]
        if z_score:
            for row in range(begin, end):
                for column in range(columns):
                    value = float(features[row, column])
                    if value == value:
                        scale[column] += (value - shift[column]) ** 2 / count[column]
            for column in range(columns):
                scale[column] = np.sqrt(scale[column])
        for row in range(begin, end):
            for column in range(columns):
                value = float(features[row, column])
                if value != value:
                    result[row, column] = np.nan
                elif scale[column] > 0.0:
                    result[row, column] = (value - shift[column]) / scale[column]
                else:
                    result[row, column] = 0.0
