"""Comma- and tab-separated tables with a header line: the columns of the Parquet schemas.

A data set has a column of query ids, one of labels, one of document ids if known, and one for each
feature. Columns may have other common names (``qid``, ``docno``, ``relevance``) or be renamed. All
of a file is read at once.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from podium.data.dataset import Dataset
from podium.data.files import PADDING, Reporter, Source, chunk_loaders, open_write, source_name
from podium.data.formats.parquet import rows_table, table_rows, table_schema
from podium.data.query_rows import QueryRows
from podium.data.stream import merge_blocks, widen
from podium.errors import DataError

_BLOCK_BYTES = 32 << 20


def read_table(
    source: Source, *, delimiter: str = ",", strings: Sequence[str] = (), progress: Any = None
) -> pa.Table:
    r"""Read a table with a header line.

    Args:
        source: A path (plain, gzip or zstd), ``"-"``, or an open binary stream.
        delimiter: What separates the columns.
        strings: Columns to read as strings, ids for instance, so that 007 stays 007.
        progress: Called with bytes read and total bytes.

    Example:
        >>> read_table(io.BytesIO(b"qid,bm25\n007,0.5\n"), strings=["qid"]).to_pylist()
        [{'qid': '007', 'bm25': 0.5}]
    """
    chunks = [load()[:-PADDING].tobytes() for load in chunk_loaders(source, progress=progress)]
    try:
        table = pa_csv.read_csv(
            io.BytesIO(b"".join(chunks)),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            # An id may be "NA" or "null": of strings, only empty ones are missing.
            convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(strings, pa.string())),
        )
        return _with_missing(table)
    except pa.ArrowException as error:
        message = " ".join(str(error).split())[:200]
        raise DataError(
            f"is not a table with a header line ({message})",
            path=source_name(source),
            hint="Give each line as many columns as the first line has names.",
        ) from error


def _with_missing(table: pa.Table) -> pa.Table:
    """Make empty strings missing, and a column without any value one of missing numbers."""
    for index, field in enumerate(table.schema):
        column = table[index]
        if pa.types.is_string(field.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        elif pa.types.is_null(field.type):
            column = column.cast(pa.float32())
        table = table.set_column(index, field.name, column)
    return table


def read_csv(
    source: Source,
    *,
    delimiter: str = ",",
    rename: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    unlabeled: bool = False,
    progress: Reporter | None = None,
) -> Dataset:
    r"""Read a data set from a comma-separated table, or one with another delimiter.

    Args:
        source: A path (plain, gzip or zstd), ``"-"``, or an open binary stream.
        delimiter: What separates the columns.
        rename: Maps the file's column names to ``query_id``, ``document_id`` and ``label``.
        features: The feature columns; by default all others.
        unlabeled: Whether labels may be missing, which makes them NaN.
        progress: Called with bytes read and total bytes.

    Example:
        >>> data = read_csv(io.BytesIO(b"qid,label,bm25\n1,2,0.5\n1,0,0.25\n"))
        >>> data.feature_names, data.labels.tolist()
        (('bm25',), [2.0, 0.0])
    """
    ids = [*ID_COLUMNS, *(name for name, to in (rename or {}).items() if to in _IDS)]
    table = read_table(source, delimiter=delimiter, strings=ids, progress=progress)
    name = source_name(source)
    return table_rows(table, Dataset, name, rename=rename, features=features, unlabeled=unlabeled)


def write_csv(
    tables: QueryRows | Iterable[Dataset], target: Source, *, delimiter: str = ","
) -> None:
    r"""Write a data set, or blocks of one, as a table with a header line.

    Example:
        >>> file = io.BytesIO()
        >>> write_csv(Dataset.from_arrays([[2.0]], [1], qid=["a"]), file)
        >>> file.getvalue()
        b'"query_id","label","1"\n"a",1,2\n'
    """
    if isinstance(tables, QueryRows):
        blocks: list[Any] = [tables]
    else:
        blocks = list(merge_blocks(tables, _BLOCK_BYTES))
    if not blocks:
        raise DataError("nothing to write", hint="Give at least one table.")
    if isinstance(blocks[0], Dataset):
        blocks = _alike(blocks)
    schema = table_schema(blocks[0])
    with open_write(target) as write:
        for index, block in enumerate(blocks):
            out = io.BytesIO()
            options = pa_csv.WriteOptions(include_header=index == 0, delimiter=delimiter)
            pa_csv.write_csv(rows_table(block, schema), out, options)
            write(out.getvalue())


def _alike(blocks: list[Dataset]) -> list[Dataset]:
    """Give all blocks the columns of the widest one, and document ids if any has them."""
    names = max((block.feature_names for block in blocks), key=len)
    blocks = [widen(block, names) for block in blocks]
    if any(block.feature_names != names for block in blocks):
        raise DataError(
            "the blocks have different features", hint="Give them the same, in the same order."
        )
    if any(block.document_ids is not None for block in blocks):
        blocks = [block.with_document_ids() for block in blocks]
    return blocks


_IDS = ("query_id", "document_id")
# The names of Podium's own files come first, then those of ir_measures, PyTerrier, ranx and BEIR.
# PyTerrier's ``query`` is the text of a query and its ``docid`` an internal number: both come late.
QUERY_COLUMNS = ("query_id", "qid", "q_id", "query-id", "topic", "query")
DOCUMENT_COLUMNS = (
    *("document_id", "doc_id", "docno", "corpus-id", "did", "doc", "docid", "document"),
)
ID_COLUMNS = QUERY_COLUMNS + DOCUMENT_COLUMNS
"""Columns that are read as strings: common names of query and document ids."""
