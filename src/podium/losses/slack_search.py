"""The search for the order that violates a slack-scaled margin most.

An order has a loss (how wrong it is) and a lead (1 plus how much more it scores than the right
order); slack scaling looks for the largest product of the two. Orders with the largest
``lead + penalty * loss`` are easy to find, and for every penalty they lie on the upper hull of all
orders' points (loss, lead). Along that hull loss rises and lead falls with the penalty, and the
product is largest where ``lead = penalty * loss``. Two orders that enclose this point are moved
towards each other along the chord between them, until no order lies above it. So the best order on
the hull is found exactly, in a few steps; it takes the place of the golden-section search by Cheng
et al. (2014), which minimizes the same bound but can stop short on its plateaus.
"""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, inner

STEPS, LEFT_LOSS, LEFT_LEAD, RIGHT_LOSS, RIGHT_LEAD, BEST_VALUE, BEST_PENALTY = range(7)
MOST_STEPS = 64
DONE = -1.0


@inner
def begin_search() -> Doubles:
    """Return the state of a new search; the first penalty to try is 0."""
    state = np.zeros(7)
    state[RIGHT_LOSS] = -1.0  # no right end yet
    return state


@inner
def next_penalty(state: Doubles, penalty: float, loss: float, lead: float) -> float:
    """Add the order that a penalty gave, and return the next penalty to try, or DONE.

    The penalty of the best order is then ``state[BEST_PENALTY]``.
    """
    state[STEPS] += 1.0
    if loss * lead > state[BEST_VALUE]:
        state[BEST_VALUE] = loss * lead
        state[BEST_PENALTY] = penalty
    if state[STEPS] > MOST_STEPS:
        return DONE
    if penalty == 0.0:
        state[LEFT_LOSS], state[LEFT_LEAD] = loss, lead
        return lead / loss if loss > 0.0 else 1.0
    beyond = lead <= penalty * loss
    if state[RIGHT_LOSS] < 0.0 and not beyond:
        state[LEFT_LOSS], state[LEFT_LEAD] = loss, lead
        return 8.0 * penalty
    if state[RIGHT_LOSS] >= 0.0:
        chord = state[LEFT_LEAD] + penalty * state[LEFT_LOSS]
        if lead + penalty * loss <= chord + 1e-12 * abs(chord):
            return DONE
    if beyond:
        state[RIGHT_LOSS], state[RIGHT_LEAD] = loss, lead
    else:
        state[LEFT_LOSS], state[LEFT_LEAD] = loss, lead
    width = state[RIGHT_LOSS] - state[LEFT_LOSS]
    if width <= 0.0:
        return DONE
    return float((state[LEFT_LEAD] - state[RIGHT_LEAD]) / width)
