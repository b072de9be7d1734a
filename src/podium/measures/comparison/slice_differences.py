"""Which slices of queries gain and lose, with false discoveries kept few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from podium.kernels import Doubles
from podium.measures.comparison.slices import Slice
from podium.measures.comparison.statistics import paired_difference
from podium.measures.registry import Measure

if TYPE_CHECKING:
    from podium.measures.comparison.result import Comparison


@dataclass(frozen=True)
class SliceDifference:
    """A system compared with the baseline on the queries of a slice.

    Attributes:
        measure: The measure.
        system: The system.
        name: The slice.
        queries: How many queries it was tested on.
        mean: The mean difference.
        low: The lower end of its 95 % interval; NaN for a single query.
        high: The upper end.
        p_value: Of the test that the comparison uses.
        q_value: Corrected by Benjamini and Hochberg: of the slices with values below 0.05, at most
            5 % are expected to be there by chance.
    """

    measure: Measure
    system: str
    name: str
    queries: int
    mean: float
    low: float
    high: float
    p_value: float
    q_value: float


def slice_differences(
    comparison: Comparison, slices: Sequence[Slice]
) -> tuple[SliceDifference, ...]:
    """Compare every system with the baseline on every slice, for every measure."""
    rows = [
        sliced(comparison, measure, system, part.name, part.members)
        for measure in comparison.measures
        for system in comparison.systems[1:]
        for part in slices
        if len(part)
    ]
    return corrected(rows)


def sliced(
    comparison: Comparison, measure: Measure, system: str, name: str, members: np.ndarray
) -> SliceDifference:
    """Compare on some queries, not yet corrected."""
    table = comparison.values[measure][members]
    weights = comparison.query_weights
    difference = paired_difference(
        table[:, comparison.systems.index(system)],
        table[:, 0],
        tests=(comparison.test,),
        weights=None if weights is None else weights[members],
        seed=comparison.seed,
    )
    p_value = difference.p_values[comparison.test]
    return SliceDifference(
        measure,
        system,
        name,
        len(table),
        difference.mean,
        difference.low,
        difference.high,
        p_value,
        p_value,
    )


def corrected(rows: Sequence[SliceDifference]) -> tuple[SliceDifference, ...]:
    """Correct the p-values of all slices together by Benjamini and Hochberg."""
    from scipy import stats

    if not rows:
        return ()
    adjusted: Doubles = stats.false_discovery_control([row.p_value for row in rows])
    return tuple(
        replace(row, q_value=q_value) for row, q_value in zip(rows, adjusted.tolist(), strict=True)
    )
