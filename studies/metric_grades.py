"""Rankings with the grades of real queries: random orders of their documents, first ten each."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.data import Dataset, read_letor
from podium.utility import RankingPreferences
from studies.metric_curves import Maker, Setting, truth_table

_DEPTH = 10
Grades: TypeAlias = NDArray[np.uint8]


def grade_settings(data: Path) -> list[Setting]:
    """MQ2007 and the MSLR sample, as far as they are here; gains 2^l - 1 are the truth."""
    settings = []
    sets = {
        "MQ2007": [data / "letor" / "MQ2007" / f"S{part}.txt.gz" for part in range(1, 6)],
        "MSLR sample": [data / "mslr-sample" / "sample.txt.gz"],
    }
    for name, paths in sets.items():
        if all(path.exists() for path in paths):
            lists = [grades for path in paths for grades in _lists(read_letor(path))]
            grades = max(int(each.max()) for each in lists) + 1
            half = np.arange(len(lists)) % 5 == 0
            train = [each for each, held in zip(lists, half, strict=True) if not held]
            test = [each for each, held in zip(lists, half, strict=True) if held]
            settings.append(
                Setting(
                    name,
                    _orders_of(train, grades),
                    truth_table("exponential", _DEPTH, grades),
                    truth_table("linear", _DEPTH, grades),
                    _orders_of(test, grades),
                )
            )
    return settings


def _lists(data: Dataset) -> list[Grades]:
    """The grades of each query with something relevant."""
    bounds = pairwise(data.offsets)
    lists = [data.labels[begin:end].astype(np.uint8) for begin, end in bounds]
    return [each for each in lists if each.any()]


def _orders_of(lists: list[Grades], grades: int) -> Maker:
    def make(count: int, random: np.random.Generator) -> RankingPreferences:
        queries = random.integers(0, len(lists), count)
        sides = [np.zeros((count, _DEPTH), np.uint8) for _ in range(2)]
        for row, query in enumerate(queries.tolist()):
            for side in sides:
                drawn = random.permutation(lists[query])[:_DEPTH]
                side[row, : len(drawn)] = drawn
        return RankingPreferences.from_arrays(*sides, queries=queries, grades=grades)

    return make
