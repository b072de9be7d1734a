"""The labels at the top of each ranking, as a table: what gains and discounts are tried on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Floats, Ints, kernel
from podium.measures.blocks import Plan, blocks
from podium.measures.conventions import Conventions
from podium.measures.inputs import Inputs


def top_labels(
    inputs: Inputs, conventions: Conventions, depth: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The labels of each query's first documents, and of its ideal ranking.

    Both have a row a query and a column a rank; 0 stands where there is no judged document.
    """
    queries = len(inputs.query_ids)
    ranked = np.zeros((queries, depth), np.float32)
    ideal = np.zeros((queries, depth), np.float32)
    plan = Plan(conventions, depth, needs_ideal=True)
    for block in blocks(plan, inputs, 0, queries):
        rows = slice(block.first, block.last)
        _take_first(block.ranked, block.starts, block.kept, ranked[rows])
        _take_first(block.ideal, block.ideal_starts, block.judged, ideal[rows])
    return ranked, ideal


@kernel
def _take_first(labels: Floats, starts: Ints, sizes: Ints, table: NDArray[np.float32]) -> None:
    for query in range(len(starts)):
        for rank in range(min(sizes[query], table.shape[1])):
            label = labels[starts[query] + rank]
            if label > 0.0:  # false for an unjudged document's NaN
                table[query, rank] = label
