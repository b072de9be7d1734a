"""Thresholds for targets that compare single-precision numbers.

A model compares in double precision. Its rows are single-precision numbers, and between two of them
any threshold separates the same rows: so a threshold can be moved to a single-precision number, if
to the right one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from podium.kernels import Floats

LARGEST_SINGLE = float(np.finfo(np.float32).max)


def as_single(values: ArrayLike) -> Floats:
    """Round to single precision; what is too large becomes infinite.

    Example:
        >>> float(as_single(3.5e38))
        inf
    """
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)


def at_most(threshold: ArrayLike, *, strict: bool) -> Floats:
    """Return T so that ``x <= T`` holds exactly where ``x <= threshold``, or ``<`` if strict.

    For every single-precision x: the largest such number below the threshold.

    Example:
        >>> at_most([0.1], strict=False) <= 0.1
        array([ True])
    """
    exact = np.asarray(threshold, np.float64)
    rounded = as_single(exact)
    too_large = rounded >= exact if strict else rounded > exact
    with np.errstate(over="ignore"):
        return np.where(too_large, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def below(threshold: ArrayLike, *, strict: bool) -> Floats:
    """Return T so that ``x < T`` holds exactly where ``x <= threshold``, or ``<`` if strict.

    For every single-precision x, but not for infinity: no number is above it.
    """
    with np.errstate(over="ignore"):
        return np.nextafter(at_most(threshold, strict=strict), np.float32(np.inf))
