"""The table of clicks: one row per shown document, in Parquet files sharded by query.

A log is a folder: ``part-00000.parquet``, … and ``clicks.json``, which is written last and has
counts and all that the import noticed. The rows of a search are together, in order of their ranks,
and all searches for a query are in one file, so that sums over files are sums over queries.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.data.files import open_write
from podium.data.frames import to_numpy
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.kernels import Ints
from podium.threads import thread_count

MANIFEST = "clicks.json"
VERSION = 1
COLUMNS = (
    "search_id", "time", "query", "document_id", "rank", "clicked", "add_to_cart", "purchase",
    "dwell", "policy", "propensity", "team", "credit", "client",
)  # fmt: skip
"""The columns of the table. The first six are needed; others are null where nothing is known."""


class Searches(NamedTuple):
    """The searches of a file as arrays, in the order of queries; rows in the order of ranks.

    Attributes:
        offsets: Where the rows of each search begin, and the number of rows last.
        query: The number of each search's query in the file.
        pair: The number of each row's pair of query and document in the file.
        rank: The rank of each row, from 1.
        clicked: Whether each row was clicked.
        pair_query: The number of each pair's query.
        query_names: The queries.
        pair_documents: The document of each pair.
    """

    offsets: Ints
    query: Ints
    pair: Ints
    rank: Ints
    clicked: NDArray[np.bool_]
    pair_query: Ints
    query_names: pa.Array
    pair_documents: pa.Array


@dataclass(frozen=True)
class ClickLog:
    """A log of shown and clicked documents, in files.

    Attributes:
        folder: Where the files are.
        rows: Shown documents.
        searches: Searches.
        queries: Different queries.
        clicks: Clicked documents.
        files: The names of the files.
        counts: What became of what was read, by ledger (``records``, ``shown``, ``actions``) and
            reason: the numbers of a ledger add up to its ``read``.
        facts: What the import noticed.

    Example:
        >>> from podium.clicks import import_clicks
        >>> log = import_clicks(
        ...     {"search_id": ["s", "s"], "query": ["tv", "tv"], "document_id": ["a", "b"],
        ...      "rank": [1, 2], "clicked": [True, False]}, tempfile.mkdtemp() + "/log")
        >>> log.rows, log.searches, log.clicks, log.counts["shown"]
        (2, 1, 1, {'read': 2, 'kept': 2})
    """

    folder: Path
    rows: int
    searches: int
    queries: int
    clicks: int
    files: tuple[str, ...]
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ClickLog:
        """Open a log."""
        path = Path(folder)
        try:
            content = json.loads((path / MANIFEST).read_bytes())
            if content.pop("version") != VERSION:
                raise ValueError("another version of the format")
            log = cls(path, files=tuple(content.pop("files")), **content)
            if not all(Path(name).name == name and (path / name).is_file() for name in log.files):
                raise ValueError("a file is missing")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(
                f"is not a log of clicks ({error})",
                path=path,
                hint="Make one: podium clicks import.",
            ) from error
        return log

    def save(self) -> None:
        """Write the manifest."""
        content = asdict(self)
        del content["folder"]
        with open_write(self.folder / MANIFEST) as write:
            write(json.dumps({"version": VERSION, **content}, indent=1).encode())

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [str(self.folder / name) for name in self.files]

    @contextmanager
    def sql(self) -> Iterator[Any]:
        """Open a DuckDB connection that has the log as the view ``clicks``.

        Example:
            >>> from podium.clicks import import_clicks
            >>> log = import_clicks(
            ...     {"search_id": ["s"], "query": ["tv"], "document_id": ["a"], "rank": [1],
            ...      "clicked": [False]}, tempfile.mkdtemp() + "/log")
            >>> with log.sql() as connection:
            ...     connection.sql("SELECT query, rank, clicked FROM clicks").fetchall()
            [('tv', 1, False)]
        """
        with connect() as connection:
            files = ", ".join(map(quoted, self.paths))
            connection.execute(f"CREATE VIEW clicks AS FROM read_parquet([{files}])")
            yield connection

    def blocks(self, depth: int | None = None) -> Iterator[Searches]:
        """Read one file after the other as arrays, which is all that is in memory.

        Args:
            depth: Leave out ranks below this one.
        """
        import pyarrow.parquet as pq

        names = ["search_id", "query", "document_id", "rank", "clicked"]
        for path in self.paths:
            table = pq.read_table(path, columns=names, read_dictionary=names[:3])
            yield _searches(table, depth)


def _searches(table: pa.Table, depth: int | None) -> Searches:
    if depth is not None:
        table = table.filter(pa.compute.less_equal(table["rank"], depth))
    codes, values = {}, {}
    for name in ("search_id", "query", "document_id"):
        column = table[name].unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # older versions of PyArrow keep one chunk
            column = column.chunk(0)
        codes[name] = to_numpy(column.indices).astype(np.int64)
        values[name] = column.dictionary
    rows = table.num_rows
    change = np.ones(rows, bool)
    change[1:] = codes["search_id"][1:] != codes["search_id"][:-1]
    change[1:] |= codes["query"][1:] != codes["query"][:-1]
    starts = np.flatnonzero(change)
    documents = len(values["document_id"])
    keys = codes["query"] * max(documents, 1) + codes["document_id"]
    pairs, pair = np.unique(keys, return_inverse=True)
    return Searches(
        np.append(starts, rows).astype(np.int64),
        codes["query"][starts],
        pair.astype(np.int64),
        to_numpy(table["rank"]).astype(np.int64),
        to_numpy(table["clicked"]).astype(bool),
        pairs // max(documents, 1),
        values["query"],
        values["document_id"].take(pa.array(pairs % max(documents, 1))),
    )


def memory_limit() -> str:
    """Return how much memory DuckDB may take: ``PODIUM_CLICKS_MEMORY``, or 4 GB."""
    return os.environ.get("PODIUM_CLICKS_MEMORY", "4GB")


@contextmanager
def connect(temporary: Path | None = None) -> Iterator[Any]:
    """Open DuckDB with limited memory; what does not fit in it goes to a temporary folder."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingPackageError("duckdb", extra="clicks") from error
    with tempfile.TemporaryDirectory(prefix="podium-clicks-", dir=temporary) as folder:
        try:
            connection = duckdb.connect(
                config={
                    "memory_limit": memory_limit(),
                    "threads": thread_count(),
                    "temp_directory": folder,
                    "preserve_insertion_order": False,
                    # Nothing is fetched: the wheel has what is needed.
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                }
            )
        except duckdb.Error as error:
            raise ArgumentError(
                f"PODIUM_CLICKS_MEMORY is {memory_limit()!r} ({error})", hint="Give one as 4GB."
            ) from error
        try:
            yield connection
        finally:
            connection.close()


def quoted(text: str) -> str:
    """Return text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
