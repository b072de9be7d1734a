"""Which slices of queries gain and lose, with false discoveries kept few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from podium.kernels import Doubles
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slices import QueryProperties, property_columns, slices_of
from podium.measures.comparison.statistics import paired_difference
from podium.measures.registry import Measure


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
    comparison: Comparison, properties: QueryProperties
) -> tuple[SliceDifference, ...]:
    """Compare on the slices of each column of the queries' properties.

    P-values are those of the comparison's test, corrected over all slices by Benjamini and
    Hochberg (``q_value``).

    Args:
        comparison: The comparison.
        properties: As ``require`` takes them.

    Example:
        >>> from podium.measures import compare
        >>> truth = {f"q{query}": {"a": 1} for query in range(8)}
        >>> old = {query: {"b": 2, "a": 1} for query in truth}
        >>> new = {query: {"a": 2, "b": 1} for query in truth}
        >>> kinds = {query: "new" if query > "q5" else "known" for query in truth}
        >>> comparison = compare("RR", truth, {"old": old, "new": new})
        >>> rows = slice_differences(comparison, {"kind": kinds})
        >>> [(row.name, row.queries, row.mean) for row in rows]
        [('kind=known', 6, 0.5), ('kind=new', 2, 0.5)]
    """
    slices = slices_of(property_columns(properties, comparison.query_ids))
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
