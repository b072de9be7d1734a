"""Summary of a data set: counts, labels, documents per query, feature ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from podium.data.dataset import Dataset
from podium.data.labels import LabelKind, LabelShape, label_shape
from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints, kernel
from podium.threads import over_queries


@dataclass(frozen=True)
class Description:
    """A summary of a data set.

    Attributes:
        queries: How many queries.
        rows: How many documents.
        label_kind: Grades, a full order, a top-k order, or blank (all 0).
        label_counts: How often each label occurs.
        sizes: The documents of each query.
        blank_queries: Queries whose documents all have one label, so that nothing is preferred.
        feature_names: The features' names.
        lowest: Each feature's lowest value; NaN if it has none.
        highest: Each feature's highest value.
        missing: How often each feature is missing.
        has_document_ids: Whether rows have document ids.
    """

    queries: int
    rows: int
    label_kind: LabelKind
    label_counts: dict[float, int]
    sizes: Ints = field(repr=False)
    blank_queries: int
    feature_names: tuple[str, ...] = field(repr=False)
    lowest: Floats = field(repr=False)
    highest: Floats = field(repr=False)
    missing: Ints = field(repr=False)
    has_document_ids: bool

    @property
    def constant_features(self) -> int:
        """How many features have the same value everywhere, or none at all."""
        return int(np.sum(~(self.lowest < self.highest)))


def describe(datasets: Dataset | Iterable[Dataset]) -> Description:
    """Summarize a data set, or a stream of blocks of whole queries.

    Example:
        >>> data = Dataset.from_arrays([[1], [5], [3]], labels=[0, 2, 0], qid=["a", "a", "b"])
        >>> summary = describe(data)
        >>> summary.queries, summary.blank_queries, summary.label_counts
        (2, 1, {0.0: 2, 2.0: 1})
    """
    names: tuple[str, ...] = ()
    shape = LabelShape()
    counts: dict[float, int] = {}
    sizes: list[Ints] = []
    blank = 0
    documents = False
    lowest, highest, missing = np.empty(0), np.empty(0), np.empty(0, np.int64)
    for block in [datasets] if isinstance(datasets, Dataset) else datasets:
        if not len(block):
            continue
        wider = len(block.feature_names) - len(names)
        if wider > 0:  # columns missing from earlier blocks are 0 there
            earlier = 0.0 if sizes else np.inf
            lowest = np.concatenate((lowest, np.full(wider, earlier)))
            highest = np.concatenate((highest, np.full(wider, -earlier)))
            missing = np.concatenate((missing, np.zeros(wider, np.int64)))
            names = block.feature_names
        for low, high, gone in over_queries(_ranges(block), block.offsets):
            columns = len(low)
            lowest[:columns] = np.minimum(lowest[:columns], low)
            highest[:columns] = np.maximum(highest[:columns], high)
            missing[:columns] += gone
        # Adding 0 turns negative zeros, which a file may contain, into 0.
        labels, occurrences = np.unique(block.labels + np.float32(0), return_counts=True)
        for label, count in zip(labels.tolist(), occurrences.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
        top = np.maximum.reduceat(block.labels, block.offsets[:-1])
        bottom = np.minimum.reduceat(block.labels, block.offsets[:-1])
        blank += int(np.sum(top == bottom))
        shape |= label_shape(block.labels, block.offsets)
        sizes.append(block.sizes)
        documents = documents or block.document_ids is not None
    if not sizes:
        raise DataError("there is no data to describe", hint="Give at least one query.")
    all_sizes = np.concatenate(sizes)
    empty = lowest > highest
    lowest[empty] = highest[empty] = np.nan
    return Description(
        queries=len(all_sizes),
        rows=int(all_sizes.sum()),
        label_kind=shape.kind,
        label_counts=dict(sorted(counts.items())),
        sizes=all_sizes,
        blank_queries=blank,
        feature_names=names,
        lowest=lowest.astype(np.float32) + np.float32(0),
        highest=highest.astype(np.float32) + np.float32(0),
        missing=missing,
        has_document_ids=documents,
    )


def _ranges(block: Dataset):  # type: ignore[no-untyped-def]
    features = block.features

    def task(first: int, last: int) -> tuple[Doubles, Doubles, Ints]:
        low = np.full(features.shape[1], np.inf)
        high = np.full(features.shape[1], -np.inf)
        gone = np.zeros(features.shape[1], np.int64)
        rows = features[block.offsets[first] : block.offsets[last]]
        _column_ranges(rows, low, high, gone)
        return low, high, gone

    return task


@kernel
def _column_ranges(features: Floats, lowest: Doubles, highest: Doubles, missing: Ints) -> None:
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            value = features[row, column]
            if value == value:
                lowest[column] = min(lowest[column], value)
                highest[column] = max(highest[column], value)
            else:
                missing[column] += 1
