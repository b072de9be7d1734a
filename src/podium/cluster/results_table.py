"""The results of a sweep in one Parquet table, from which an interrupted sweep resumes.

Columns: ``task``, the task's parameters as JSON with sorted names, by which it is found again;
``result`` as JSON; ``error``, null if there was none; ``seconds``; and for reading by other tools
a column for each parameter and each value of the results, of numbers, booleans or strings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from podium.cluster.filesystems import as_url, display_url, exists, file_system, write_bytes
from podium.data.formats.parquet_file import open_parquet
from podium.errors import ArgumentError, DataError

_OWN = ("task", "result", "error", "seconds")


@dataclass(frozen=True)
class TaskResult:
    """The result of one task of a sweep.

    Attributes:
        parameters: The parameters of the task.
        values: What it returned; empty if it failed.
        seconds: How long it took.
        error: What it raised, or None.
    """

    parameters: dict[str, Any]
    values: dict[str, Any]
    seconds: float
    error: str | None = None


def task_key(parameters: Mapping[str, Any]) -> str:
    """The name of a task in the table: its parameters as JSON, whatever their order.

    Example:
        >>> task_key({"k": 5, "fold": 1})
        '{"fold":1,"k":5}'
    """
    try:
        return json.dumps(parameters, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"a parameter of a sweep is not a plain value ({error})",
            hint="Give numbers, strings, booleans, None, and lists of them.",
        ) from error


class ResultsTable:
    """The table of a sweep: results by task, and the file they are kept in.

    Args:
        location: The path or URL of the Parquet file; None keeps results in memory only.
    """

    def __init__(self, location: str | os.PathLike[str] | None) -> None:
        self._url = None if location is None else as_url(location)
        self.results: dict[str, TaskResult] = {} if self._url is None else _read(self._url)

    def add(self, key: str, result: TaskResult) -> None:
        """Take the result of a task, once: a second one changes nothing."""
        if key not in self.results or self.results[key].error is not None:
            self.results[key] = result

    def done(self, key: str) -> bool:
        """Whether a task has a result without an error."""
        return key in self.results and self.results[key].error is None

    def save(self) -> None:
        """Write the whole table; it appears at once in place of the one before."""
        if self._url is None:
            return
        buffer = pa.BufferOutputStream()
        pq.write_table(as_table(self.results), buffer, compression="zstd")
        write_bytes(buffer.getvalue(), self._url)


def read_results(path: str | os.PathLike[str]) -> list[TaskResult]:
    """Read the table that a sweep has written, in the order in which results came.

    Args:
        path: The path or URL of the Parquet file.

    Example:
        >>> import tempfile
        >>> from podium.cluster import grid, sweep
        >>> def square(x):
        ...     return {"y": x * x}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = sweep(square, grid(x=[2, 3]), results=f"{folder}/squares.parquet")
        ...     [result.values for result in read_results(f"{folder}/squares.parquet")]
        [{'y': 4}, {'y': 9}]
    """
    url = as_url(path)
    if not exists(url):
        raise DataError(
            "there is no such file", path=display_url(url), hint="Name the results of a sweep."
        )
    return list(_read(url).values())


def as_table(results: Mapping[str, TaskResult]) -> pa.Table:
    """Results as an Arrow table."""
    rows = list(results.items())
    columns: dict[str, pa.Array] = {
        "task": pa.array([key for key, _ in rows], pa.string()),
        "result": pa.array([json.dumps(one.values) for _, one in rows], pa.string()),
        "error": pa.array([_storable(one.error) for _, one in rows], pa.string()),
        "seconds": pa.array([one.seconds for _, one in rows], pa.float64()),
    }
    for part in ("parameters", "values"):
        names = dict.fromkeys(name for _, one in rows for name in getattr(one, part))
        for name in names:
            column = name if name not in columns else f"{part}.{name}"
            columns[column] = _column([getattr(one, part).get(name) for _, one in rows])
    return pa.table(columns)


def _storable(text: str | None) -> str | None:
    """Replace characters of an error message that are not valid Unicode."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _column(values: list[Any]) -> pa.Array:
    # NumPy's doubles are Python's too, by another name.
    values = [float(value) if isinstance(value, float) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    try:
        for kind, arrow in ((bool, pa.bool_()), (int, pa.int64()), (str, pa.string())):
            if kinds == {kind}:
                return pa.array(values, arrow)
        if kinds <= {int, float}:
            return pa.array([None if value is None else float(value) for value in values])
    except (OverflowError, UnicodeEncodeError):
        pass  # integers too large and strings that are not valid Unicode are written as JSON
    return pa.array([None if value is None else json.dumps(value) for value in values])


def _read(url: str) -> dict[str, TaskResult]:
    if not exists(url):
        return {}
    files, path = file_system(url)
    try:
        with files.open_input_file(path) as raw, open_parquet(raw) as file:
            rows = file.read(columns=list(_OWN)).to_pylist()
        return {
            row["task"]: TaskResult(
                json.loads(row["task"]), json.loads(row["result"]), row["seconds"], row["error"]
            )
            for row in rows
        }
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"is not the table of a sweep ({error})",
            path=display_url(url),
            hint="Name another file.",
        ) from error
