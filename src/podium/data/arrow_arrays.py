"""Arrow's arrays of numbers as NumPy's, and the other way, without a copy.

PyArrow's own conversions import pandas wherever it is installed: half a second of a short command.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.kernels import Ints


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
