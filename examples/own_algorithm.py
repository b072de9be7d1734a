"""A selection algorithm of one's own: quickselect, then quicksort of what was selected.

A coroutine yields pairs that do not wait for one another, is sent their outcomes in the same
order, and returns the best k, best first. It knows no people and no files; sessions do the rest.
"""

from podium.judging import Outcome, Pair
from podium.judging.algorithms import ALGORITHMS


def quickselect(items, k):
    """Compare all with a pivot at once, keep the side that the k best are on, and sort it."""
    if k <= 0 or len(items) <= 1:
        return list(items[:k])
    pivot, *others = items
    outcomes = yield [Pair(item, pivot) for item in others]
    judged = list(zip(others, outcomes, strict=True))
    above = [item for item, outcome in judged if outcome is Outcome.LEFT]
    equal = [pivot, *(item for item, outcome in judged if outcome is Outcome.TIE)]
    below = [item for item, outcome in judged if outcome is Outcome.RIGHT]
    top = yield from quickselect(above, min(k, len(above)))
    top += equal[: k - len(top)]
    top += yield from quickselect(below, k - len(top))
    return top


ALGORITHMS["quickselect"] = quickselect
