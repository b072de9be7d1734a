"""Simulated people with a known utility."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import generator
from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.utility.preferences import RankingPreferences


def simulated_choices(
    pairs: RankingPreferences,
    table: Doubles,
    *,
    noise: float = 0.0,
    same: float = 0.0,
    much: float = np.inf,
    random_state: int = 0,
) -> NDArray[np.int8]:
    """Simulate the verdicts of people whose utility is known.

    They perceive the lead of left over right plus a logistic error: with ``noise`` 1, one in four
    errs where the lead is 1.1.

    Args:
        pairs: The pairs shown.
        table: What each grade is worth at each position.
        noise: The scale of the error, in the table's unit.
        same: A lead below this is called a tie.
        much: A lead from this on is called much better.
        random_state: Seed of the errors.

    Example:
        >>> pairs = RankingPreferences.from_arrays([[2], [1], [0]], [[0], [0], [0]])
        >>> simulated_choices(pairs, np.array([[0.0, 1.0, 3.0]]), much=2.0).tolist()
        [2, 1, 0]
    """
    if not (noise >= 0 and same >= 0 and much > same):
        raise ArgumentError("noise and same must be at least 0, and much above same.")
    perceived = pairs.leads(np.asarray(table, np.float64))
    if noise:
        perceived = perceived + noise * generator(random_state).logistic(size=len(pairs))
    size = np.where(np.abs(perceived) >= much, 2, 1)
    return np.where(np.abs(perceived) < same, 0, np.sign(perceived) * size).astype(np.int8)
