"""Estimate how many judgments a session still needs by simulating it to its end.

Each simulated order agrees with all that is known. The rest is drawn from the prior ranking as
far as the verdicts so far support it: see `podium.judging.algorithms.prior_beliefs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import log_ndtr, softmax

from podium.data.seeds import generator
from podium.judging.algorithms.prior_beliefs import SPREADS, quantiles
from podium.judging.algorithms.selection import Algorithm, drive_selection
from podium.judging.entries import Outcome
from podium.judging.transitive_closure import KnownOutcomes
from podium.kernels import Doubles

Answer = Callable[[KnownOutcomes, int, int], Outcome | None]


def expected_left(
    algorithm: Algorithm[int],
    order: Sequence[int],
    k: int,
    known: KnownOutcomes,
    answer: Answer,
    *,
    ordered: bool,
    draws: int,
    random_state: int,
) -> float:
    """The mean number of judgments left, over some simulated orders.

    Args:
        algorithm: The selection that is under way.
        order: The items in the order it was given them.
        k: How many it puts in order.
        known: The outcomes so far.
        answer: Answers a pair from what is known, or None.
        ordered: Whether the order is a prior ranking rather than random.
        draws: How many orders to simulate.
        random_state: Draws them.
    """
    random = generator(random_state)
    weights = _spread_weights(order, known) if ordered else np.eye(len(SPREADS))[0]
    counts = []
    for _ in range(draws):
        spread = SPREADS[random.choice(len(SPREADS), p=weights)]
        worth = np.empty(len(order))
        worth[np.asarray(order)] = np.sqrt(1 - spread**2) * quantiles(len(order))
        worth += spread * random.standard_normal(len(order))
        counts.append(_play(algorithm, order, k, known, answer, _consistent(worth, known)))
    return float(np.mean(counts))


def expected_correlation(order: Sequence[int], known: KnownOutcomes) -> float:
    """The correlation of a prior ranking with the truth that the outcomes so far speak for."""
    return float(np.sqrt(1 - _spread_weights(order, known) @ SPREADS**2))


def _spread_weights(order: Sequence[int], known: KnownOutcomes) -> Doubles:
    """How likely each spread is, from the prior ranking's lead in each pair and its outcome."""
    prior = np.empty(len(order))
    prior[np.asarray(order)] = quantiles(len(order))
    better = [
        (left, right) for (left, right), outcome in known.judged.items() if outcome is Outcome.LEFT
    ]
    pairs = np.array(better, np.int64).reshape(-1, 2)
    leads = prior[pairs[:, 0]] - prior[pairs[:, 1]]
    surprise = log_ndtr(leads[:, None] * np.sqrt(1 - SPREADS**2) / (SPREADS * np.sqrt(2)))
    evidence = np.maximum(surprise, -8).sum(axis=0)
    weights: Doubles = softmax(evidence)
    return weights


def _consistent(worth: Doubles, known: KnownOutcomes) -> list[float]:
    """Raise each item's strength above that of all it is known to beat."""
    values: list[float] = worth.tolist()
    for item in sorted(range(len(values)), key=lambda item: known.below[item].bit_count()):
        least = values[item] + 1e-9
        for better in known.beaten_by[item]:
            values[better] = max(values[better], least)
    return values


def _play(
    algorithm: Algorithm[int],
    order: Sequence[int],
    k: int,
    known: KnownOutcomes,
    answer: Answer,
    worth: list[float],
) -> int:
    known = known.copy()
    judgments = 0

    def made_up(left: int, right: int) -> Outcome:
        nonlocal judgments
        outcome = answer(known, left, right)
        if outcome is None:
            outcome = Outcome.LEFT if worth[left] > worth[right] else Outcome.RIGHT
            known.add(left, right, outcome)
            judgments += 1
        return outcome

    drive_selection(algorithm(order, k), made_up)
    return judgments
