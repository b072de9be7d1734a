"""Tables of utilities: how variables parametrize them, and their gains and discounts.

A table has one row per position and one column per grade. Only differences within a position count,
so its first column is 0. The solver works on the table without that column, in one row.
"""

from __future__ import annotations

import numpy as np

from podium.data.gains import GAINS, GainsName, log2_discounts
from podium.errors import DataError
from podium.kernels import Doubles


class NoGainsError(DataError):
    """Preferences that contradict each other throughout or are all ties: all gains are 0."""


def increments(depth: int, grades: int, *, decreasing: bool = False) -> Doubles:
    """Utilities from what each grade adds to the one below it, at each position.

    With ``decreasing``, from how much more it adds there than one position further down.
    """
    positions = np.triu(np.ones((depth, depth))) if decreasing else np.eye(depth)
    return np.asarray(np.kron(positions, _rises(grades)), np.float64)


def of_gains(discounts: Doubles, grades: int) -> Doubles:
    """Utilities from what each grade gains over the one below it, for given discounts."""
    return np.asarray(np.kron(discounts[:, None], _rises(grades)), np.float64)


def of_discounts(gains: Doubles, depth: int, *, decreasing: bool = False) -> Doubles:
    """Utilities from discounts (or by how much each is above the next), for given gains."""
    positions = np.triu(np.ones((depth, depth))) if decreasing else np.eye(depth)
    return np.asarray(np.kron(positions, gains[1:, None]), np.float64)


def as_table(utilities: Doubles, depth: int) -> Doubles:
    """Utilities in one row as a table with its column of zeros."""
    values = utilities.reshape(depth, -1)
    return np.concatenate((np.zeros((depth, 1)), values), axis=1)


def usual_table(depth: int, grades: int, gains: GainsName = "exponential") -> Doubles:
    """The utilities that people use: gains ``2^l - 1`` or ``l``, discounts ``1/log2(1 + rank)``.

    Args:
        depth: How many positions.
        grades: How many grades.
        gains: "exponential" or "linear".

    Example:
        >>> usual_table(1, 4).tolist(), usual_table(1, 4, "linear").tolist()
        ([[0.0, 1.0, 3.0, 7.0]], [[0.0, 1.0, 2.0, 3.0]])
    """
    labels = np.arange(grades, dtype=np.float64)
    return np.outer(log2_discounts(np.arange(1, depth + 1)), GAINS[gains](labels))


def factor(table: Doubles) -> tuple[Doubles, Doubles]:
    """The gains and discounts nearest to a table (Zhou et al. 2012, case 1).

    The best approximation by one product, from the singular value decomposition of the table less
    its lowest grade at each position. The decomposition's sign is arbitrary: gains are made to
    rise. The first discount is 1, the lowest gain 0 and the highest 1: a factor changes nothing.

    Example:
        >>> gains, discounts = factor(np.outer([1.0, 0.5], [5.0, 6.0, 9.0]))
        >>> gains.round(6).tolist(), discounts.round(6).tolist()
        ([0.0, 0.25, 1.0], [1.0, 0.5])
    """
    relative = table - table[:, :1]
    left, sizes, right = np.linalg.svd(relative, full_matrices=False)
    if sizes[0] <= 1e-12:
        raise NoGainsError(
            "the preferences determine no gains",
            hint="Give strict preferences (choices= of -1 or 1) that do not contradict each other.",
        )
    sign = np.sign(right[0].sum())
    return in_units(sign * right[0], sign * left[:, 0])


def in_units(gains: Doubles, discounts: Doubles) -> tuple[Doubles, Doubles]:
    """Gains from 0 to 1, and discounts whose first is 1 (whose largest is, if the first is 0)."""
    relative = gains - gains[0]
    highest = float(np.max(np.abs(relative)))
    first = discounts[0] if discounts[0] > 1e-9 * np.max(np.abs(discounts)) else discounts.max()
    return np.asarray(relative / highest), np.asarray(discounts / first)


def similarity(one: Doubles, other: Doubles) -> float:
    """The cosine of two tables, each less its lowest grade at each position (Zhou's eq. 4).

    Example:
        >>> round(similarity(np.array([[1.0, 2.0]]), np.array([[5.0, 9.0]])), 6)
        1.0
    """
    a, b = (one - one[:, :1]).ravel(), (other - other[:, :1]).ravel()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def _rises(grades: int) -> Doubles:
    return np.tril(np.ones((grades - 1, grades - 1)))
