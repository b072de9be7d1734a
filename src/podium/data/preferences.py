"""Preferences between documents: pairs, and trec_eval's levels within groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from podium.data.grouping import Strings, as_strings, group_rows
from podium.data.judged import finite
from podium.data.query_rows import QueryRows, ordered_columns
from podium.errors import DataError
from podium.kernels import Doubles


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Preferences(QueryRows):
    """Judged pairs of documents; a pair may be judged many times, one row per verdict.

    Attributes:
        left: The document shown on the left.
        right: The document shown on the right.
        verdicts: int8, 1 where left is preferred, -1 where right is, 0 for a tie.

    Example:
        >>> Preferences.from_columns(["q", "q"], ["a", "b"], ["b", "c"], [1, 0]).verdicts.tolist()
        [1, 0]
    """

    ROW_FIELDS: ClassVar = ("left", "right", "verdicts")

    left: Strings
    right: Strings
    verdicts: NDArray[np.int8]

    @classmethod
    def from_columns(
        cls, query_ids: Any, left: Any, right: Any, verdicts: ArrayLike
    ) -> Preferences:
        """Create preferences from four columns, rows in any order."""
        values = np.asarray(verdicts)
        if values.ndim != 1 or not np.isin(values, (-1, 0, 1)).all():
            raise DataError("a verdict is not -1, 0 or 1", hint="1: left, -1: right, 0: tie.")
        grouping = group_rows(query_ids)
        columns = {
            "left": _complete(left, "left documents"),
            "right": _complete(right, "right documents"),
            "verdicts": values.astype(np.int8),
        }
        columns = ordered_columns(grouping, columns)
        same = np.asarray(pa.compute.equal(columns["left"], columns["right"]))
        if same.any():
            name = columns["left"][int(np.argmax(same))].as_py()
            raise DataError(
                f"document {name!r} is compared with itself",
                hint="Give two different documents per row.",
            )
        return cls(query_ids=grouping.query_ids, offsets=grouping.offsets, **columns)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PreferenceLevels(QueryRows):
    """trec_eval's preferences: within a subgroup of a group, a higher level is preferred.

    Documents of different subgroups are not compared; a group is one assessor's view of a query.

    Attributes:
        groups: The judgment group (trec_eval's ``ujg``) of each row.
        subgroups: Its subgroup (``ujsubg``).
        document_ids: The document.
        levels: Its level.

    Example:
        >>> levels = PreferenceLevels.from_columns(
        ...     ["q"] * 3, ["u1"] * 3, ["s"] * 3, ["a", "b", "c"], [2, 1, 1]
        ... )
        >>> pairs = levels.pairs()
        >>> list(zip(pairs.left.to_pylist(), pairs.right.to_pylist()))
        [('a', 'b'), ('a', 'c')]
    """

    ROW_FIELDS: ClassVar = ("groups", "subgroups", "document_ids", "levels")

    groups: Strings
    subgroups: Strings
    document_ids: Strings
    levels: Doubles

    @classmethod
    def from_columns(
        cls, query_ids: Any, groups: Any, subgroups: Any, document_ids: Any, levels: ArrayLike
    ) -> PreferenceLevels:
        """Create preference levels from five columns, rows in any order."""
        grouping = group_rows(query_ids)
        columns = {
            "groups": _complete(groups, "groups"),
            "subgroups": _complete(subgroups, "subgroups"),
            "document_ids": _complete(document_ids, "document ids"),
            "levels": finite(levels, np.float64, "levels"),
        }
        columns = ordered_columns(grouping, columns)
        return cls(query_ids=grouping.query_ids, offsets=grouping.offsets, **columns)

    def pairs(self) -> Preferences:
        """List every strict preference implied by the levels, preferred document left."""
        query_ids, left, right = [], [], []
        queries = self.query_id_of_row().to_pylist()
        documents = self.document_ids.to_pylist()
        members: dict[tuple[str, str, str], list[int]] = {}
        names = zip(queries, self.groups.to_pylist(), self.subgroups.to_pylist(), strict=True)
        for row, name in enumerate(names):
            members.setdefault(name, []).append(row)
        for (query, _, _), rows in members.items():
            for better in rows:
                for worse in rows:
                    if self.levels[better] > self.levels[worse]:
                        query_ids.append(query)
                        left.append(documents[better])
                        right.append(documents[worse])
        return Preferences.from_columns(
            as_strings(query_ids, "query ids"), left, right, np.ones(len(left), np.int8)
        )


def _complete(values: Any, what: str) -> Strings:
    strings = as_strings(values, what)
    if strings.null_count:
        raise DataError(f"{what} have missing values", hint="Give one for every row.")
    return strings
