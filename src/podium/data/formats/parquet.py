"""Parquet, with a documented Arrow schema for each kind of table.

| kind | columns |
| --- | --- |
| data set | ``query_id`` string, ``document_id`` string (optional), ``label`` float32, and a float32 column for each feature, named as the feature |
| judgments | ``query_id``, ``document_id`` string, ``label`` float32 |
| rankings | ``query_id``, ``document_id`` string, ``score`` float64 |
| preferences | ``query_id``, ``left``, ``right`` string, ``verdict`` int8 (1 left, -1 right, 0 tie) |
| preference levels | ``query_id``, ``group``, ``subgroup``, ``document_id`` string, ``level`` float64 |

The name of rankings is in the file's metadata under ``podium.name``, and the hash of the definitions
that the features of a data set follow under ``podium.definitions``.

In files written by Podium the rows of a query are contiguous, and no row group splits a query.
Other files may have their rows in any order unless streamed, other names (``rename=``), other
numeric types, and further columns (``features=``).
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from podium.data.dataset import Dataset
from podium.data.definitions_hash import checked_hash
from podium.data.files import Source, is_compressed, open_write, source_name
from podium.data.formats.parquet_file import open_parquet
from podium.data.frames import to_arrow
from podium.data.grouping import Grouping, Strings, as_strings, group_rows
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import QueryRows
from podium.data.stream import check_contiguous, merge_blocks, whole_queries, widen
from podium.errors import DataError
from podium.kernels import Floats

Table = TypeVar("Table", bound=QueryRows)

BLOCK_BYTES = 32 << 20

_DEFINITIONS = "podium.definitions"

# Column in the file: field of the table, Arrow type.
_COLUMNS: dict[type[QueryRows], dict[str, tuple[str, pa.DataType]]] = {
    Judgments: {"document_id": ("document_ids", pa.string()), "label": ("labels", pa.float32())},
    Rankings: {"document_id": ("document_ids", pa.string()), "score": ("scores", pa.float64())},
    Preferences: {
        "left": ("left", pa.string()),
        "right": ("right", pa.string()),
        "verdict": ("verdicts", pa.int8()),
    },
    PreferenceLevels: {
        "group": ("groups", pa.string()),
        "subgroup": ("subgroups", pa.string()),
        "document_id": ("document_ids", pa.string()),
        "level": ("levels", pa.float64()),
    },
    Dataset: {"document_id": ("document_ids", pa.string()), "label": ("labels", pa.float32())},
}


def read_parquet(
    source: Source,
    kind: type[Table],
    *,
    rename: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    unlabeled: bool = False,
) -> Table:
    """Read a whole Parquet file.

    Args:
        source: A path, ``"-"``, or an open binary stream.
        kind: The type to return: ``Dataset``, ``Judgments``, ``Rankings``, ``Preferences`` or
            ``PreferenceLevels``.
        rename: Maps the file's column names to those of the schema: ``{"qid": "query_id"}``.
        features: The feature columns; by default all columns that are not of the schema.
        unlabeled: Whether labels of a data set may be missing, which makes them NaN.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> write_parquet(Judgments.from_columns(["q"], ["d"], [1]), file)
        >>> read_parquet(io.BytesIO(file.getvalue()), Judgments)
        Judgments(1 queries, 1 rows)
    """
    name = source_name(source)
    with open_parquet(source) as file:
        return table_rows(
            file.read(), kind, name, rename=rename, features=features, unlabeled=unlabeled
        )


def judgments_kind(source: Source) -> type[Judgments | Preferences | PreferenceLevels]:
    """The kind of judgments that a Parquet file's columns are of: labels if they name no other.

    Example:
        >>> import io
        >>> write_parquet(Preferences.from_columns(["q"], ["a"], ["b"], [1]), file := io.BytesIO())
        >>> judgments_kind(io.BytesIO(file.getvalue())).__name__
        'Preferences'
    """
    with open_parquet(source) as file:
        names = set(file.schema_arrow.names)
    kinds: tuple[type[Preferences | PreferenceLevels], ...] = (Preferences, PreferenceLevels)
    return next((kind for kind in kinds if _COLUMNS[kind].keys() <= names), Judgments)


def iter_parquet(
    source: Source,
    *,
    rename: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
) -> Iterator[Dataset]:
    """Stream a Parquet data set as blocks of whole queries; rows of a query must be contiguous.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> write_parquet(Dataset.from_arrays([[2.0], [3.0]], [1, 0], qid=["a", "a"]), file)
        >>> list(iter_parquet(io.BytesIO(file.getvalue())))
        [Dataset(1 queries, 2 rows, 1 features)]
    """
    name = source_name(source)
    with open_parquet(source) as file:
        width = max(1, len(file.schema_arrow))
        blocks = (
            table_rows(
                pa.Table.from_batches([batch]),
                Dataset,
                name,
                rename=rename,
                features=features,
                contiguous=True,
            )
            for batch in file.iter_batches(batch_size=max(1, BLOCK_BYTES // (4 * width)))
            if len(batch)
        )
        yield from whole_queries(blocks, name)


def write_parquet(tables: QueryRows | Iterable[Dataset], target: Source) -> None:
    """Write one table, or blocks of a data set, to a Parquet file.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> write_parquet(Dataset.from_arrays([[2.0]], [1], qid=["a"]), file)
        >>> file.getvalue()[:4]
        b'PAR1'
    """
    if is_compressed(target):
        raise DataError(
            "Parquet files are compressed internally", path=target, hint="Drop that suffix."
        )
    blocks: Iterator[Any]
    blocks = iter([tables]) if isinstance(tables, QueryRows) else merge_blocks(tables, BLOCK_BYTES)
    first = next(blocks, None)
    if first is None:
        raise DataError("nothing to write", hint="Give at least one table.")
    schema = table_schema(first)
    with open_write(target, compress=False) as write:
        sink = pa.PythonFile(_Sink(write), mode="w")
        with parquet_writer(sink, schema) as writer:
            write_row_groups(writer, first, schema)
            for block in blocks:
                write_row_groups(writer, _like(block, first), schema)


def _like(block: Dataset, first: Dataset) -> Dataset:
    """Pad a block to the columns of the first one."""
    block = widen(block, first.feature_names)
    if first.document_ids is not None:
        block = block.with_document_ids()
    if table_schema(block) != table_schema(first):
        raise DataError(
            "a later block has columns that the first one lacks, and a Parquet file has one schema",
            hint="Write shards, which may grow wider, or read all of the source first.",
        )
    return block


def parquet_writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Create a Parquet writer with Podium's settings."""
    # Ids repeat; features hardly ever do, and a dictionary would only cost time.
    words = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(
        sink, schema, compression="zstd", compression_level=1, use_dictionary=words
    )


def write_row_groups(writer: pq.ParquetWriter, rows: QueryRows, schema: pa.Schema) -> None:
    """Append a block in row groups of whole queries of about ``BLOCK_BYTES`` each."""
    for piece in query_pieces(rows, BLOCK_BYTES):
        table = rows_table(piece, schema)
        writer.write_table(table, row_group_size=max(1, len(table)))


def query_pieces(rows: Table, max_bytes: int) -> Iterator[Table]:
    """Split rows between queries into pieces of at most ``max_bytes``, or of one larger query."""
    columns = len(rows.feature_names) if isinstance(rows, Dataset) else len(rows.ROW_FIELDS)
    max_rows = max(1, max_bytes // max(1, 4 * columns))
    first = 0
    while first < len(rows):
        last = int(np.searchsorted(rows.offsets, rows.offsets[first] + max_rows, side="right")) - 1
        last = min(max(last, first + 1), len(rows))
        yield rows if last - first == len(rows) else rows.select(np.arange(first, last))
        first = last


def table_schema(rows: QueryRows) -> pa.Schema:
    """Return the Arrow schema of a table's Parquet file."""
    fields = [pa.field("query_id", pa.string(), nullable=False)]
    for column, (field, kind) in _COLUMNS[type(rows)].items():
        optional = isinstance(rows, Dataset) and column == "document_id"
        if not optional or getattr(rows, field) is not None:
            fields.append(pa.field(column, kind, nullable=optional))
    if isinstance(rows, Dataset):
        taken = {field.name for field in fields} | {"document_id"}
        for name in rows.feature_names:
            if name in taken:
                raise DataError(
                    f"a feature is named {name!r}", hint="Rename it: the name is reserved."
                )
        fields += [pa.field(name, pa.float32()) for name in rows.feature_names]
    metadata = {"podium.name": rows.name} if isinstance(rows, Rankings) else None
    if isinstance(rows, Dataset) and rows.definitions_hash is not None:
        metadata = {_DEFINITIONS: rows.definitions_hash}
    return pa.schema(fields, metadata=metadata)


def rows_table(rows: QueryRows, schema: pa.Schema) -> pa.Table:
    """Convert rows to an Arrow table; features become columns."""
    columns = {"query_id": rows.query_id_of_row()}
    for column, (field, _) in _COLUMNS[type(rows)].items():
        columns[column] = getattr(rows, field)
    if isinstance(rows, Dataset):
        by_column = np.ascontiguousarray(rows.features.T)
        columns |= dict(zip(rows.feature_names, by_column, strict=True))
    arrays = []
    for field in schema:
        if columns.get(field.name) is None:
            raise DataError(
                f"a block lacks column {field.name!r}", hint="Write blocks with the same columns."
            )
        column = columns[field.name]
        array = to_arrow(column) if isinstance(column, np.ndarray) else pa.array(column)
        arrays.append(array.cast(field.type))
    return pa.table(arrays, schema=schema)


def table_rows(
    table: pa.Table,
    kind: type[Table],
    name: str,
    *,
    rename: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    contiguous: bool = False,
    unlabeled: bool = False,
) -> Table:
    """Convert an Arrow table to rows; ``contiguous`` requires grouped rows in a data set."""
    for column, schema_name in (rename or {}).items():
        if column not in table.column_names:
            raise DataError(
                f"has no column {column!r} to take as {schema_name!r}",
                path=name,
                hint=f"Its columns are {', '.join(table.column_names[:12])}.",
            )
    renamed = {**(_common_names(table, rename or {}) if kind is Dataset else {}), **(rename or {})}
    if renamed:
        names = [renamed.get(column, column) for column in table.column_names]
        table = table.rename_columns(names)
    if unlabeled and kind is Dataset and "label" not in table.column_names:
        table = table.append_column("label", pa.nulls(len(table), pa.float32()))
    for column in ("query_id", *_COLUMNS[kind]):
        count = table.column_names.count(column)
        optional = kind is Dataset and column == "document_id"
        if count > 1 or (count == 0 and not optional):
            raise DataError(
                f"has {count} columns {column!r} instead of one",
                path=name,
                hint="Name the right column with rename={'its name': " + f"{column!r}" + "}.",
            )
    try:
        values = {
            column: as_strings(table[column], column)
            if pa.types.is_string(arrow_type)
            else _numbers(table[column], column)
            for column, (_, arrow_type) in _COLUMNS[kind].items()
            if column in table.column_names
        }
        if kind is Dataset:
            if features is None:
                used = {"query_id", *values}
                features = [column for column in table.column_names if column not in used]
            grouping = group_rows(table["query_id"])
            if contiguous:
                check_contiguous(grouping, name)
            data = _dataset(table, values, tuple(features), grouping, unlabeled)
            return replace(data, definitions_hash=_definitions_hash(table))  # type: ignore[return-value]
        more = {}
        if kind is Rankings:
            stored = (table.schema.metadata or {}).get(b"podium.name", b"podium")
            more["name"] = stored.decode("utf-8", "replace")
        return kind.from_columns(table["query_id"], *values.values(), **more)  # type: ignore[attr-defined,no-any-return]
    except DataError as error:
        raise error.at(name) from error


def _definitions_hash(table: pa.Table) -> str | None:
    stored = (table.schema.metadata or {}).get(_DEFINITIONS.encode())
    return checked_hash(None if stored is None else stored.decode("utf-8", "replace"))


# What tables of other tools call a column of a data set.
_COMMON_NAMES = {
    "query_id": ("qid", "q_id", "query-id", "query", "topic"),
    "document_id": ("doc_id", "docno", "corpus-id", "docid", "doc"),
    "label": ("relevance", "rel", "grade"),
}


def _common_names(table: pa.Table, rename: Mapping[str, str]) -> dict[str, str]:
    """Return which columns to take for those of the schema that a table lacks."""
    taken = {*table.column_names, *rename.values()}
    renamed = {}
    for column, names in _COMMON_NAMES.items():
        known = [name for name in names if name in table.column_names and name not in rename]
        if column not in taken and known:
            renamed[known[0]] = column
    return renamed


def _dataset(
    table: pa.Table,
    values: dict[str, Any],
    names: tuple[str, ...],
    grouping: Grouping,
    unlabeled: bool,
) -> Dataset:
    by_column = np.empty((len(names), len(table)), np.float32)
    with np.errstate(over="ignore"):  # values out of range become infinite, which is an error
        for index, column in enumerate(names):
            if table.column_names.count(column) != 1:
                raise DataError(
                    f"does not have exactly one column {column!r}", hint="Check features=."
                )
            by_column[index] = _numbers(table[column], column)
        labels = values["label"].astype(np.float32)
    matrix = np.ascontiguousarray(by_column.T)
    if np.isinf(matrix).any():
        raise DataError("a feature is infinite", hint="Use null or NaN for missing values.")
    if not (np.isfinite(labels) | (np.isnan(labels) & unlabeled)).all():
        raise DataError("a label is missing or not finite", hint="Drop the row or judge it.")
    documents: Strings | None = values.get("document_id")
    return Dataset.grouped(matrix, labels, grouping, documents, names)


def _numbers(column: pa.ChunkedArray, what: str) -> Floats:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"column {what!r} is {kind}, not numeric",
            hint="Convert it, name the columns to use with features=, or say that it is the "
            "document's id with rename=.",
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.to_numpy()  # type: ignore[no-any-return]


class _Sink:
    """Writable file object for PyArrow around a function that takes bytes."""

    def __init__(self, write: Any) -> None:
        self.write = write
        self.closed = False

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        self.closed = True
