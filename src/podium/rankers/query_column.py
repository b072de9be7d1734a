"""Query ids as a column of a data frame, next to the features.

scikit-learn splits the columns of ``X`` together, and passes on other arrays with metadata routing
only. So the query ids may be a column of ``X``, as in XGBoost's ranker.
"""

from __future__ import annotations

from typing import Any

from podium.data.columns import column_names
from podium.data.frames import arrow_table, is_frame
from podium.errors import ArgumentError

QUERY_COLUMN = "qid"


def with_query_column(X: Any, qid: Any, group: Any) -> tuple[Any, Any]:
    """Return the features and the query of each row, which may be a column of a data frame.

    Example:
        >>> import pyarrow as pa
        >>> X, qid = with_query_column(pa.table({"bm25": [0.3], "qid": ["q"]}), None, None)
        >>> X.column_names, qid.to_pylist()
        (['bm25'], ['q'])
    """
    if not _has_query_column(X):
        return X, qid
    if qid is not None or group is not None:
        raise ArgumentError(
            f"X has a column {QUERY_COLUMN!r} as well as qid= or group=",
            hint="Leave one of them out.",
        )
    table = arrow_table(X)
    return table.drop_columns([QUERY_COLUMN]), table.column(QUERY_COLUMN)


def without_query_column(X: Any) -> Any:
    """Return the features of a data frame without the query ids, if it has any."""
    return arrow_table(X).drop_columns([QUERY_COLUMN]) if _has_query_column(X) else X


def _has_query_column(X: Any) -> bool:
    return is_frame(X) and QUERY_COLUMN in (column_names(X) or ())
