"""``compare``: systems on the same queries, with tests, intervals and effect sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data import Dataset, Judgments, Preferences, Rankings, TableSource
from podium.data.query_weights import QueryWeights
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures.comparison.coherence import Coherence, coherences
from podium.measures.comparison.result import BaselineComparison, Comparison, Curve, Summary
from podium.measures.comparison.statistics import (
    TESTS,
    Difference,
    TestName,
    holm,
    paired_difference,
    tukey,
    weighted_interval,
)
from podium.measures.conventions import Conventions
from podium.measures.evaluate import Measures, evaluate, measure_all, measures_of
from podium.measures.evaluation import Evaluation
from podium.measures.inputs import as_system, as_truth, inputs_of
from podium.measures.measure_dict import ByMeasure
from podium.measures.presets import conventions_for, conventions_text
from podium.measures.registry import Measure, definition_of
from podium.registry import unknown_name

_MOST_CUT_OFFS = 20
_MOVED = 5


def compare(
    measures: Measures,
    truth: Judgments | Dataset | Preferences | TableSource,
    systems: Mapping[str, Rankings | TableSource | ArrayLike],
    *,
    conventions: Conventions | str | None = None,
    test: TestName = "randomisation",
    seed: int = 0,
    query_weight: QueryWeights | None = None,
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
        test: The test that decides significance; all four are computed.
        seed: Seed of the randomisation test, which is exact for up to 36 queries.
        query_weight: Weights of the queries, as ``evaluate`` takes them. Means, intervals and
            effects are weighted; queries of weight 0 are left out. Only the randomisation test is
            computed, of the weighted differences: whether they are as large as if the two systems'
            results had been swapped at random in each query. The other tests, Tukey's correction
            and coherence have no weighted form here.

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
        >>> verdict = comparison.verdicts["nDCG@2"]["new"]
        >>> verdict.difference.wins, verdict.coherence.unanimous
        (2, True)
    """
    if test not in TESTS:
        raise unknown_name("test", test, list(TESTS))
    if query_weight is not None and test != "randomisation":
        raise ArgumentError(
            f"the {test} test is of queries with equal weights", hint="Give test='randomisation'."
        )
    if not isinstance(systems, Mapping):
        raise ArgumentError(
            f"systems are a {type(systems).__name__}",
            hint='Give them by name, the baseline first: {"old": old, "new": new}.',
        )
    if len(systems) < 2:
        raise ArgumentError(f"{len(systems)} systems to compare", hint="Give at least two.")
    chosen = conventions_for(measures, conventions)
    # Converted once: several passes follow, and an iterator lasts for one.
    reference = as_truth(truth, next(iter(systems.values())))
    rankings = {name: as_system(reference, system) for name, system in systems.items()}
    parsed = measures_of(measures)
    for measure in parsed:
        if definition_of(measure).aggregate != "mean":
            raise ArgumentError(
                f"{measure!r} is not a mean over queries, which is what tests compare",
                hint="Choose a measure that is, such as AP.",
            )
    curve = _cut_offs(parsed)
    names = tuple(systems)
    results = {
        name: evaluate(
            [*parsed, *curve], reference, system, conventions=chosen, query_weight=query_weight
        )
        for name, system in rankings.items()
    }
    keep = _common(results, parsed)
    every_weight = results[names[0]].query_weights
    weights = None if every_weight is None else every_weight[keep]
    values = ByMeasure(
        {
            measure: np.column_stack([results[name][measure][keep] for name in names])
            for measure in parsed
        }
    )
    inputs = [inputs_of(reference, system) for system in rankings.values()]
    # What is missing counts as empty here, whatever the conventions do with it.
    nothing = measure_all(parsed, replace(chosen, missing="empty"), inputs[0].without_results())
    return Comparison(
        systems=names,
        measures=tuple(parsed),
        seed=seed,
        query_ids=tuple(results[names[0]].query_ids.filter(keep).to_pylist()),
        left_out=int(np.sum(~keep)),
        unanswered=_unanswered(results, parsed),
        values=values,
        empty_values=ByMeasure({measure: nothing[measure][keep] for measure in parsed}),
        summaries=ByMeasure(
            {
                measure: {
                    name: Summary(*weighted_interval(table[:, column], weights))
                    for column, name in enumerate(names)
                }
                for measure, table in values.items()
            }
        ),
        verdicts=ByMeasure(
            {
                measure: _verdicts(
                    measure,
                    names,
                    table,
                    None if weights is not None else coherences(measure, chosen, inputs, keep),
                    seed,
                    weights,
                )
                for measure, table in values.items()
            }
        ),
        curves={
            name: Curve(
                tuple(int(each.cut_off or 0) for each in curve),
                tuple(_curve_mean(results[name][each][keep], weights) for each in curve),
            )
            for name in names
        }
        if curve
        else {},
        curve_of=repr(curve[0]).rpartition("@")[0] if curve else "",
        conventions=conventions_text(chosen),
        test=test,
        query_weights=weights,
    )


def _curve_mean(values: Doubles, weights: Doubles | None) -> float:
    known = ~np.isnan(values)
    own = None if weights is None else weights[known]
    return float(np.average(values[known], weights=own))


def _common(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> NDArray[np.bool_]:
    """Return which queries have a value for all systems and measures, and a weight above 0."""
    columns = [evaluation[measure] for evaluation in results.values() for measure in measures]
    keep = ~np.isnan(np.column_stack(columns)).any(axis=1)
    weights = next(iter(results.values())).query_weights
    if weights is not None:
        keep &= weights > 0
    if not keep.any():
        raise DataError(
            "no query has a value for every system",
            hint="Do the query ids of judgments and runs match?",
        )
    return np.asarray(keep)


def _unanswered(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> dict[str, int]:
    """Count the queries of the baseline that a convention leaves out for each other system."""
    missing = {
        name: np.isnan(np.column_stack([evaluation[each] for each in measures])).any(axis=1)
        for name, evaluation in results.items()
    }
    baseline, *others = missing
    weights = results[baseline].query_weights
    counted = ~missing[baseline] if weights is None else ~missing[baseline] & (weights > 0)
    return {name: int(np.sum(counted & missing[name])) for name in others}


def _cut_offs(measures: Sequence[Measure]) -> list[Measure]:
    """Return the first measure with a cut-off, at cut-offs up to its own and a few more."""
    for measure in measures:
        if measure.cut_off is not None:
            last = max(min(2 * measure.cut_off, _MOST_CUT_OFFS), min(measure.cut_off, 100))
            cut_offs = range(1, last + 1) if last <= _MOST_CUT_OFFS else range(5, last + 1, 5)
            return [measure @ each for each in cut_offs]
    return []


def _verdicts(
    measure: Measure,
    names: Sequence[str],
    values: NDArray[np.float64],
    coherence_of: list[Coherence] | None,
    seed: int,
    weights: Doubles | None,
) -> dict[str, BaselineComparison]:
    differences = [
        paired_difference(
            values[:, column],
            values[:, 0],
            seed=seed,
            weights=weights,
            larger_is_better=measure.larger_is_better,
        )
        for column in range(1, len(names))
    ]
    corrected = _corrected(differences)
    sign = 1.0 if measure.larger_is_better else -1.0
    all_pairs = tukey(values) if weights is None else np.full((len(names), len(names)), np.nan)
    verdicts = {}
    for column, name in enumerate(names[1:], start=1):
        verdicts[name] = BaselineComparison(
            differences[column - 1],
            corrected[column - 1],
            float(all_pairs[0, column]),
            None if coherence_of is None else coherence_of[column - 1],
            _moved(sign * (values[:, column] - values[:, 0])),
        )
    return verdicts


def _corrected(differences: Sequence[Difference]) -> list[dict[TestName, float]]:
    """Holm's correction of each test over all systems."""
    corrected: list[dict[TestName, float]] = [{} for _ in differences]
    for test in differences[0].p_values:
        adjusted = holm(np.array([difference.p_values[test] for difference in differences]))
        for index, p_value in enumerate(adjusted.tolist()):
            corrected[index][test] = p_value
    return corrected


def _moved(changes: Doubles) -> tuple[int, ...]:
    """Return the queries that gained most, then those that lost most."""
    order = np.argsort(-changes, kind="stable")
    gained = [int(query) for query in order[:_MOVED] if changes[query] > 0]
    lost = [int(query) for query in order[::-1][:_MOVED] if changes[query] < 0]
    return tuple(gained + lost)
