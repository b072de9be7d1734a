"""Tables of other libraries: pandas, Polars, PyArrow, DuckDB and others that export Arrow streams.

They are read by Arrow's PyCapsule protocol (``__arrow_c_stream__``), so none of these libraries is
imported here. Columns become arrays, and the other way, without a copy: PyArrow's own conversions
import pandas wherever it is installed, half a second of a short command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.errors import DataError, MissingPackageError
from podium.kernels import Floats, Ints
from podium.registry import unknown_name


def is_frame(value: object) -> bool:
    """Whether a value is a table with named columns; a single column is none.

    Example:
        >>> is_frame(pa.table({"qid": [1]})), is_frame(pa.chunked_array([[1]])), is_frame([[1]])
        (True, False, False)
    """
    if not hasattr(value, "__arrow_c_stream__"):
        return False
    return hasattr(value, "columns") or hasattr(value, "column_names")


def arrow_table(frame: Any) -> pa.Table:
    """Convert a table of another library to an Arrow table, without a copy where possible."""
    try:
        table = pa.RecordBatchReader.from_stream(frame).read_all()
        # pandas exports an index other than 0, 1, 2, … after the columns: rows that were selected
        # have one, and it is neither a feature nor an id.
        if hasattr(frame, "index") and hasattr(frame, "columns"):
            table = table.select(range(len(frame.columns)))
        return table
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = " ".join(str(error).split())
        raise DataError(
            f"{type(frame).__name__} cannot be read as a table ({message})",
            hint="Give each column a unique name and values of one type.",
        ) from error


def required_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column by name; an unknown name is an error that suggests similar ones."""
    if name not in table.column_names:
        unknown = unknown_name("column", name, table.column_names)
        raise DataError(unknown.problem, hint=unknown.hint)
    return table.column(name)


def first_column(table: pa.Table, names: Sequence[str], what: str) -> pa.ChunkedArray:
    """Return the first of some columns that a table has.

    Example:
        >>> first_column(pa.table({"docno": ["a"]}), ("document_id", "docno"), "document ids")
        <pyarrow.lib.ChunkedArray object at ...>
        [
          [
            "a"
          ]
        ]
    """
    for name in names:
        if name in table.column_names:
            return table.column(name)
    raise DataError(
        f"there is no column of {what} among: {', '.join(table.column_names)}",
        hint=f"Name it {_either(names)}.",
    )


def numeric_columns(table: pa.Table, except_for: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns of numbers and booleans, except for some."""
    left_out = set(except_for)
    return tuple(
        field.name
        for field in table.schema
        if field.name not in left_out and _is_numeric(field.type)
    )


def feature_matrix(table: pa.Table, names: Sequence[str]) -> Floats:
    """Return columns as a row-major float32 matrix; null becomes NaN.

    Example:
        >>> feature_matrix(pa.table({"a": [1, None], "b": [True, False]}), ["b", "a"]).tolist()
        [[1.0, 1.0], [0.0, nan]]
    """
    matrix = np.empty((table.num_rows, len(names)), np.float32)
    with np.errstate(over="ignore"):  # values beyond float32 are reported as infinite later
        for index, name in enumerate(names):
            matrix[:, index] = float_column(required_column(table, name), name)
    return matrix


def float_column(column: pa.ChunkedArray, name: str) -> Any:
    """Return a column of numbers as a NumPy array; null becomes NaN, integers without it remain."""
    if not _is_numeric(column.type):
        raise DataError(
            f"column {name!r} is of type {column.type}, not numbers",
            hint=f"Convert it first; TreeRanker takes categories: X[{name!r}].astype('category').",
        )
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy()


def pandas_frame(table: pa.Table) -> Any:
    """Convert an Arrow table to a pandas data frame; pandas has to be installed."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise MissingPackageError("pandas", extra="frames") from error
    return table.to_pandas()


def html_table(table: pa.Table, *, caption: str, rows: int = 20) -> str:
    """Return the first rows of a table as HTML for notebooks, with every cell escaped.

    Example:
        >>> html_table(pa.table({"id": ["<q>"]}), caption="1 query")
        '<table><caption>1 query</caption><tr><th>id</th></tr><tr><td>&lt;q&gt;</td></tr></table>'
    """
    lines = ["".join(f"<th>{escape(name)}</th>" for name in table.column_names)]
    columns = [column.to_pylist() for column in table.slice(0, rows).columns]
    lines += [
        "".join(f"<td>{escape(_cell(value))}</td>" for value in row)
        for row in zip(*columns, strict=True)
    ]
    if table.num_rows > rows:
        lines.append(f"<td colspan='{table.num_columns}'>{table.num_rows - rows} more rows</td>")
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_numeric(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        check(kind)
        for check in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    )


def _either(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def to_numpy(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as an array, which is read-only.

    Example:
        >>> to_numpy(pa.array([1, 2], pa.int32()))
        array([1, 2], dtype=int32)
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    numeric = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if numeric and not array.null_count:
        return np.from_dlpack(array)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def to_arrow(numbers: NDArray[np.number]) -> pa.Array:
    """Return numbers as an Arrow array, such as rows to take.

    Example:
        >>> to_arrow(np.array([3, 5])).to_pylist()
        [3, 5]
    """
    kind = numbers.dtype.newbyteorder("=")
    buffer = pa.py_buffer(np.ascontiguousarray(numbers, kind))
    return pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(numbers), [None, buffer])


def filled(integers: pa.Array, value: int) -> Ints:
    """Return integers with a value in the place of nulls.

    Example:
        >>> filled(pa.array([4, None]), -1)
        array([ 4, -1])
    """
    missing = to_numpy(integers.is_null().cast(pa.int8())).astype(np.bool_)
    buffers = [None, integers.buffers()[1]]
    known = pa.Array.from_buffers(integers.type, len(integers), buffers, offset=integers.offset)
    return np.where(missing, value, to_numpy(known)).astype(np.int64)
