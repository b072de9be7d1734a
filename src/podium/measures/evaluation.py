"""The result of an evaluation: a value for each measure, by any of its names, and query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa

from podium.data.frames import html_table, pandas_frame
from podium.data.grouping import Strings
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures.conventions import Conventions
from podium.measures.coverage import RunCoverage
from podium.measures.names import is_ir_measure, parse_measure
from podium.measures.registry import Aggregate, Measure, definition_of


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The values of measures, query by query.

    Attributes:
        query_ids: The queries.
        values: For each measure, by any of its names, a value for each query; NaN where the
            conventions leave it out.
        conventions: What the values follow.
        query_weights: The weight of each query in the means; None if all count equally.
        coverage: How much of the judgments the rankings answer, and how much of them is judged.

    Example:
        >>> from podium.measures import evaluate
        >>> result = evaluate(
        ...     ["nDCG@3", "RR"], [0, 2, 1, 1, 0], [5, 4, 3, 2, 1], group=[3, 2]
        ... )
        >>> result
        Evaluation(2 queries, nDCG@3=0.8295, RR=0.75)
        >>> result["recip_rank"].tolist()
        [0.5, 1.0]
    """

    query_ids: Strings
    values: ByMeasure[Doubles]
    conventions: Conventions
    query_weights: Doubles | None = None
    coverage: RunCoverage | None = None

    def __len__(self) -> int:
        return len(self.query_ids)

    def __getitem__(self, measure: Measure | str) -> Doubles:
        """Return the values of one measure."""
        parsed = parse_measure(measure)
        if parsed not in self.values:
            known = ", ".join(map(repr, self.values))
            raise ArgumentError(f"{parsed!r} was not evaluated", hint=f"There are: {known}.")
        return self.values[parsed]

    @cached_property
    def means(self) -> ByMeasure[float]:
        """The mean of each measure, by any of its names, over the queries that have a value.

        Weighted if queries have weights. Counts such as ``NumRet`` are added up instead, and
        ``GMAP`` has the geometric mean. NaN if no query has a value and a weight above 0.
        """
        return ByMeasure(
            {
                measure: _aggregate(values, definition_of(measure).aggregate, self.query_weights)
                for measure, values in self.values.items()
            }
        )

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row per query and a column per measure; null: no value.

        The last column is the weight, if queries have weights.
        """
        columns = {
            repr(each): pa.array(values, from_pandas=True) for each, values in self.values.items()
        }
        if self.query_weights is not None:
            columns["weight"] = pa.array(self.query_weights)
        return pa.table({"query_id": self.query_ids, **columns})

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per query and a column per measure.

        Example:
            >>> from podium.measures import evaluate
            >>> evaluate("RR", {"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}).to_frame()
              query_id   RR
            0        q  0.5
        """
        return pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_table(self.to_arrow(), caption=repr(self))

    def __repr__(self) -> str:
        means = [f"{measure!r}={round(mean, 4):g}" for measure, mean in self.means.items()]
        return f"Evaluation({', '.join([f'{len(self)} queries', *means])})"


def concat_evaluations(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Concatenate evaluations of different queries, for instance those of a stream's blocks.

    Example:
        >>> from podium.measures import evaluate
        >>> blocks = [([0, 1], ["a", "a"]), ([1, 0], ["b", "b"])]
        >>> parts = [
        ...     evaluate("RR", labels, [2, 1], qid=ids)
        ...     for labels, ids in blocks
        ... ]
        >>> concat_evaluations(parts)
        Evaluation(2 queries, RR=0.75)
    """
    if not evaluations:
        raise DataError("nothing to concatenate", hint="Give at least one evaluation.")
    one = evaluations[0]
    for other in evaluations:
        if other.values.keys() != one.values.keys() or other.conventions != one.conventions:
            raise DataError(
                "the evaluations are of different measures or conventions",
                hint="Evaluate all blocks with the same measures and conventions.",
            )
    values = ByMeasure(
        {
            measure: np.concatenate([each.values[measure] for each in evaluations])
            for measure in one.values
        }
    )
    ids = pa.concat_arrays([each.query_ids for each in evaluations])
    weights = None
    if any(each.query_weights is not None for each in evaluations):
        every = [
            np.ones(len(each)) if each.query_weights is None else each.query_weights
            for each in evaluations
        ]
        weights = np.concatenate(every)
    parts = [each.coverage for each in evaluations if each.coverage is not None]
    coverage = reduce(add, parts) if len(parts) == len(evaluations) else None
    return Evaluation(ids, values, one.conventions, weights, coverage)


# trec_eval's least value in a geometric mean, which one query of 0 would make 0.
_LEAST = 1e-5


def _aggregate(values: Doubles, how: Aggregate, weights: Doubles | None) -> float:
    known = ~np.isnan(values)
    if weights is not None:
        known &= weights > 0
        weights = weights[known]
    values = values[known]
    if not len(values):
        return float("nan")
    if how == "sum":
        return float(values.sum() if weights is None else values @ weights)
    if how == "geometric mean":
        return float(np.exp(np.average(np.log(np.maximum(values, _LEAST)), weights=weights)))
    return float(values.mean() if weights is None else np.average(values, weights=weights))


_Value = TypeVar("_Value")
_Other = TypeVar("_Other")


class ByMeasure(dict[Measure, _Value]):
    """A dictionary keyed by measure that also takes any of a measure's names.

    Example:
        >>> from podium.measures import evaluate, nDCG
        >>> means = evaluate("nDCG@10", [1, 0], [2, 1], group=[2]).means
        >>> means[nDCG@10], means["nDCG@10"], means["ndcg_cut_10"], "AP" in means
        (1.0, 1.0, 1.0, False)
    """

    def __getitem__(self, measure: Measure | str) -> _Value:
        parsed = _measure(measure)
        if parsed is None or not super().__contains__(parsed):
            raise KeyError(f"{measure!r} is not among: {', '.join(map(repr, self))}")
        return super().__getitem__(parsed)

    def __contains__(self, measure: object) -> bool:
        parsed = _measure(measure)
        return parsed is not None and super().__contains__(parsed)

    def copy(self) -> ByMeasure[_Value]:
        """Return a shallow copy."""
        return ByMeasure(self)

    @overload
    def get(self, measure: Measure | str, default: None = None) -> _Value | None: ...
    @overload
    def get(self, measure: Measure | str, default: _Other) -> _Value | _Other: ...
    def get(self, measure: Measure | str, default: Any = None) -> Any:
        """Return the value of a measure, or the default."""
        try:
            return self[measure]
        except KeyError:
            return default


def _measure(key: object) -> Measure | None:
    """Return the measure that a key stands for, or None."""
    if isinstance(key, str) or is_ir_measure(key):
        try:
            return parse_measure(str(key))
        except ArgumentError:
            return None
    return key if isinstance(key, Measure) else None
