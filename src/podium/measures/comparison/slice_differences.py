"""Which slices of queries gain and lose: those of a column, and those that a search finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import generator
from podium.kernels import Doubles
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slices import (
    QueryProperties,
    is_numeric,
    property_columns,
    slices_of,
)
from podium.measures.comparison.statistics import differences_of, paired_difference
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
        p_value: The p-value of the test that the comparison uses.
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
        random_state=comparison.random_state,
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


_DEPTH = 2
_LEAST = 8
"""Queries of each half that a slice has at least."""
_THRESHOLDS = 8
"""Thresholds that are tried for a numeric column."""
_MOST_VALUES = 50
"""Values that are tried for another column: the most frequent ones."""


@dataclass(frozen=True, eq=False)
class _Condition:
    """Something that is true of some queries and not of others; of the rest it is not known."""

    holds: NDArray[np.bool_]
    fails: NDArray[np.bool_]
    name: str
    opposite: str


def search_slices(
    comparison: Comparison, properties: QueryProperties, *, random_state: int = 0
) -> tuple[SliceDifference, ...]:
    """Search for slices that gain or lose, and test them on queries that took no part in it.

    A tree of at most two conditions on the properties is grown on one half of the queries,
    drawn at random; its slices are tested on the other half. With fewer than 32 queries there
    is nothing to split. A search for the worst slice finds one in noise, too, so the queries that
    it looked at cannot test it; the p-values of all slices are corrected together by Benjamini and
    Hochberg.

    Args:
        comparison: The comparison.
        properties: As ``require`` takes them.
        random_state: The seed of the split.

    Example:
        >>> from podium.measures import compare
        >>> truth = {f"q{query}": {"a": 1} for query in range(80)}
        >>> kind = {f"q{query}": "odd" if query % 2 else "even" for query in range(80)}
        >>> old = {query: {"b": 2, "a": 1} for query in truth}
        >>> new = {query: {"a": 3 if kind[query] == "odd" else 1, "b": 2} for query in truth}
        >>> comparison = compare("RR", truth, {"old": old, "new": new})
        >>> [(row.name, row.mean) for row in search_slices(comparison, {"kind": kind})]
        [('kind = even', 0.0), ('kind = odd', 0.5)]
    """
    columns = property_columns(properties, comparison.query_ids)
    queries = len(comparison.query_ids)
    order = generator(random_state).permutation(queries)
    first = np.zeros(queries, np.bool_)
    first[order[: queries // 2]] = True
    conditions = list(_conditions(columns))
    rows = []
    for measure in comparison.measures:
        table = comparison.values[measure]
        for column, system in enumerate(comparison.systems[1:], start=1):
            differences = differences_of(table[:, column], table[:, 0])
            everything = np.ones(queries, np.bool_)
            for name, members in _leaves(differences, everything, first, conditions, _DEPTH):
                if name:
                    rows.append(sliced(comparison, measure, system, name, members & ~first))
    return corrected(rows)


def _leaves(
    differences: Doubles,
    members: NDArray[np.bool_],
    first: NDArray[np.bool_],
    conditions: Sequence[_Condition],
    depth: int,
    name: str = "",
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Split queries by the condition that explains most, and again."""
    best = _best(differences, members, first, conditions) if depth else None
    if best is None:
        yield name, members
        return
    for side, words in ((best.holds, best.name), (best.fails, best.opposite)):
        longer = f"{name} and {words}" if name else words
        yield from _leaves(differences, members & side, first, conditions, depth - 1, longer)


def _best(
    differences: Doubles,
    members: NDArray[np.bool_],
    first: NDArray[np.bool_],
    conditions: Sequence[_Condition],
) -> _Condition | None:
    """The condition whose two sides differ most for their sizes, in the first half."""
    best, most = None, 0.0
    here = members & first
    for condition in conditions:
        inside, outside = here & condition.holds, here & condition.fails
        sizes = int(inside.sum()), int(outside.sum())
        other = members & ~first
        tested = int((other & condition.holds).sum()), int((other & condition.fails).sum())
        if min(*sizes, *tested) < _LEAST:
            continue
        gap = float(differences[inside].mean() - differences[outside].mean())
        explained = gap**2 * sizes[0] * sizes[1] / sum(sizes)
        if explained > most:
            best, most = condition, explained
    return best


def _conditions(columns: Mapping[str, Sequence[Any]]) -> Iterator[_Condition]:
    for name, values in columns.items():
        if is_numeric(values):
            numbers = np.array([np.nan if value is None else value for value in values], np.float64)
            levels = np.arange(1, _THRESHOLDS) / _THRESHOLDS
            for threshold in np.unique(np.nanquantile(numbers, levels, method="lower")).tolist():
                yield _Condition(
                    numbers <= threshold,
                    numbers > threshold,
                    f"{name} <= {threshold:g}",
                    f"{name} > {threshold:g}",
                )
        else:
            labels = np.array(
                ["" if value is None else " ".join(str(value).split()) for value in values], object
            )
            kinds, counts = np.unique(labels.astype(str), return_counts=True)
            frequent = kinds[np.argsort(-counts, kind="stable")][:_MOST_VALUES].tolist()
            if len(frequent) == 2 and "" not in frequent:  # each is the opposite of the other
                one, other = frequent
                yield _Condition(
                    labels == one, labels == other, f"{name} = {one}", f"{name} = {other}"
                )
                continue
            for kind in filter(None, frequent):
                yield _Condition(
                    labels == kind,
                    (labels != kind) & (labels != ""),
                    f"{name} = {kind}",
                    f"{name} is not {kind}",
                )
