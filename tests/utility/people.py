"""Rankings, and people whose utility is known."""

import numpy as np
from hypothesis import strategies as st

from podium.data import Judgments, Rankings
from podium.utility import (
    RankingPreferences,
    simulated_choices,
)

GAINS, DISCOUNTS = np.array([0.0, 0.8, 1.0]), np.array([1.0, 0.9, 0.8])
TRUTH = np.outer(DISCOUNTS, GAINS)


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


def people(count: int, seed: int, table: np.ndarray = TRUTH) -> RankingPreferences:
    pairs = random_pairs(count, 3, 3, seed=seed)
    return pairs.with_choices(
        simulated_choices(pairs, table, noise=0.15, same=0.1, random_state=seed)
    )


def runs() -> tuple[Judgments, dict[str, Rankings]]:
    """One system finds the one perfect document, the other two fair ones."""
    queries = [f"q{number}" for number in range(12)]
    ids = np.repeat(queries, 3)
    judged = [f"{query}-{name}" for query in queries for name in ("best", "fair", "also", "z")]
    judgments = Judgments.from_columns(np.repeat(queries, 4), judged, [2, 1, 1, 0] * 12)

    def run(names: tuple[str, str, str]) -> Rankings:
        rows = [f"{query}-{name}" for query in queries for name in names]
        return Rankings.from_columns(ids, rows, [3, 2, 1] * 12)

    return judgments, {
        "one": run(("best", "x", "y")),
        "many": run(("fair", "also", "y")),
        "none": run(("x", "y", "z")),
    }
