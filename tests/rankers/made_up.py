"""Data whose best ranking is known: labels follow a noisy weighted sum of the features."""

import numpy as np

from podium.data import Dataset


def made_up(queries: int = 40, size: int = 25, *, noise: float = 0.3, seed: int = 0) -> Dataset:
    random = np.random.default_rng(seed)
    features = random.random((queries * size, 6)).astype(np.float32)
    truth = features @ np.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    truth += noise * random.normal(size=len(truth))
    labels = np.digitize(truth, np.quantile(truth, [0.6, 0.8, 0.95]))
    return Dataset.from_arrays(features, labels=labels, group=[size] * queries)
