"""Data with planted features, and how often the interval of an importance contains it."""

from __future__ import annotations

import numpy as np

from podium.data import Dataset
from podium.explain import permutation_importance
from podium.explain.importance import GroupImportance
from podium.rankers import LinearRanker


def planted(queries: int, size: int = 12, seed: int = 0) -> Dataset:
    """A strong feature and a copy of it on another scale, a weak one, noise, and one per query."""
    random = np.random.default_rng(seed)
    rows = queries * size
    strong, weak, noise = random.normal(size=(3, rows))
    constant = np.repeat(random.normal(size=queries), size)
    truth = strong + 0.4 * weak + 0.5 * random.normal(size=rows)
    return Dataset.from_arrays(
        np.stack([strong, np.exp(strong) * 3, weak, noise, constant], axis=1),
        np.digitize(truth, [0.5, 1.2, 1.8]),
        group=[size] * queries,
        feature_names=["strong", "copy", "weak", "noise", "constant"],
    )


def coverage(samples: int) -> tuple[int, float]:
    """Count the samples of 30 queries whose 95 % interval contains the importance of a feature.

    The ranker is fixed. Also return the importance itself, from 20,000 queries.
    """
    ranker = LinearRanker().fit(planted(10))
    ranker.coef_ = np.array([1.0, 0.0, 0.4, 0.1, 0.0])

    def estimate(queries: int, seed: int, repeats: int) -> GroupImportance:
        # All others in one group: only the weak one is of interest.
        result = permutation_importance(
            ranker, planted(queries, 8, seed), "nDCG@5", repeats=repeats, random_state=seed,
            groups=[["weak"], ["strong", "copy", "noise", "constant"]],
        )  # fmt: skip
        return next(group for group in result.groups if group.features == ("weak",))

    truth = estimate(20_000, 10**6, 2).importance
    estimates = (estimate(30, seed, 3) for seed in range(samples))
    return sum(each.low <= truth <= each.high for each in estimates), truth
