"""Weights of queries, in the forms in which users have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from podium.data.grouping import Strings
from podium.data.numbers import as_numbers
from podium.errors import DataError
from podium.kernels import Doubles

QueryWeights: TypeAlias = "Mapping[Any, float] | ArrayLike"
"""A weight for each query: by its id (a dictionary or a pandas Series), or in their order."""


def query_weights(weights: QueryWeights, query_ids: Strings) -> Doubles:
    """Return a weight for each query; a mapping may have weights of other queries as well.

    Example:
        >>> from podium.data.grouping import as_strings
        >>> query_weights({7: 2.0, 8: 1.0, 9: 0.5}, as_strings([9, 7], "query ids")).tolist()
        [0.5, 2.0]
    """
    names = query_ids.to_pylist()
    if hasattr(weights, "index") and hasattr(weights, "to_dict"):
        # A pandas Series: its index has the ids, unless it is the one that pandas makes up.
        by_index = weights.to_dict()
        made_up = list(by_index) == list(range(len(by_index)))
        weights = list(by_index.values()) if made_up and "0" not in names else by_index
    if isinstance(weights, Mapping):
        by_id = {str(query): weight for query, weight in weights.items()}
        for name in names:
            if name not in by_id:
                raise DataError(
                    f"query {name!r} has no weight",
                    hint="Give every query a weight, by its id, or as an array in their order.",
                )
        weights = [by_id[name] for name in names]
    array = checked_weights(weights)
    if len(array) != len(query_ids):
        raise DataError(
            f"{len(array)} weights for {len(query_ids)} queries", hint="Give one per query."
        )
    return array


def checked_weights(weights: ArrayLike) -> Doubles:
    """Return weights as an array of finite numbers of at least 0, not all of them 0."""
    if isinstance(weights, list | tuple) and None in weights:  # NumPy reads None as NaN
        raise DataError("weights are not numbers (None)", hint="Give every query a weight.")
    array = as_numbers(weights, np.float64, "weights", dimensions=1)
    valid = np.isfinite(array) & (array >= 0)
    if not valid.all():
        wrong = array[int(np.argmin(valid))]
        raise DataError(f"a weight is {wrong:g}", hint="Give finite weights of at least 0.")
    if len(array) and not array.any():
        raise DataError("all weights are 0", hint="Give at least one query a weight above 0.")
    return array
