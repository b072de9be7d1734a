"""The compiled loop of the benchmark decides as the package does."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._online_simulation import misses
from podium.online.sequence import ClientSums, difference, preference, widening


@pytest.mark.parametrize("effect", [0.0, 0.2])
def test_the_loop_follows_the_formulas(effect: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        sums = np.zeros((2, 12))
        for arm in range(2):
            size = random.integers(1, 5, 60).astype(float)
            outcome = random.binomial(size.astype(int), 0.2 + 0.3 * arm * random.random())
            sums[arm] = [
                60, size.sum(), outcome.sum(), (size**2).sum(), (size * outcome).sum(),
                (outcome**2).sum(), outcome.sum(),
                *((outcome ** (4.0 - k) * size**k).sum() for k in range(5)),
            ]  # fmt: skip
        old, new = (ClientSums(*each) for each in sums)
        expected = difference(old, new)
        reach = widening(sums[:, 1].sum())
        assert misses(sums, False, reach**2, effect) == (
            not expected.low <= effect <= expected.high
        )
        single = preference(old)
        reach = widening(sums[0, 1])
        assert misses(sums, True, reach**2, effect) == (not single.low <= effect <= single.high)
