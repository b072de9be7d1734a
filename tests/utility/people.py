"""Rankings, and people whose utility is known."""

import numpy as np
from hypothesis import strategies as st

from podium.utility import RankingPreferences


def random_pairs(
    count: int, depth: int = 4, grades: int = 3, *, seed: int = 0
) -> RankingPreferences:
    sides = np.random.default_rng(seed).integers(0, grades, (2, count, depth))
    return RankingPreferences.from_arrays(*sides, grades=grades)


def judged(pairs: RankingPreferences, table: np.ndarray) -> RankingPreferences:
    leads = pairs.leads(np.asarray(table, np.float64))
    return pairs.with_choices(np.where(np.abs(leads) < 1e-9, 0, np.sign(leads)))


@st.composite
def preferences(draw, most: int = 25) -> RankingPreferences:
    """Any verdicts on any pairs, contradictions and repeated pairs among them."""
    depth = draw(st.integers(1, 4))
    grades = draw(st.integers(2, 4))
    count = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    return RankingPreferences.from_arrays(
        *random.integers(0, grades, (2, count, depth)),
        random.integers(-2, 3, count),
        pair_weights=random.choice([0.5, 1.0, 2.0], count),
        grades=grades,
    )
