"""The inputs of evaluations: scores, truth and query offsets as arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from podium.data import Dataset, Judgments, Rankings
from podium.data.format_registry import format_of
from podium.data.frames import is_frame
from podium.data.grouping import (
    Grouping,
    Strings,
    checked_offsets,
    group_rows,
    group_sizes,
    ungrouped_rows,
)
from podium.data.ids import match_rows
from podium.data.judged import Joined
from podium.data.preferences import Preferences
from podium.data.query_rows import ordered_columns
from podium.data.sources import TableSource, as_judgments, as_rankings
from podium.errors import ArgumentError, DataError
from podium.kernels import Floats, Ints

# Up to this float64 represents every integer.
_EXACT_INTEGERS = 2**53


@dataclass(frozen=True, eq=False)
class Pairs:
    """Preferences of each query, by the row numbers of the two documents within the query.

    Attributes:
        better: Which row of its query is preferred in each pair, from 0; -1 if it is not ranked.
        worse: Which row the other one is.
        offsets: Where each query's pairs begin, and the number of pairs last.

    Example:
        >>> from podium.measures import evaluate, ppref
        >>> pairs = Pairs([0, 2], [1, 0], offsets=[0, 2])
        >>> evaluate(ppref, pairs, [0.9, 0.2, 0.1], group=[3]).means
        {ppref: 0.5}
    """

    better: Ints
    worse: Ints
    offsets: Ints

    def __post_init__(self) -> None:
        for name in ("better", "worse", "offsets"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.int64))
        checked_offsets(self.offsets, len(self.better))
        if len(self.better) != len(self.worse):
            raise DataError(
                "the arrays of pairs have different lengths", hint="Give both rows of each pair."
            )


@dataclass(frozen=True, eq=False)
class Inputs:
    """Ranked rows and the truth about them, all arrays contiguous and of their final types.

    Attributes:
        query_ids: An id for each query.
        offsets: Where each query's ranked rows begin; a query may have none.
        scores: The scores of the ranked rows: float32, float64, or integers that float64 cannot
            represent.
        labels: The labels of the ranked rows, NaN where not judged; None if the truth is pairs.
        judged_labels: The labels of the judged documents, ranked or not.
        judged_offsets: Where each query's judged documents begin.
        document_ids: The ids of the ranked rows, if known.
        pairs: Preferences, if given.
        others: How many queries of the rankings are not judged, and not here.
        contradicted: How many of those here have ranks in the run that contradict its scores.
    """

    query_ids: Strings
    offsets: Ints
    scores: NDArray[Any]
    labels: Floats | None
    judged_labels: Floats | None
    judged_offsets: Ints
    document_ids: Strings | None
    pairs: Pairs | None
    others: int = 0
    contradicted: int = 0

    @cached_property
    def longest(self) -> int:
        """The number of documents of the longest list, ranked or judged."""
        starts = (self.offsets, self.judged_offsets)
        return max(int(np.diff(each).max(initial=0)) for each in starts)

    def without_results(self) -> Inputs:
        """The same queries and truth, with an empty list for every query."""
        pairs = self.pairs
        if pairs is not None:
            nowhere = np.full(len(pairs.better), -1)
            pairs = Pairs(nowhere, nowhere, pairs.offsets)
        return replace(
            self,
            offsets=fixed(np.zeros_like(self.offsets), self.offsets.dtype),
            scores=self.scores[:0],
            labels=None if self.labels is None else self.labels[:0],
            document_ids=None if self.document_ids is None else self.document_ids[:0],
            pairs=pairs,
        )


def as_truth(
    truth: Judgments | Dataset | Joined | Preferences | TableSource, ranking: Any
) -> Judgments | Dataset | Joined | Preferences:
    """Return judgments, or the data set that a file name stands for if there are plain scores."""
    if isinstance(truth, Judgments | Dataset | Joined | Preferences):
        return truth
    if isinstance(truth, str | os.PathLike) and _are_numbers(ranking):
        data = format_of(truth).read(truth)
        if isinstance(data, Dataset):
            if data.row_order is not None:
                raise DataError(
                    "its queries are not in one piece each, so scores are in another order",
                    path=truth,
                    hint="Sort the file by query, or give its labels, the scores and qid=.",
                )
            return data
        raise ArgumentError(
            f"{os.fspath(truth)} is not a data set, so a list of scores does not fit",
            hint="Give a run: {query: {document: score}}, a table or a file name.",
        )
    return as_judgments(truth)


def as_system(
    truth: Judgments | Dataset | Joined | Preferences, ranking: Any
) -> Rankings | ArrayLike | None:
    """Return rankings to evaluate by judgments or preferences; scores of a data set as they are."""
    if ranking is None or not isinstance(truth, Judgments | Preferences):
        return ranking  # type: ignore[no-any-return]
    return as_rankings(ranking)


def _are_numbers(values: Any) -> bool:
    """Whether values are a list or an array, as scores and labels of rows are."""
    if isinstance(values, Rankings | str | bytes | os.PathLike | Mapping) or is_frame(values):
        return False
    if isinstance(values, Sequence):
        return bool(len(values)) and isinstance(values[0], Real)
    return hasattr(values, "__array__")


def inputs_of(truth: Any, ranking: Any, qid: Any = None, group: ArrayLike | None = None) -> Inputs:
    """Convert the arguments of ``evaluate``, in any of their forms, to arrays."""
    if qid is not None or group is not None:
        return _inputs_of_arrays(truth, ranking, qid, group)
    if truth is None or isinstance(truth, Pairs) or _are_numbers(truth):
        raise ArgumentError(
            "the queries of the rows are unknown",
            hint="Give qid= or group= with labels and scores.",
        )
    truth = as_truth(truth, ranking)
    ranking = as_system(truth, ranking)
    if isinstance(truth, Dataset) and isinstance(ranking, Rankings):
        truth = _judgments_of(truth)
    others = contradicted = 0
    if isinstance(truth, Judgments | Preferences) and isinstance(ranking, Rankings):
        others = _count_others(truth, ranking)
        if ranking.contradicted is not None:
            judged = pc.is_in(ranking.contradicted, value_set=truth.query_ids)
            known = pc.is_in(ranking.contradicted, value_set=ranking.query_ids)
            contradicted = int(pc.sum(pc.and_(judged, known)).as_py())
    if isinstance(truth, Judgments) and isinstance(ranking, Rankings):
        truth = ranking.join(truth)
    if isinstance(truth, Preferences) and isinstance(ranking, Rankings):
        inputs = _inputs_of_preferences(truth, ranking)
        return replace(inputs, others=others, contradicted=contradicted)
    if isinstance(truth, Joined):
        inputs = _inputs(
            truth.query_ids,
            truth.offsets,
            truth.scores,
            truth.labels,
            truth.judged_labels,
            truth.judged_offsets,
            truth.document_ids,
            None,
        )
        return replace(inputs, others=others, contradicted=contradicted)
    if not isinstance(truth, Dataset):
        raise ArgumentError(
            f"cannot evaluate {type(ranking).__name__} by {type(truth).__name__}",
            hint="Give judgments and rankings, or a data set and scores.",
        )
    if ranking is None:
        raise ArgumentError("there are no scores", hint="Give one for each row of the data set.")
    grouping = Grouping(truth.query_ids, truth.offsets, None)
    return grouped_inputs(grouping, truth.labels, ranking, truth.document_ids)


def _inputs_of_arrays(truth: Any, scores: Any, qid: Any, group: ArrayLike | None) -> Inputs:
    """Arrays with a value for each row, or pairs of rows, in queries that the caller gives."""
    if isinstance(truth, Judgments | Dataset | Joined | Preferences | Mapping | str | os.PathLike):
        raise ArgumentError(
            f"qid= and group= are for arrays, and {type(truth).__name__} has queries of its own",
            hint="Leave them out.",
        )
    if truth is None or scores is None:
        raise ArgumentError(
            "there is nothing to evaluate", hint="Give a label and a score for each row."
        )
    if (qid is None) == (group is None):
        raise ungrouped_rows(qid)
    grouping = (
        group_rows(qid) if group is None else group_sizes(group, len(np.asarray(scores)), None)
    )
    if not isinstance(truth, Pairs):
        return grouped_inputs(grouping, truth, scores)
    if grouping.order is not None:
        raise DataError("rows of a query are apart", hint="Give pairs with group=.")
    offsets = grouping.offsets
    return _inputs(grouping.query_ids, offsets, scores, None, None, offsets, None, truth)


def grouped_inputs(
    grouping: Grouping, labels: ArrayLike, scores: ArrayLike, document_ids: Strings | None = None
) -> Inputs:
    """Labels and scores of rows whose queries are known."""
    columns = {"scores": _numbers(scores, "scores"), "labels": _numbers(labels, "labels")}
    columns = ordered_columns(grouping, columns)
    offsets, ordered = grouping.offsets, columns["labels"]
    return _inputs(
        grouping.query_ids,
        offsets,
        columns["scores"],
        ordered,
        ordered,
        offsets,
        document_ids,
        None,
    )


def _count_others(judgments: Judgments | Preferences, rankings: Rankings) -> int:
    """Count the queries that are not judged; refuse rankings that have no other ones.

    Means of 0 would hide that ids differ.
    """
    known = pc.is_in(rankings.query_ids, value_set=judgments.query_ids)
    count = int(pc.sum(known).as_py() or 0)
    if not count and len(judgments.query_ids) and len(rankings.query_ids):
        raise DataError(
            f"none of the {len(rankings.query_ids)} queries of the rankings is judged: "
            f"the first is {rankings.query_ids[0].as_py()!r}, and that of the judgments "
            f"{judgments.query_ids[0].as_py()!r}",
            hint="Compare the query ids of both.",
        )
    return len(rankings.query_ids) - count


def _judgments_of(data: Dataset) -> Judgments:
    if data.document_ids is None:
        raise ArgumentError(
            "the data set has no document ids to find the rankings' documents by",
            hint="Give a score for each row of the data set.",
        )
    return Judgments.from_columns(data.query_id_of_row(), data.document_ids, data.labels)


def _inputs_of_preferences(preferences: Preferences, rankings: Rankings) -> Inputs:
    """Look up the documents of each pair in their query's list; ties are ignored."""
    strict = preferences.verdicts != 0
    sizes = np.bincount(preferences.query_of_row[strict], minlength=len(preferences))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    nothing = Judgments(
        query_ids=preferences.query_ids,
        offsets=preferences.offsets,
        document_ids=preferences.left,
        labels=np.zeros(preferences.rows, np.float32),
    )
    joined = rankings.join(nothing)  # for its rows: those of the judged queries, in their order
    rows = []
    for documents in (preferences.left, preferences.right):
        compared = documents.filter(pa.array(strict))
        matches = match_rows(compared, starts, joined.document_ids, joined.offsets)
        rows.append(np.where(matches < 0, -1, matches - np.repeat(joined.offsets[:-1], sizes)))
    left, right = rows
    first = preferences.verdicts[strict] > 0
    pairs = Pairs(np.where(first, left, right), np.where(first, right, left), starts)
    return _inputs(
        joined.query_ids,
        joined.offsets,
        joined.scores,
        None,
        None,
        joined.offsets,
        joined.document_ids,
        pairs,
    )


def _inputs(
    query_ids: Strings,
    offsets: Ints,
    scores: ArrayLike,
    labels: Floats | None,
    judged_labels: Floats | None,
    judged_offsets: Ints,
    document_ids: Strings | None,
    pairs: Pairs | None,
) -> Inputs:
    """Check that all parts fit, and give arrays their final types."""
    values = _numbers(scores, "scores")
    rows = int(offsets[-1])
    for name, column in (("scores", values), ("labels", labels), ("document ids", document_ids)):
        if column is not None and len(column) != rows:
            raise DataError(f"{len(column)} {name} for {rows} rows", hint="Give one for each row.")
    if pairs is not None:
        _check_pairs(pairs, offsets)
    ranked = _single(labels)
    return Inputs(
        query_ids=query_ids,
        offsets=fixed(offsets, np.dtype(np.int64)),
        scores=fixed(values, _score_type(values)),
        labels=ranked,
        judged_labels=ranked if judged_labels is labels else _single(judged_labels),
        judged_offsets=fixed(judged_offsets, np.dtype(np.int64)),
        document_ids=document_ids,
        pairs=pairs,
    )


def _single(labels: Floats | None) -> Floats | None:
    return None if labels is None else fixed(labels, np.dtype(np.float32))


def _score_type(scores: NDArray[Any]) -> np.dtype[Any]:
    """Return a float type if it keeps all scores distinct, else the scores' own type."""
    if scores.dtype.kind in "iu" and len(scores):
        largest = max(abs(int(scores.max())), abs(int(scores.min())))
        return scores.dtype if largest > _EXACT_INTEGERS else np.dtype(np.float64)
    return scores.dtype if scores.dtype in (np.float32, np.float64) else np.dtype(np.float64)


def comparable_scores(
    scores: NDArray[Any], precision: Literal["float64", "float32"]
) -> NDArray[np.floating]:
    """Convert scores to floats to compare, in the precision that conventions ask for.

    Integers beyond float64 are replaced with their ranks, which keeps their order and ties.
    """
    if precision == "float32":
        return fixed(scores, np.dtype(np.float32))
    if scores.dtype.kind in "iu":
        ranks: NDArray[Any] = np.unique(scores, return_inverse=True)[1]
        return fixed(ranks, np.dtype(np.float64))
    return scores


def fixed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a contiguous read-only array, so that kernels compile for one type only."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite, as in trec_eval
        array = np.ascontiguousarray(values, dtype).view()
    array.flags.writeable = False
    return array


def _numbers(values: ArrayLike, what: str) -> NDArray[Any]:
    if np.ma.is_masked(values):  # a masked value is a number still, which would count
        raise DataError(f"some {what} are masked", hint="Leave those rows out, or fill them in.")
    array: NDArray[Any] = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.float64)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise DataError(f"{what} are not a list of numbers", hint="Give one for each row.")
    return array


def _check_pairs(pairs: Pairs, offsets: Ints) -> None:
    if len(pairs.offsets) != len(offsets):
        raise DataError(
            f"pairs of {len(pairs.offsets) - 1} queries for {len(offsets) - 1} queries",
            hint="Give each query an entry in pairs.offsets, without pairs too.",
        )
    sizes = np.repeat(np.diff(offsets), np.diff(pairs.offsets))
    for rows in (pairs.better, pairs.worse):
        if np.any(rows < -1) or np.any(rows >= sizes):
            raise DataError(
                "a pair is outside of its query", hint="Count rows from 0 in each query."
            )
