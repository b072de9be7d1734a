"""Exact Shapley values of a few players."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import factorial

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import Doubles

_MOST_PLAYERS = 10
"""Each player doubles the number of coalitions."""


def shapley_values(value: Callable[[list[int]], Doubles], players: int) -> Doubles:
    """Return what each player adds on average over all orders in which they join.

    Args:
        value: Returns the values of a coalition, one per row.
        players: The number of players.

    Returns:
        A row per row, a column per player; they add up to what all players add to none.

    Example:
        >>> worth = {(): 0.0, (0,): 1.0, (1,): 2.0, (0, 1): 5.0}
        >>> shapley_values(lambda coalition: np.array([worth[tuple(coalition)]]), 2).tolist()
        [[2.0, 3.0]]
    """
    if players > _MOST_PLAYERS:
        raise ArgumentError(
            f"a cascade of {players} votes is not explained",
            hint=f"Explain one of at most {_MOST_PLAYERS}, or its rankers each.",
        )
    everyone = range(players)
    values = {
        coalition: value(list(coalition))
        for size in range(players + 1)
        for coalition in combinations(everyone, size)
    }
    result = np.zeros((len(values[()]), players))
    for coalition, without in values.items():
        for player in set(everyone) - set(coalition):
            orders = factorial(len(coalition)) * factorial(players - len(coalition) - 1)
            joined = tuple(sorted((*coalition, player)))
            result[:, player] += orders / factorial(players) * (values[joined] - without)
    return result
