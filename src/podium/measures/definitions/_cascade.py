"""Users who look down a list and stop at the document that satisfies them (in kernels)."""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, kernel
from podium.measures.compiled.ranked import Places


@kernel
def cascade(chances: Doubles, cut: int) -> float:
    """The mean of the reciprocal rank of the document that satisfies.

    Args:
        chances: That the document at each place satisfies a user who looks at it.
        cut: How many documents a user looks at.
    """
    total, looking = 0.0, 1.0
    for place in range(min(len(chances), cut)):
        total += looking * chances[place] / (place + 1)
        looking *= 1.0 - chances[place]
    return total


@kernel
def expected_cascade(chances: Doubles, ties: Places, cut: int) -> float:
    """The same, in the mean over all orders of ties."""
    total, looking = 0.0, 1.0
    place = 0
    while place < min(len(chances), cut):
        end = ties[place]
        # still[n] is the mean, over all orders of the tie, of the chance to look on after its
        # first n documents: an elementary symmetric polynomial over the number of its terms.
        still = np.zeros(end - place + 1)
        still[0] = 1.0
        for count in range(1, end - place + 1):
            onward = 1.0 - chances[place + count - 1]
            for n in range(count, 0, -1):
                still[n] += n / count * (onward * still[n - 1] - still[n])
        for n in range(1, min(end, cut) - place + 1):
            total += looking * (still[n - 1] - still[n]) / (place + n)
        looking *= still[end - place]
        place = end
    return total
