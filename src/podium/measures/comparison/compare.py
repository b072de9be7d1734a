"""``compare``: systems on the same queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from podium.data import Dataset, Judgments, Rankings
from podium.data.frames import to_arrow
from podium.data.preferences import Preferences
from podium.data.query_weights import QueryWeights, query_weights
from podium.data.seeds import checked_seed
from podium.data.sources import TableSource
from podium.errors import ArgumentError, DataError
from podium.measures.comparison.result import Compared, Comparison
from podium.measures.comparison.statistics import TESTS, TestName
from podium.measures.conventions import Conventions
from podium.measures.coverage import check_coverage, coverage_of
from podium.measures.evaluating import measure_all
from podium.measures.evaluation import ByMeasure
from podium.measures.inputs import as_system, as_truth, inputs_of
from podium.measures.presets import Measures, conventions_text, resolve_measures
from podium.measures.registry import definition_of
from podium.registry import unknown_name


def compare(
    measures: Measures,
    truth: Judgments | Dataset | Preferences | TableSource,
    systems: Mapping[str, Rankings | TableSource | ArrayLike],
    *,
    conventions: Conventions | str | None = None,
    test: TestName = "randomization",
    random_state: int = 0,
    sample_weight: QueryWeights | None = None,
) -> Comparison:
    """Compare systems with the first of them, the baseline, on the same queries.

    Queries that a convention leaves out for one system are left out for all.

    Args:
        measures: One or several measures.
        truth: Judgments or preferences, for systems given as rankings; or a data set, for systems
            given as a score for each of its rows. Judgments and rankings have the forms that
            ``evaluate`` takes: objects of Podium, file names, dictionaries, tables or named tuples.
        systems: What each system returned, by its name; the first is the baseline.
        conventions: What to do where tools disagree, as ``evaluate`` takes it.
        test: The test that decides significance; the others are computed when they are read.
        random_state: Seed of the randomization test, which is exact for up to 36 queries.
        sample_weight: Weights of the queries, as ``evaluate`` takes them. Means, intervals and
            effects are weighted, and are of queries with just these weights; those of weight 0 are
            left out. Only the randomization test is computed, of the weighted differences: whether
            they are as large as if the two systems' results had been swapped at random in each
            query. The other tests, Tukey's correction and coherence have no weighted form here.

    Example:
        >>> judgments = Judgments.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [2, 1, 1])
        >>> columns = ["q1", "q1", "q2", "q2"], ["a", "b", "a", "c"]
        >>> comparison = compare(
        ...     "nDCG@2",
        ...     judgments,
        ...     {
        ...         "old": Rankings.from_columns(*columns, [1, 2, 1, 2]),
        ...         "new": Rankings.from_columns(*columns, [2, 1, 2, 1]),
        ...     },
        ... )
        >>> outcome = comparison.against_baseline["nDCG@2"]["new"]
        >>> outcome.difference.wins, outcome.coherence.unanimous
        (2, True)
    """
    if test not in TESTS:
        raise unknown_name("test", test, list(TESTS))
    if sample_weight is not None and test != "randomization":
        raise ArgumentError(
            f"the {test} test is of queries with equal weights", hint="Give test='randomization'."
        )
    if not isinstance(systems, Mapping):
        raise ArgumentError(
            f"systems are a {type(systems).__name__}",
            hint='Give them by name, the baseline first: {"old": old, "new": new}.',
        )
    if len(systems) < 2:
        raise ArgumentError(f"{len(systems)} systems to compare", hint="Give at least two.")
    parsed, chosen = resolve_measures(measures, conventions)
    for measure in parsed:
        if definition_of(measure).aggregate != "mean":
            raise ArgumentError(
                f"{measure!r} is not a mean over queries, which is what tests compare",
                hint="Choose a measure that is, such as AP.",
            )
    # Converted once: several passes follow, and an iterator lasts for one.
    reference = as_truth(truth, next(iter(systems.values())))
    inputs = tuple(
        inputs_of(reference, as_system(reference, system)) for system in systems.values()
    )
    query_ids = inputs[0].query_ids
    coverage = {}
    for name, each in zip(systems, inputs, strict=True):
        coverage[name] = coverage_of(each, parsed, chosen)
        check_coverage(coverage[name], parsed, chosen, each, name)
    results = [measure_all(parsed, chosen, each) for each in inputs]
    missing = [np.isnan(np.column_stack([*each.values()])).any(axis=1) for each in results]
    every_weight = None if sample_weight is None else query_weights(sample_weight, query_ids)
    counted = np.ones(len(query_ids), np.bool_) if every_weight is None else every_weight > 0
    keep = counted & ~np.any(missing, axis=0)
    if not keep.any():
        raise DataError(
            "no query has a value for every system",
            hint="Do the query ids of judgments and runs match?",
        )
    # What is missing counts as empty here, whatever the conventions do with it.
    nothing = measure_all(parsed, replace(chosen, missing="empty"), inputs[0].without_results())
    return Comparison(
        systems=tuple(systems),
        measures=tuple(parsed),
        query_ids=tuple(query_ids.take(to_arrow(np.flatnonzero(keep))).to_pylist()),
        left_out=int(np.sum(~keep)),
        values=ByMeasure(
            {
                measure: np.column_stack([each[measure][keep] for each in results])
                for measure in parsed
            }
        ),
        empty_values=ByMeasure({measure: nothing[measure][keep] for measure in parsed}),
        conventions=conventions_text(chosen),
        test=test,
        random_state=checked_seed(random_state),
        query_weights=None if every_weight is None else every_weight[keep],
        unanswered={
            name: int(np.sum(counted & ~missing[0] & without))
            for name, without in zip(tuple(systems)[1:], missing[1:], strict=True)
        },
        source=Compared(chosen, inputs, keep),
        coverage=coverage,
    )
