"""The compiled loop of the benchmark decides as the package does."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._online_simulation import _look
from podium.online.sequence import ClientSums, difference, preference


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
        value, misses, _ = _look(sums, False, 0.05, effect)
        assert value == pytest.approx(expected.value)
        assert misses == (not expected.low <= effect <= expected.high)
        single = preference(old)
        value, misses, _ = _look(sums, True, 0.05, effect)
        assert value == pytest.approx(single.value)
        assert misses == (not single.low <= effect <= single.high)
