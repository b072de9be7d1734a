"""Gains of labels in compiled losses."""

from __future__ import annotations

from podium.kernels import Doubles, inner


@inner
def grade_gains(labels: Doubles, gains: Doubles) -> None:
    """``2^label - 1``, relative to the query's largest so that no label is too large.

    Labels below 0 count as 0.
    """
    highest = 0.0
    for label in labels:
        highest = max(highest, label)
    for row in range(len(labels)):
        gains[row] = 2.0 ** (max(labels[row], 0.0) - highest) - 2.0**-highest
