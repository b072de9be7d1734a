"""What a selection algorithm is: a coroutine that asks for pairs and ends with the ordered top k.

It yields a batch of pairs that do not wait for one another, is sent their outcomes in the same
order, and returns the best k items, best first. It knows no people, no screen and no database, so
the outcomes so far are its whole state: sending them again brings it back to where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from podium.judging.entries import Outcome, as_outcome
from podium.judging.transitive_closure import KnownOutcomes

Item = TypeVar("Item")


class Pair(NamedTuple, Generic[Item]):
    """Two items to compare."""

    left: Item
    right: Item


Selection: TypeAlias = Generator[list[Pair[Item]], list[Outcome], list[Item]]
"""A running algorithm."""

Algorithm: TypeAlias = Callable[[Sequence[Item], int], Selection[Item]]
"""Starts a selection of the best k of some items, which come in the order of a prior ranking."""

Judge: TypeAlias = Callable[[Item, Item], Outcome]
"""Compares the item on the left with the one on the right."""


@dataclass(frozen=True)
class Selected(Generic[Item]):
    """The result of a complete selection.

    Attributes:
        top: The best k items, best first.
        judgments: How many pairs were judged.
        rounds: In how many batches: what is left of the work if there are people enough.
    """

    top: list[Item]
    judgments: int
    rounds: int


def run_selection(
    algorithm: Algorithm[int], items: int, k: int, judge: Judge[int], *, infer: bool = True
) -> Selected[int]:
    """Run an algorithm to its end with a judge that is a function, for simulations.

    Args:
        algorithm: Such as `podium.judging.algorithms.tournament`.
        items: How many there are; they are called 0, 1, …, best first by the prior ranking.
        k: How many to put in order.
        judge: Given two items, returns which is better.
        infer: Whether verdicts that earlier ones imply are left out.

    Example:
        >>> from podium.judging.algorithms.knockout import tournament
        >>> relevance = [3, 1, 4, 1.5, 9, 2, 6]
        >>> def judge(left, right):
        ...     return Outcome.LEFT if relevance[left] > relevance[right] else Outcome.RIGHT
        >>> run_selection(tournament, 7, 3, judge)
        Selected(top=[4, 6, 2], judgments=9, rounds=6)
    """
    known = KnownOutcomes(items)
    judgments = 0

    def answer(left: int, right: int) -> Outcome:
        nonlocal judgments
        outcome = known.outcome(left, right) if infer else None
        if outcome is None:
            outcome = as_outcome(judge(left, right))
            known.add(left, right, outcome)
            judgments += 1
        return outcome

    top, rounds = drive_selection(algorithm(range(items), k), answer)
    return Selected(top, judgments, rounds)


def drive_selection(selection: Selection[Item], answer: Judge[Item]) -> tuple[list[Item], int]:
    """Answer every pair until a selection ends; returns its top k and the number of batches."""
    rounds = 0
    try:
        batch = next(selection)
        while True:
            rounds += 1
            batch = selection.send([answer(left, right) for left, right in batch])
    except StopIteration as end:
        return end.value, rounds
