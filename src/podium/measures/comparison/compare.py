"""``compare``: systems on the same queries, with what a careful reader asks of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data import Dataset, Judgments, Rankings, TableSource
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures.comparison.coherence import Coherence, coherences
from podium.measures.comparison.result import Comparison, Curve, Summary, Verdict
from podium.measures.comparison.statistics import (
    TESTS,
    Difference,
    TestName,
    holm,
    mean_interval,
    paired_difference,
    tukey,
)
from podium.measures.conventions import Conventions
from podium.measures.evaluate import Measures, evaluate, measures_of
from podium.measures.evaluation import Evaluation
from podium.measures.inputs import as_system, as_truth, inputs_of
from podium.measures.measure_dict import ByMeasure
from podium.measures.presets import conventions_for, conventions_text
from podium.measures.value import Measure
from podium.registry import unknown_name

_MOST_CUT_OFFS = 20
_MOVED = 5


def compare(
    measures: Measures,
    truth: Judgments | Dataset | TableSource,
    systems: Mapping[str, Rankings | TableSource | ArrayLike],
    *,
    conventions: Conventions | str | None = None,
    test: TestName = "randomisation",
    seed: int = 0,
) -> Comparison:
    """Compare systems with the first of them, the baseline, on the same queries.

    Queries that a convention leaves out for one system are left out for all.

    Args:
        measures: One or several measures.
        truth: Judgments, for systems given as rankings; or a data set, for systems given as a
            score for each of its rows. Judgments and rankings have the forms that ``evaluate``
            takes: objects of Podium, file names, dictionaries, tables or named tuples.
        systems: What each system returned, by its name; the first is the baseline.
        conventions: What to do where tools disagree, as ``evaluate`` takes it.
        test: The test that decides what is called significant; all four are computed.
        seed: Draws the signs of the randomisation test, which is exact for up to 36 queries.

    Example:
        >>> judgments = Judgments.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [2, 1, 1])
        >>> columns = ["q1", "q1", "q2", "q2"], ["a", "b", "a", "c"]
        >>> found = compare(
        ...     "nDCG@2",
        ...     judgments,
        ...     {
        ...         "old": Rankings.from_columns(*columns, [1, 2, 1, 2]),
        ...         "new": Rankings.from_columns(*columns, [2, 1, 2, 1]),
        ...     },
        ... )
        >>> verdict = found.verdicts["nDCG@2"]["new"]
        >>> verdict.difference.wins, verdict.coherence.unanimous
        (2, True)
    """
    if test not in TESTS:
        raise unknown_name("test", test, list(TESTS))
    if len(systems) < 2:
        raise ArgumentError(f"{len(systems)} systems to compare", hint="Give at least two.")
    chosen = conventions_for(measures, conventions)
    # Converted once: several passes follow, and an iterator lasts for one.
    reference = as_truth(truth, next(iter(systems.values())))
    rankings = {name: as_system(reference, system) for name, system in systems.items()}
    wanted = measures_of(measures)
    curve = _cut_offs(wanted)
    names = tuple(systems)
    results = {
        name: evaluate([*wanted, *curve], reference, system, conventions=chosen)
        for name, system in rankings.items()
    }
    keep = _common(results, wanted)
    values = ByMeasure(
        {
            measure: np.column_stack([results[name][measure][keep] for name in names])
            for measure in wanted
        }
    )
    inputs = [inputs_of(reference, system) for system in rankings.values()]
    return Comparison(
        systems=names,
        measures=tuple(wanted),
        query_ids=tuple(results[names[0]].query_ids.filter(keep).to_pylist()),
        left_out=int(np.sum(~keep)),
        values=values,
        summaries=ByMeasure(
            {
                measure: {
                    name: Summary(*mean_interval(table[:, place]))
                    for place, name in enumerate(names)
                }
                for measure, table in values.items()
            }
        ),
        verdicts=ByMeasure(
            {
                measure: _verdicts(names, table, coherences(measure, chosen, inputs, keep), seed)
                for measure, table in values.items()
            }
        ),
        curves={
            name: Curve(
                tuple(int(each.cut_off or 0) for each in curve),
                tuple(float(np.nanmean(results[name][each][keep])) for each in curve),
            )
            for name in names
        }
        if curve
        else {},
        curve_of=repr(curve[0]).rpartition("@")[0] if curve else "",
        conventions=conventions_text(chosen),
        test=test,
    )


def _common(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> NDArray[np.bool_]:
    """Which queries have a value for all systems and measures."""
    columns = [found[measure] for found in results.values() for measure in measures]
    keep = ~np.isnan(np.column_stack(columns)).any(axis=1)
    if not keep.any():
        raise DataError(
            "no query has a value for every system",
            hint="Do the query ids of judgments and runs match?",
        )
    return np.asarray(keep)


def _cut_offs(measures: Sequence[Measure]) -> list[Measure]:
    """The first measure with a cut-off, at every cut-off up to its own or a few more."""
    for measure in measures:
        if measure.cut_off is not None:
            last = max(min(2 * measure.cut_off, _MOST_CUT_OFFS), min(measure.cut_off, 100))
            places = range(1, last + 1) if last <= _MOST_CUT_OFFS else range(5, last + 1, 5)
            return [measure @ place for place in places]
    return []


def _verdicts(
    names: Sequence[str],
    values: NDArray[np.float64],
    tried: list[Coherence] | None,
    seed: int,
) -> dict[str, Verdict]:
    differences = [
        paired_difference(values[:, place], values[:, 0], seed=seed)
        for place in range(1, len(names))
    ]
    corrected = _corrected(differences)
    all_pairs = tukey(values)
    verdicts = {}
    for place, name in enumerate(names[1:], start=1):
        verdicts[name] = Verdict(
            differences[place - 1],
            corrected[place - 1],
            float(all_pairs[0, place]),
            None if tried is None else tried[place - 1],
            _moved(values[:, place] - values[:, 0]),
        )
    return verdicts


def _corrected(differences: Sequence[Difference]) -> list[dict[TestName, float]]:
    """Holm's correction of each test over all systems."""
    corrected: list[dict[TestName, float]] = [{} for _ in differences]
    for test in differences[0].p_values:
        adjusted = holm(np.array([found.p_values[test] for found in differences]))
        for place, p_value in enumerate(adjusted.tolist()):
            corrected[place][test] = p_value
    return corrected


def _moved(changes: Doubles) -> tuple[int, ...]:
    """The queries that gained most, then those that lost most."""
    order = np.argsort(-changes, kind="stable")
    gained = [int(query) for query in order[:_MOVED] if changes[query] > 0]
    lost = [int(query) for query in order[::-1][:_MOVED] if changes[query] < 0]
    return tuple(gained + lost)
