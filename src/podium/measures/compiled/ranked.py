"""What a measure's function sees: one ranked query, and the settings of the evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, Floats

Places: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]

EXPONENTIAL, LINEAR, TABLE = range(3)
"""How ``Settings.curve`` says a label becomes a gain."""


class Ranked(NamedTuple):
    """One query as a measure sees it.

    Attributes:
        labels: Of the documents by descending score, at least as far as the cut-off; NaN where a
            document was not judged.
        ideal: The labels of all documents of the pool, largest first.
        ties: Only where ties are averaged over: for each place the place after the last document
            with the same score.
        size: How many documents were ranked.
    """

    labels: Floats
    ideal: Floats
    ties: Places
    size: int


class RankedPairs(NamedTuple):
    """One query whose truth is preferred pairs.

    Attributes:
        better: The rank, from 1, of the document that is preferred in each pair; infinite if the
            list does not have it. Documents with equal scores share the mean of their ranks where
            ties are averaged over.
        worse: The rank of the other document.
        size: How many documents were ranked.
    """

    better: Doubles
    worse: Doubles
    size: int


class Settings(NamedTuple):
    """A measure's parameters and the conventions, as its function needs them.

    Attributes:
        cut: How many documents count; more than any list has where there is no cut-off.
        rel: The least label that counts as relevant.
        k: The length of the top-k order.
        p: Persistence.
        highest: The highest grade; 0 means the query's own.
        curve: How a label becomes a gain.
        divide_by_size: Whether precision divides by the length of a list shorter than ``cut``.
        at_most_cut: Whether average precision divides by no more than ``cut``.
        labels_are_chances: Whether a label is itself the chance that a document satisfies.
        graded: Whether rank-biased precision adds up labels rather than ones.
        together: Whether documents with one score all have the rank of the last of them.
        gains: The gain of each whole label from 0 on.
        discounts: The discount of each place from the first to the cut-off.
        best_discounts: The same, largest first: what the ideal ranking has.
        own: The parameters of a user-defined measure, in order.
    """

    cut: int
    rel: float
    k: int
    p: float
    highest: float
    curve: int
    divide_by_size: bool
    at_most_cut: bool
    labels_are_chances: bool
    graded: bool
    together: bool
    gains: Doubles
    discounts: Doubles
    best_discounts: Doubles
    own: Doubles


MeasureFunction: TypeAlias = Callable[[Any, Settings], float]
"""The value of one query: its first argument is a ``Ranked``, or ``RankedPairs``."""
