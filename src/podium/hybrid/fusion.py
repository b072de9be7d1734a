"""Fusion of result lists into one score, by the formulas of OpenSearch's search pipelines.

Scores are rounded to single precision at the same steps as in OpenSearch 3
(``normalization-processor`` and ``score-ranker-processor``), so that ties are ties there too.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.aggregation import stack_runs
from podium.data import Rankings
from podium.data.files import open_write, read_bounded
from podium.data.grouping import checked_offsets
from podium.data.numbers import as_numbers
from podium.data.sources import TableSource, as_rankings
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats, Ints, inner, kernel
from podium.registry import unknown_name
from podium.threads import for_each_query

Normalization: TypeAlias = Literal["min-max", "l2", "z-score", "rank", "none"]
"""How the scores of a list become comparable with those of others."""

Combination: TypeAlias = Literal["arithmetic", "geometric", "harmonic", "rrf"]
"""How the normalized scores of a document become one."""

NORMALIZATIONS: tuple[Normalization, ...] = get_args(Normalization)
COMBINATIONS: tuple[Combination, ...] = get_args(Combination)

MOST_LISTS = 50
_MOST_FEATURES = 100
_LONGEST_NAME = 200
_MOST_BYTES = 1 << 20
_LARGEST = 10_000
"""OpenSearch's largest rank constant, and the most documents that it fuses."""

_LOWEST = np.float32(0.001)
"""What a list's lowest document gets instead of 0, which is that of a document not in the list."""
_TINY = np.float32(1.4e-45)
"""Java's Float.MIN_VALUE: OpenSearch begins its search for the largest score there."""


@dataclass(frozen=True)
class QueryWeights:
    """Weights that depend on the query: ``max(0, weights + coefficients @ features)``.

    A feature's value is ``(value - mean) / scale``; a missing one counts as the mean. A query for
    which no weight is above 0 has the fixed weights.

    Attributes:
        features: The names of the query features.
        means: The mean of each in training.
        scales: The standard deviation of each in training.
        coefficients: For each list, a coefficient for each feature.
    """

    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        _check_names("features", self.features, _MOST_FEATURES)
        for name in ("means", "scales"):
            _numbers(name, getattr(self, name), len(self.features), "feature")
        if min(self.scales) <= 0:
            raise ArgumentError("a scale is not above 0", hint="Give standard deviations.")
        for row in self.coefficients:
            _numbers("coefficients", row, len(self.features), "feature")

    def weights(self, fixed: Sequence[float], features: ArrayLike) -> Doubles:
        """Return the weights of each query, which sum to 1: a row for each row of features."""
        values = as_numbers(features, np.float64, "query features", dimensions=2)
        if values.shape[1] != len(self.features):
            raise DataError(
                f"there are {values.shape[1]} query features, not {len(self.features)}",
                hint=f"Give {', '.join(self.features)}.",
            )
        scaled = (values - np.array(self.means)) / np.array(self.scales)
        scaled[~np.isfinite(scaled)] = 0.0
        weights = np.maximum(0.0, np.array(fixed) + scaled @ np.array(self.coefficients).T)
        weights[weights.sum(axis=1) <= 0] = fixed
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Fusion:
    """How several result lists of a query become one.

    - Normalization, within each list of a query: ``"min-max"`` (to 0.001..1; a single document,
      or equal scores, get 1), ``"l2"`` (divided by the norm of the list), ``"z-score"``, ``"rank"``
      (``1 / (rank_constant + rank)``), or ``"none"``.
    - Combination, over the lists of a document: weighted ``"arithmetic"``, ``"geometric"`` or
      ``"harmonic"`` mean, or ``"rrf"``: the weighted sum of reciprocal ranks. A document that is
      not in a list has 0 there; geometric and harmonic means leave zeros out.

    Args:
        lists: The names of the lists.
        normalization: How scores become comparable; ``"rank"`` with ``"rrf"``.
        combination: How they become one.
        weights: One for each list, at least 0; they are divided by their sum. Equal by default.
        rank_constant: The constant of ``"rank"``.
        depth: How many documents of each list count; all by default.
        columns: Which of the lists are numbers of the documents themselves, such as a margin: they
            are of all documents that any list returned.
        per_query: Weights that depend on the query, instead of the fixed ones.

    Example:
        >>> fusion = Fusion(("bm25", "dense"), weights=(1, 3))
        >>> fusion.weights
        (0.25, 0.75)
        >>> nan = float("nan")
        >>> fuse([[12.0, nan], [10.0, 0.9], [8.0, 0.8]], [0, 3], fusion).round(4).tolist()
        [0.25, 0.875, 0.001]
    """

    lists: tuple[str, ...]
    normalization: Normalization = "min-max"
    combination: Combination = "arithmetic"
    weights: tuple[float, ...] = ()
    rank_constant: int = 60
    depth: int | None = None
    columns: tuple[str, ...] = ()
    per_query: QueryWeights | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.normalization not in NORMALIZATIONS:
            raise unknown_name("normalization", str(self.normalization), NORMALIZATIONS)
        if self.combination not in COMBINATIONS:
            raise unknown_name("combination", str(self.combination), COMBINATIONS)
        if self.combination == "rrf" and self.normalization != "rank":
            raise ArgumentError(
                f"rrf is a sum of ranks, and normalization is {self.normalization!r}",
                hint="Give normalization='rank'.",
            )
        object.__setattr__(self, "lists", tuple(self.lists))
        _check_names("lists", self.lists, MOST_LISTS)
        object.__setattr__(self, "columns", tuple(self.columns))
        if not set(self.columns) < set(self.lists):
            raise ArgumentError(
                f"columns are {self.columns}", hint="Name some of the lists, but not all."
            )
        count = len(self.lists)
        weights = tuple(self.weights) or (1.0,) * count
        _numbers("weights", weights, count, "list")
        total = sum(weights)
        if min(weights) < 0 or not 0 < total < np.inf:
            raise ArgumentError(
                f"weights are {weights}", hint="Give numbers of at least 0, not all of them 0."
            )
        object.__setattr__(self, "weights", tuple(float(each) / total for each in weights))
        _check_count("rank_constant", self.rank_constant)
        if self.depth is not None:
            _check_count("depth", self.depth)
        if self.per_query is not None and len(self.per_query.coefficients) != count:
            raise ArgumentError(
                "coefficients are not one row for each list", hint=f"Give {count} rows."
            )

    def __str__(self) -> str:
        """Return the fusion in a line."""
        weights = ", ".join(
            f"{name} {weight:.3g}" for name, weight in zip(self.lists, self.weights, strict=True)
        )
        how = (
            f"RRF {self.rank_constant}"
            if self.combination == "rrf"
            else f"{self.combination} mean of {self.normalization}"
        )
        depth = "" if self.depth is None else f", depth {self.depth}"
        return f"{how}: {weights}{depth}"

    def rank(
        self,
        runs: Mapping[str, Rankings | TableSource],
        *,
        columns: Mapping[str, Mapping[str, float]] | None = None,
        query_features: Mapping[str, Sequence[float]] | None = None,
        name: str = "hybrid",
    ) -> Rankings:
        """Fuse runs by the names of the lists.

        Args:
            runs: A run for each list.
            columns: For each column, the number of each document, by its id.
            query_features: For weights per query: the features of each query, by its id, in the
                order of ``per_query.features``. A query without them has the fixed weights.
            name: The new run's name.
        """
        known: Mapping[str, object] = {**runs, **(columns or {})}
        missing = [each for each in self.lists if each not in known]
        if missing:
            raise DataError(
                f"there is no list {missing[0]!r}", hint=f"Give {', '.join(self.lists)}."
            )
        lists = [each for each in self.lists if each not in self.columns]
        stacked = stack_runs([as_rankings(runs[each]) for each in lists])
        documents = stacked.document_ids.to_pylist() if self.columns else []
        votes = np.empty((len(stacked.votes), len(self.lists)))
        for at, vote in enumerate(self.lists):
            if vote in self.columns:
                values = (columns or {})[vote]
                votes[:, at] = [values.get(each, np.nan) for each in documents]
            else:
                votes[:, at] = stacked.votes[:, lists.index(vote)]
        weights = None
        if self.per_query is not None:
            count = len(self.per_query.features)
            empty, features = (np.nan,) * count, query_features or {}
            rows = [features.get(query, empty) for query in stacked.query_ids.to_pylist()]
            weights = self.per_query.weights(self.weights, np.reshape(rows, (len(rows), count)))
        scores = fuse(votes, stacked.offsets, self, query_weights=weights)
        return stacked.rankings(scores, name=name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion as a TOML file that people can read."""
        with open_write(path, compress=False) as write:
            write(self.to_toml().encode())

    def to_toml(self) -> str:
        """Return the text that ``save`` writes."""
        lines = [
            f"# {self}",
            "version = 1",
            f"lists = {_toml(self.lists)}",
            f"normalization = {_toml(self.normalization)}",
            f"combination = {_toml(self.combination)}",
            f"weights = {_toml(self.weights)}",
            f"rank_constant = {self.rank_constant}",
        ]
        if self.depth is not None:
            lines.append(f"depth = {self.depth}")
        if self.columns:
            lines.append(f"columns = {_toml(self.columns)}")
        if self.per_query is not None:
            lines.append("\n[per_query]")
            lines += [f"{key} = {_toml(value)}" for key, value in vars(self.per_query).items()]
        return "\n".join([*lines, ""])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fusion that ``save`` wrote, or a person."""
        file = Path(path)
        try:
            return cls.from_toml(read_bounded(file, _MOST_BYTES).decode("utf-8-sig"))
        except UnicodeError as error:
            raise DataError("is not UTF-8 text", path=file, hint=_WRITTEN_BY) from error
        except (ArgumentError, DataError) as error:
            raise DataError(error.problem, path=file, hint=error.hint) from error

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Return the fusion of a text that ``to_toml`` returned, or a person wrote."""
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"is not TOML ({error})", hint=_WRITTEN_BY) from error
        if table.pop("version", None) != 1:
            raise ArgumentError("it is not a fusion of version 1", hint=_WRITTEN_BY)
        per_query = table.pop("per_query", None)
        if per_query is not None:
            _check_types(per_query, _QUERY_TYPES, list(_QUERY_TYPES))
            rows = tuple(tuple(row) for row in per_query.pop("coefficients"))
            values = {key: tuple(value) for key, value in per_query.items()}
            per_query = QueryWeights(**values, coefficients=rows)
        _check_types(table, _TYPES, ("lists",))
        members: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        return cls(**members, per_query=per_query)


_WRITTEN_BY = "Write it with podium hybrid tune, or as docs/reference/hybrid.md shows."

_TYPES: dict[str, tuple[type, type | None]] = {
    "lists": (list, str),
    "normalization": (str, None),
    "combination": (str, None),
    "weights": (list, float),
    "rank_constant": (int, None),
    "depth": (int, None),
    "columns": (list, str),
}
_QUERY_TYPES: dict[str, tuple[type, type | None]] = {
    "features": (list, str),
    "means": (list, float),
    "scales": (list, float),
    "coefficients": (list, list),
}


def _check_types(
    table: Any,
    types: Mapping[str, tuple[type, type | None]],
    required: Sequence[str],
) -> None:
    if not isinstance(table, dict):
        raise ArgumentError("per_query is not a table", hint="Write [per_query].")
    for key in table:
        if key not in types:
            raise unknown_name("key", key[:50], list(types))
    for key in required:
        if key not in table:
            raise ArgumentError(f"there is no {key}", hint="Add it.")
    for key, value in table.items():
        outer, item = types[key]
        items = value if isinstance(value, list) else [value]
        kinds = (int, float) if item is float else (item or outer,)
        if not isinstance(value, outer) or not all(
            isinstance(each, kinds) and not isinstance(each, bool) for each in items
        ):
            what = outer.__name__ if item is None else f"list of {item.__name__}"
            raise ArgumentError(f"{key} is not a {what}", hint="Correct it.")


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _check_names(what: str, names: Sequence[str], most: int) -> None:
    if not 1 <= len(names) <= most:
        raise ArgumentError(f"there are {len(names)} {what}", hint=f"Give 1 to {most}.")
    for name in names:
        if (
            not isinstance(name, str)
            or not 0 < len(name) <= _LONGEST_NAME
            or not name.isprintable()
        ):
            raise ArgumentError(
                f"a name in {what} is {str(name)[:50]!r}",
                hint=f"Give printable names of 1 to {_LONGEST_NAME} characters.",
            )
    if len(set(names)) < len(names):
        raise ArgumentError(f"a name appears twice in {what}", hint="Rename one.")


def _numbers(what: str, values: Sequence[float], count: int, each: str) -> None:
    try:
        array = np.asarray(values, np.float64)
        valid = array.shape == (count,) and bool(np.isfinite(array).all())
    except (TypeError, ValueError, OverflowError):
        valid = False
    if not valid:
        raise ArgumentError(
            f"{what} are not {count} finite numbers", hint=f"Give one for each {each}."
        )


def _check_count(name: str, value: Any) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= _LARGEST:
        raise ArgumentError(f"{name} is {value!r}", hint=f"Give an integer from 1 to {_LARGEST}.")


def fuse(
    votes: ArrayLike,
    offsets: ArrayLike,
    fusion: Fusion,
    *,
    query_weights: ArrayLike | None = None,
) -> Doubles:
    """Score the documents of each query by a fusion of their lists.

    Documents that a list ties have the order of the rows in it.

    Args:
        votes: A row for each document and a column for each list, NaN where the list did not
            return it: ``stack_runs(...).votes``.
        offsets: Where each query's rows begin, and the number of rows last.
        fusion: How.
        query_weights: A row of weights for each query, instead of those of the fusion.

    Returns:
        A score for each row; larger is better.

    Example:
        >>> nan = float("nan")
        >>> fuse([[3, 9], [2, nan]], [0, 2], Fusion(("a", "b"), "rank", "rrf")).round(5).tolist()
        [0.01639, 0.00806]
    """
    return _fused(votes, offsets, fusion, query_weights, combined=True)[:, 0]


def normalize(votes: ArrayLike, offsets: ArrayLike, fusion: Fusion) -> Doubles:
    """Return the normalized score of each document in each list; 0 where it is not in the list.

    Example:
        >>> nan = float("nan")
        >>> normalize([[3, 9], [2, nan]], [0, 2], Fusion(("a", "b"))).round(3).tolist()
        [[1.0, 1.0], [0.001, 0.0]]
    """
    return _fused(votes, offsets, fusion, None, combined=False)


def _fused(
    votes: ArrayLike,
    offsets: ArrayLike,
    fusion: Fusion,
    query_weights: ArrayLike | None,
    *,
    combined: bool,
) -> Doubles:
    single = isinstance(votes, np.ndarray) and votes.dtype == np.float32
    table = as_numbers(votes, np.float32 if single else np.float64, "votes", dimensions=2)
    count = len(fusion.lists)
    if table.shape[1] != count:
        raise DataError(
            f"votes have {table.shape[1]} columns",
            hint=f"Give {count}: {', '.join(fusion.lists)}.",
        )
    starts = checked_offsets(offsets, len(table))
    weights = np.array([fusion.weights], np.float32)
    if query_weights is not None:
        weights = as_numbers(query_weights, np.float32, "query_weights", dimensions=2)
        valid = np.isfinite(weights).all() and (weights >= 0).all()
        if weights.shape != (len(starts) - 1, count) or not valid:
            raise DataError(
                "query_weights are not numbers of at least 0, a row for each query",
                hint="Give one for each list.",
            )
    depths = np.full(count, fusion.depth or 0)
    depths[[name in fusion.columns for name in fusion.lists]] = 0
    scores = np.empty((len(table), 1 if combined else count))
    bad = np.zeros(1, np.int64)
    for_each_query(
        lambda first, last: _fuse_queries(
            table, starts, np.ascontiguousarray(weights),
            NORMALIZATIONS.index(fusion.normalization),
            COMBINATIONS.index(fusion.combination) if combined else -1,
            fusion.rank_constant, depths, scores, bad, first, last,
        ),
        starts,
    )  # fmt: skip
    if bad[0]:
        raise DataError(
            "a score is infinite, or too large for single precision (above 3.4e38)",
            hint="Give NaN for documents a list left out, and scale huge scores.",
        )
    return scores


@kernel
def _fuse_queries(
    votes: NDArray[np.floating[Any]],
    offsets: Ints,
    weights: Floats,
    normalization: int,
    combination: int,
    rank_constant: int,
    depths: Ints,
    scores: Doubles,
    bad: Ints,
    first: int,
    last: int,
) -> None:
    """Normalize and combine the lists of a range of queries; without combination, normalize."""
    most = 0
    for query in range(first, last):
        most = max(most, offsets[query + 1] - offsets[query])
    lists = votes.shape[1]
    normalized = np.empty((most, lists), np.float32)
    values = np.empty(most, np.float32)
    rows = np.empty(most, np.int64)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        for column in range(lists):
            count, depth = 0, depths[column]
            for row in range(begin, end):
                normalized[row - begin, column] = 0.0
                score = np.float32(votes[row, column])
                if score == score:  # not NaN
                    if not np.isfinite(score):
                        bad[0] = 1
                        return
                    values[count] = score
                    rows[count] = row - begin
                    count += 1
            if count == 0:
                continue
            if normalization in (1, 2, 3) or 0 < depth < count:
                # Best first; the engine adds up in this order.
                order = np.argsort(-values[:count], kind="mergesort")
                values[:count] = values[:count][order]
                rows[:count] = rows[:count][order]
                if 0 < depth < count:
                    count = depth
            _normalize(values[:count], normalization, rank_constant)
            for at in range(count):
                normalized[rows[at], column] = values[at]
        weight = weights[query if len(weights) > 1 else 0]
        for row in range(begin, end):
            if combination < 0:
                for column in range(lists):
                    scores[row, column] = normalized[row - begin, column]
            else:
                scores[row, 0] = _combine(
                    normalized[row - begin], weight, combination, normalization
                )


@inner
def _normalize(values: Floats, normalization: int, rank_constant: int) -> None:
    """Normalize the scores of a list in place."""
    count = len(values)
    if normalization == 0:
        low, high = np.float32(3.4028235e38), _TINY
        for at in range(count):
            low, high = min(low, values[at]), max(high, values[at])
        for at in range(count):
            if high == low:
                values[at] = np.float32(1.0)
            else:
                values[at] = (values[at] - low) / (high - low)
                if values[at] == 0:
                    values[at] = _LOWEST
    elif normalization == 1:
        squares = np.float32(0.0)
        for at in range(count):
            squares += values[at] * values[at]
        norm = np.float32(np.sqrt(np.float64(squares)))
        for at in range(count):
            values[at] = np.float32(0.0) if norm == 0 else values[at] / norm
    elif normalization == 2:
        _standardize(values)
    elif normalization == 3:
        for at in range(count):
            divisor = rank_constant + at + 1
            # Ten decimals, rounded half up.
            tenth = (20_000_000_000 + divisor) // (2 * divisor)
            values[at] = np.float32(tenth / 1e10)


@inner
def _standardize(values: Floats) -> None:
    """Standardize by the mean and the sample's standard deviation, computed in two passes.

    As in the engine, a score that equals the mean becomes the list's largest score, unscaled.
    """
    count = len(values)
    high, low = values[0], values[count - 1]
    total = 0.0
    for at in range(count):
        total += np.float64(values[at])
    mean = total / count
    rest = 0.0
    for at in range(count):
        rest += np.float64(values[at]) - mean
    mean += rest / count
    squares = rest = 0.0
    for at in range(count):
        deviation = np.float64(values[at]) - mean
        squares += deviation * deviation
        rest += deviation
    variance = 0.0 if count == 1 else (squares - rest * rest / count) / (count - 1)
    center, deviation_ = np.float32(mean), np.float32(np.sqrt(variance))
    for at in range(count):
        if values[at] == center:
            values[at] = high
        elif deviation_ == 0:
            values[at] = low
        else:
            values[at] = (values[at] - center) / deviation_
            if values[at] <= 0:
                values[at] = _LOWEST


@inner
def _combine(values: Floats, weights: Floats, combination: int, normalization: int) -> float:
    """Combine the normalized scores of a document."""
    weight_sum, total = np.float32(0.0), np.float32(0.0)
    for at in range(len(values)):
        value, weight = values[at], weights[at]
        if combination == 0 or combination == 3:
            # Scores that are not normalized may be negative; the engine leaves out what is.
            if value >= 0 or normalization == 4:
                total += value * weight
                weight_sum += weight
        elif value > 0:
            weight_sum += weight
            if combination == 1:
                total = np.float32(
                    np.float64(total) + np.float64(weight) * np.log(np.float64(value))
                )
            else:
                total += weight / value
    if combination == 3:
        return np.float64(total)
    if weight_sum == 0:
        return 0.0
    if combination == 0:
        return np.float64(total / weight_sum)
    if combination == 1:
        return np.float64(np.float32(np.exp(np.float64(total / weight_sum))))
    return np.float64(weight_sum / total) if total > 0 else 0.0
