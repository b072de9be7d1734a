"""Random tree models with awkward numbers, and rows on their thresholds."""

from __future__ import annotations

import numpy as np

from podium.export.golden import split_edges
from podium.kernels import Doubles
from podium.scorers.trees import TreeModel, concatenate_trees

_LARGEST = float(np.finfo(np.float32).max)
AWKWARD = np.array(
    [
        0.0, -0.0, 1e-45, -1e-45, 1e-40, -1e-40, 1.1754944e-38, 1e-35, -1e-35, 1e-13, -1e-13, 1e-6,
        -1e-6, 0.1, -0.1, 1 / 3, 1.0, 16.0, 1e7 + 0.3, 1e10, -1e10, _LARGEST, -_LARGEST,
    ]
)  # fmt: skip
"""Zeros, denormals, LightGBM's zero, Solr's millionth, numbers between single-precision ones."""


def random_model(
    random: np.random.Generator,
    *,
    trees: int = 3,
    depth: int = 3,
    features: int = 4,
    strict: bool = False,
    categories: bool = False,
    zero_missing: bool = False,
) -> TreeModel:
    """Draw a model whose leaves are integers, so that sums are exact in any precision."""
    sets: list[tuple[int, ...]] = []
    by_category = random.random(features) < 0.4 if categories else np.zeros(features, np.bool_)

    def tree() -> dict[str, list[float]]:
        names = ("feature", "threshold", "left", "right", "missing_left", "value", "category_set")
        arrays: dict[str, list[float]] = {name: [] for name in names}

        def add(level: int) -> int:
            number = len(arrays["feature"])
            for name, empty in zip(names, (-1, 0, 0, 0, 0, 0, -1), strict=True):
                arrays[name].append(empty)
            if level == depth or random.random() < 0.2:
                arrays["value"][number] = float(random.integers(-1000, 1000))
                return number
            feature = int(random.integers(features))
            arrays["feature"][number] = feature
            arrays["missing_left"][number] = int(random.integers(2))
            if by_category[feature]:
                arrays["category_set"][number] = len(sets)
                members = random.choice(70, int(random.integers(1, 6)), replace=False)
                sets.append(tuple(sorted(members.tolist())))
            else:
                pick = random.random() < 0.5
                arrays["threshold"][number] = (
                    float(random.choice(AWKWARD)) if pick else float(random.normal())
                )
            arrays["left"][number] = add(level + 1)
            arrays["right"][number] = add(level + 1)
            return number

        add(0)
        return arrays

    zeros = np.zeros(features, np.bool_)
    if zero_missing:
        zeros = (random.random(features) < 0.5) & ~by_category
    grown = [tree() for _ in range(trees)]
    return concatenate_trees(
        grown,
        tuple(f"f{number}" for number in range(features)),
        strict=strict,
        base_score=float(random.integers(-5, 5)),
        category_sets=tuple(sets),
        floor_categories=bool(random.integers(2)),
        zero_missing=zeros,
    )


def rows_on_edges(random: np.random.Generator, model: TreeModel, rows: int) -> Doubles:
    """Draw rows of single-precision values: on thresholds, awkward, missing and infinite ones."""
    edges = np.stack(split_edges(model))
    result = np.empty((rows, model.features))
    for column in range(model.features):
        own = edges[:, model.feature == column].ravel()
        pool = np.concatenate(
            [own, own, AWKWARD.astype(np.float32), [np.nan, np.inf, -np.inf, 3.7, -0.5, 64.0]]
        )
        result[:, column] = random.choice(pool, rows)
    return result.astype(np.float32).astype(np.float64)
