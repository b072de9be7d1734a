"""Several verdicts on one pair."""

from __future__ import annotations

from collections.abc import Iterable

from podium.judging.entries import Outcome


def majority(outcomes: Iterable[Outcome]) -> Outcome:
    """The majority outcome; if two are equally frequent, the side with more votes, or a tie.

    Example:
        >>> majority([Outcome.LEFT, Outcome.TIE, Outcome.TIE]).name
        'TIE'
        >>> majority([Outcome.LEFT, Outcome.RIGHT]).name
        'TIE'
    """
    left = tie = right = 0
    for outcome in outcomes:
        left += outcome == Outcome.LEFT
        tie += outcome == Outcome.TIE
        right += outcome == Outcome.RIGHT
    if left > right and left >= tie:
        return Outcome.LEFT
    if right > left and right >= tie:
        return Outcome.RIGHT
    return Outcome.TIE
