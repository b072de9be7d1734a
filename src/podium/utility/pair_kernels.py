"""Compiled passes over all pairs, each linear in their number.

A pair's lead is the sum over positions of the utility of left's grade less that of right's.
The solver's utilities are relative to the lowest grade, which it leaves out. Pairs are
processed in blocks of a fixed size whose results are added in order, so the number of threads does
not change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, kernel
from podium.threads import ordered_map
from podium.utility.utility_tables import as_table

Grades = NDArray[np.uint8]
States = NDArray[np.int8]

_BLOCK = 1 << 16
_Result = TypeVar("_Result")

_IDLE, _UPPER, _LOWER = 0, 1, -1
"""A pair's part in the objective: none, pulled to its target, or (a tie) to minus its target."""


@dataclass(frozen=True)
class PairArrays:
    """The pairs as the solver needs them, each with the better side left.

    Attributes:
        left: Grades of the better side (of either, in a tie).
        right: Grades of the other.
        targets: The lead required, or for a tie the largest lead allowed.
        weights: The factor of each squared slack.
        ties: Which pairs are ties.
        grades: How many grades there are.
    """

    left: Grades
    right: Grades
    targets: Doubles
    weights: Doubles
    ties: NDArray[np.bool_]
    grades: int

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def size(self) -> int:
        """How many entries a table of utilities has, the lowest grade left out."""
        return int(self.left.shape[1]) * (self.grades - 1)

    def leads(self, utilities: Doubles) -> Doubles:
        """The lead of each pair's left side, by utilities in one row without the lowest grade."""
        return leads_of(self.left, self.right, as_table(utilities, self.left.shape[1]))

    def every(self, step: int) -> PairArrays:
        """Return every ``step``-th pair, with weights that make up for the others."""
        return PairArrays(
            np.ascontiguousarray(self.left[::step]),
            np.ascontiguousarray(self.right[::step]),
            self.targets[::step],
            self.weights[::step] * step,
            self.ties[::step],
            self.grades,
        )


class Curvature:
    """The second derivatives of the active slacks, updated as pairs become active or inactive.

    The objective is a quadratic as long as the same pairs are active; between two steps few change,
    and only those are visited.

    Attributes:
        matrix: The sum over active pairs of weight times the square of their difference.
        pull: The sum over them of weight times target times their difference.
    """

    def __init__(self, pairs: PairArrays) -> None:
        self._pairs = pairs
        self._states = np.zeros(len(pairs), np.int8)
        self.matrix = np.zeros((pairs.size, pairs.size))
        self.pull = np.zeros(pairs.size)

    def move(self, leads: Doubles) -> int:
        """Update to new leads, and return how many pairs changed their state."""
        pairs = self._pairs

        def task(first: int, last: int) -> tuple[Doubles, Doubles, int]:
            matrix, pull = np.zeros_like(self.matrix), np.zeros_like(self.pull)
            changed = _change(
                pairs.left,
                pairs.right,
                pairs.targets,
                pairs.weights,
                pairs.ties,
                leads,
                self._states,
                pairs.grades - 1,
                matrix,
                pull,
                first,
                last,
            )
            return matrix, pull, changed

        changed = 0
        for matrix, pull, count in _in_blocks(task, len(pairs)):
            self.matrix += matrix + matrix.T - np.diag(matrix.diagonal())
            self.pull += pull
            changed += count
        return changed


def leads_of(left: Grades, right: Grades, table: Doubles) -> Doubles:
    """The lead of left over right in each pair, by what each grade is worth at each position."""
    leads = np.empty(len(left))
    for _ in _in_blocks(lambda a, b: _add_leads(left, right, table, leads, a, b), len(left)):
        pass
    return leads


def slack_sum(pairs: PairArrays, leads: Doubles) -> float:
    """The weighted sum of squared slacks."""
    targets, weights, ties = pairs.targets, pairs.weights, pairs.ties
    return sum(
        _in_blocks(lambda a, b: _squares(targets, weights, ties, leads, a, b), len(pairs)), 0.0
    )


def slope(pairs: PairArrays, leads: Doubles, change: Doubles, step: float) -> float:
    """Half the derivative of the sum of squared slacks by the step along a change of the leads."""
    targets, weights, ties = pairs.targets, pairs.weights, pairs.ties

    def task(first: int, last: int) -> float:
        return float(_slope(targets, weights, ties, leads, change, step, first, last))

    return sum(_in_blocks(task, len(pairs)), 0.0)


def _in_blocks(task: Callable[[int, int], _Result], count: int) -> Iterator[_Result]:
    if count <= _BLOCK:
        return iter([task(0, count)])
    firsts = range(0, count, _BLOCK)
    return ordered_map(lambda first: task(first, min(first + _BLOCK, count)), firsts)


@kernel
def _add_leads(
    left: Grades, right: Grades, table: Doubles, leads: Doubles, first: int, last: int
) -> None:
    # No branch on the grades: it would be mispredicted, which costs more than the addition.
    for pair in range(first, last):
        lead = 0.0
        for rank in range(left.shape[1]):
            lead += table[rank, left[pair, rank]] - table[rank, right[pair, rank]]
        leads[pair] = lead


@kernel
def _part(lead: float, target: float, tie: bool) -> int:
    if not tie:
        return _UPPER if lead < target else _IDLE
    if lead > target:
        return _UPPER
    return _LOWER if lead < -target else _IDLE


@kernel
def _change(
    left: Grades,
    right: Grades,
    targets: Doubles,
    weights: Doubles,
    ties: NDArray[np.bool_],
    leads: Doubles,
    states: States,
    steps: int,
    matrix: Doubles,
    pull: Doubles,
    first: int,
    last: int,
) -> int:
    """Add what changes in ``matrix`` (each two columns once, in either triangle) and ``pull``."""
    depth = left.shape[1]
    columns = np.empty(2 * depth, np.int64)
    signs = np.empty(2 * depth)
    changed = 0
    for pair in range(first, last):
        before = states[pair]
        now = _part(leads[pair], targets[pair], ties[pair])
        if now == before:
            continue
        states[pair] = now
        changed += 1
        count = 0
        for rank in range(depth):
            one, other = left[pair, rank], right[pair, rank]
            if one != other:
                if one > 0:
                    columns[count] = rank * steps + one - 1
                    signs[count] = 1.0
                    count += 1
                if other > 0:
                    columns[count] = rank * steps + other - 1
                    signs[count] = -1.0
                    count += 1
        weight = weights[pair]
        bend = weight * (abs(now) - abs(before))
        force = weight * targets[pair] * (now - before)
        for one in range(count):
            pull[columns[one]] += force * signs[one]
            share = bend * signs[one]
            row = matrix[columns[one]]
            for other in range(one + 1):
                row[columns[other]] += share * signs[other]
    return changed


@kernel
def _squares(
    targets: Doubles,
    weights: Doubles,
    ties: NDArray[np.bool_],
    leads: Doubles,
    first: int,
    last: int,
) -> float:
    total = 0.0
    for pair in range(first, last):
        slack = abs(leads[pair]) - targets[pair] if ties[pair] else targets[pair] - leads[pair]
        if slack > 0.0:
            total += weights[pair] * slack * slack
    return total


@kernel
def _slope(
    targets: Doubles,
    weights: Doubles,
    ties: NDArray[np.bool_],
    leads: Doubles,
    change: Doubles,
    step: float,
    first: int,
    last: int,
) -> float:
    total = 0.0
    for pair in range(first, last):
        lead = leads[pair] + step * change[pair]
        part = _part(lead, targets[pair], ties[pair])
        if part != _IDLE:
            aim = -targets[pair] if part == _LOWER else targets[pair]
            total += weights[pair] * (lead - aim) * change[pair]
    return total
