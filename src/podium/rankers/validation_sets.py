"""Several sets of validation queries, as users of LightGBM and XGBoost give them: one decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from podium.data import Dataset, concat_datasets
from podium.errors import ArgumentError

if TYPE_CHECKING:
    from podium.rankers.base import TrainingData


@dataclass(frozen=True)
class ValidationSets:
    """Which of the validation queries are of which set.

    Attributes:
        sizes: The number of queries of each set by its name, in the order of the queries.
        training: The names of those that are the training data themselves.
    """

    sizes: Mapping[str, int]
    training: frozenset[str] = frozenset()

    @property
    def first_queries(self) -> tuple[int, ...]:
        """The first query of each set but the first."""
        return tuple(accumulate(self.sizes.values()))[:-1]

    @property
    def held_out(self) -> list[str]:
        """The names of the sets that are not the training data; of all, if there is no other."""
        names = list(self.sizes)
        return [name for name in names if name not in self.training] or names

    @property
    def deciding(self) -> str:
        """The set whose measure decides which model is kept: the last, as in XGBoost."""
        return self.held_out[-1]


def join_sets(sets: Mapping[str, TrainingData]) -> TrainingData:
    """Return the queries of all sets, one set after the other.

    Queries of two sets may have the same id, as those of training and validation data often do.
    """
    if len(sets) == 1:
        return next(iter(sets.values()))
    renamed = []
    for name, data in sets.items():
        if not isinstance(data, Dataset):
            raise ArgumentError(
                f"the validation set {name!r} is not in memory, or sparse",
                hint="Give only one set, or arrays, data frames and data sets.",
            )
        ids = pa.array([f"{name}:{query}" for query in data.query_ids.to_pylist()])
        renamed.append(replace(data, query_ids=ids.cast(data.query_ids.type)))
    return concat_datasets(renamed)
