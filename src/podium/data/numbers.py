"""Conversion of array-like input to arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from podium.errors import DataError


def as_numbers(values: ArrayLike, dtype: DTypeLike, what: str, *, dimensions: int) -> NDArray[Any]:
    """Convert to an array with a dtype and number of dimensions, or raise a DataError.

    Example:
        >>> as_numbers([1, 2], np.float32, "labels", dimensions=1).tolist()
        [1.0, 2.0]
        >>> as_numbers(["a"], np.float32, "labels", dimensions=1)
        Traceback (most recent call last):
        podium.errors.DataError: labels are not numbers (could not convert ...
    """
    if np.ma.is_masked(values):  # a masked value is a number still, which would count
        raise DataError(f"some {what} are masked", hint="Leave those rows out, or fill them in.")
    try:
        with np.errstate(over="ignore"):
            array: NDArray[Any] = np.asarray(values, dtype)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{what} are not numbers ({error})", hint="Convert them to numbers first."
        ) from error
    if array.ndim != dimensions:
        raise DataError(
            f"{what} have {array.ndim} dimensions", hint=f"Give {_DIMENSIONS[dimensions]}."
        )
    return array


def infinite_feature() -> DataError:
    """Build the error for an infinite feature."""
    return DataError(
        "a feature is infinite, or too large for float32 (above 3.4e38)",
        hint="Use NaN for missing values, and scale or take the logarithm of huge ones.",
    )


_DIMENSIONS = {1: "one number per row", 2: "a row of numbers for each document"}
