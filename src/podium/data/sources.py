"""Judgments and rankings from what users of other tools have at hand.

Files in TREC's formats or Parquet, dictionaries of dictionaries (pytrec_eval, ranx), tables
(pandas, Polars, Arrow) and iterators of named tuples (ir_measures).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from podium.data.candidates import candidate_judgments
from podium.data.files import numbered_lines, plain_suffix
from podium.data.format_registry import FORMATS
from podium.data.formats.csv import DOCUMENT_COLUMNS, ID_COLUMNS, QUERY_COLUMNS, read_table
from podium.data.formats.jsonl import read_jsonl
from podium.data.formats.parquet import judgments_kind, read_parquet
from podium.data.formats.parquet_file import open_parquet
from podium.data.formats.trec import read_pairs, read_prefs, read_qrels, read_run
from podium.data.frames import arrow_table, first_column, float_column, is_frame
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.errors import DataError

TableSource: TypeAlias = "str | os.PathLike[str] | Mapping[Any, Any] | Iterable[Any]"
"""A file name, a dictionary of dictionaries, a table, or an iterable of named tuples."""

_LABEL = ("label", "relevance", "rel", "grade", "score")
_IDS = ("query_id", "document_id")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SCORE = ("score", "scores", "sim")


def as_judgments(
    source: Judgments | TableSource, *, rename: Mapping[str, str] | None = None
) -> Judgments | Preferences:
    """Return judgments from a file, a dictionary, a table or named tuples.

    Files with the suffix ``.parquet`` are read as Parquet, ``.pref``, ``.pairs`` and ``.prefs`` as
    preferences, ``.jsonl`` as candidates with labels, ``.csv`` and ``.tsv`` as tables if their
    first line names a column of query ids, and all others as qrels.

    Args:
        source: The judgments.
        rename: Maps columns of a table to ``query_id``, ``document_id`` and ``label``. Columns that
            it does not have do not matter: one option may be for several files.

    Example:
        >>> as_judgments({"q1": {"a": 2, "b": 0}, "q2": {"a": 1}})
        Judgments(2 queries, 3 rows)
        >>> table = pa.table({"qid": ["q1"], "docno": ["a"], "label": [2]})
        >>> as_judgments(table).labels.tolist()
        [2.0]
    """
    if isinstance(source, Judgments | Preferences):
        return source
    if isinstance(source, str | os.PathLike):
        suffix = plain_suffix(source)
        if suffix in FORMATS["pairs"].suffixes:
            return read_pairs(source)
        if suffix in FORMATS["prefs"].suffixes:
            return read_prefs(source).pairs()
        if suffix in FORMATS["jsonl"].suffixes:
            return candidate_judgments(read_jsonl(source))
        if suffix == ".parquet":
            content = read_parquet(
                source, kind=judgments_kind(source), rename=_in_file(rename, source)
            )
            return content.pairs() if isinstance(content, PreferenceLevels) else content
        table = _separated_table(source, suffix, rename)
        if table is None:
            return read_qrels(source)
        columns = _columns(table, _LABEL, "judgments", "labels", rename, source)
        try:
            return Judgments.from_columns(*columns)
        except DataError as error:
            raise error.at(source) from error
    return Judgments.from_columns(*_columns(source, _LABEL, "judgments", "labels", rename))


def as_rankings(
    source: Rankings | TableSource, *, rename: Mapping[str, str] | None = None
) -> Rankings:
    """Return rankings from a file, a dictionary, a table or named tuples.

    Files with the suffix ``.parquet`` are read as Parquet, ``.csv`` and ``.tsv`` as tables if their
    first line names a column of query ids, and all others as TREC runs. Rankings of a table have
    the file's name without its suffix.

    Args:
        source: The rankings.
        rename: Maps columns of a table to ``query_id``, ``document_id`` and ``score``, as in
            `as_judgments`.

    Example:
        >>> as_rankings({"q1": {"a": 0.3, "b": 0.7}}).scores.tolist()
        [0.3, 0.7]
        >>> table = pa.table({"search_term": ["shoes"], "sku": ["a"], "score": [0.3]})
        >>> as_rankings(table, rename={"search_term": "query_id", "sku": "document_id"})
        Rankings(1 queries, 1 rows)
    """
    if isinstance(source, Rankings):
        return source
    if isinstance(source, str | os.PathLike):
        suffix = plain_suffix(source)
        if suffix == ".parquet":
            run = read_parquet(source, kind=Rankings, rename=_in_file(rename, source))
        else:
            table = _separated_table(source, suffix, rename)
            if table is None:
                return read_run(source)
            columns = _columns(table, _SCORE, "rankings", "scores", rename, source)
            try:
                run = Rankings.from_columns(*columns)
            except DataError as error:
                raise error.at(source) from error
        unnamed = run.name == Rankings.name
        return replace(run, name=Path(source).name.rpartition(suffix)[0]) if unnamed else run
    return Rankings.from_columns(*_columns(source, _SCORE, "rankings", "scores", rename))


def _in_file(rename: Mapping[str, str] | None, path: str | os.PathLike[str]) -> dict[str, str]:
    """Return what is to be renamed of the columns that a Parquet file has."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
    return {column: name for column, name in (rename or {}).items() if column in names}


def renamed(table: pa.Table, rename: Mapping[str, str] | None) -> pa.Table:
    """Rename columns that a table has; they win over columns that have the name already.

    Example:
        >>> renamed(pa.table({"sku": ["a"], "doc": ["b"]}), {"sku": "doc"}).to_pylist()
        [{'doc': 'a'}]
    """
    new = {column: name for column, name in (rename or {}).items() if column in table.column_names}
    kept = [each for each in table.column_names if each in new or each not in new.values()]
    return table.select(kept).rename_columns([new.get(each, each) for each in kept])


def _separated_table(
    source: str | os.PathLike[str], suffix: str, rename: Mapping[str, str] | None
) -> pa.Table | None:
    """Read a table with a header line; None if it has no such line, as qrels.tsv may not."""
    if suffix not in _DELIMITERS:
        return None
    delimiter = _DELIMITERS[suffix]
    _, first = next(numbered_lines(source), (0, b""))
    names = [name.strip(b'" ') for name in first.split(delimiter.encode())]
    own = [column for column, name in (rename or {}).items() if name in _IDS]
    if not any(name.encode() in names for name in (*QUERY_COLUMNS, *own)):
        if len(first.split()) >= 4 or suffix == ".tsv":  # TREC's lines have as many columns
            return None
        table = read_table(source, delimiter=delimiter)
        try:
            first_column(table, QUERY_COLUMNS, "query ids")
        except DataError as error:
            raise _to_rename(error, "query_id").at(source) from error
    return read_table(source, delimiter=delimiter, strings=(*ID_COLUMNS, *own))


def _columns(
    source: Any,
    value_names: tuple[str, ...],
    what: str,
    values: str,
    rename: Mapping[str, str] | None,
    path: str | os.PathLike[str] | None = None,
) -> list[Any]:
    """Return three columns: query ids, document ids, and labels or scores; of a file with a path.

    Errors of a file name it, and the option that names its columns.
    """
    if is_frame(source):
        table = renamed(arrow_table(source), rename)
    elif isinstance(source, Mapping) or callable(getattr(source, "to_dict", None)):
        # ranx's Qrels and Run are not mappings, but can become dictionaries.
        source = source if isinstance(source, Mapping) else source.to_dict()
        table = _nested_table(source, value_names[0], what)
    elif isinstance(source, Iterable) and not isinstance(source, bytes):
        rows = list(source)
        table = _tuple_table(rows, value_names, what) if rows else pa.table({})
    else:
        raise _not_readable(source, what)
    if not table.num_rows:
        raise DataError(f"there are no {what}", path=path, hint="Give at least one row.")
    columns = []
    for names, meaning in (
        (QUERY_COLUMNS, "query ids"),
        (DOCUMENT_COLUMNS, "document ids"),
        (value_names, values),
    ):
        try:
            columns.append(first_column(table, names, meaning))
        except DataError as error:
            if path is None:
                raise
            raise _to_rename(error, names[0]).at(path) from error
    if path is not None and pa.types.is_string(columns[2].type):
        raise DataError(
            f"the {values} are not numbers: the first is {columns[2][0].as_py()!r}",
            path=path,
            hint="Write numbers with a decimal point, and nothing else in their column.",
        )
    return [*columns[:2], float_column(columns[2], values)]


def _to_rename(error: DataError, name: str) -> DataError:
    hint = f"{error.hint.removesuffix('.')}, or rename it with rename={{'its name': {name!r}}}."
    return DataError(error.problem, hint=hint)


def _nested_table(source: Mapping[Any, Any], value_name: str, what: str) -> pa.Table:
    """Read ``{query: {document: value}}``, or a dictionary of columns."""
    nested = [isinstance(documents, Mapping) for documents in source.values()]
    if not any(nested):
        return _table(dict(source), what)
    if not all(nested):
        raise DataError(
            f"some queries of the {what} are not dictionaries",
            hint="Give {query: {document: number}}.",
        )
    rows = [
        (query, document, value)
        for query, documents in source.items()
        for document, value in documents.items()
    ]
    columns: Any = zip(*rows, strict=True) if rows else ((), (), ())
    return _table(dict(zip((*_IDS, value_name), columns, strict=True)), what)


def _tuple_table(rows: list[Any], value_names: tuple[str, ...], what: str) -> pa.Table:
    """Read named tuples, or other objects with attributes of those names."""
    columns = {}
    for names in (QUERY_COLUMNS, DOCUMENT_COLUMNS, value_names):
        name = next((name for name in names if hasattr(rows[0], name)), None)
        if name is None:
            raise _not_readable(rows[0], what)
        try:
            columns[name] = [getattr(row, name) for row in rows]
        except AttributeError as error:
            raise DataError(
                f"rows of the {what} are of different types ({error})", hint="Give one type."
            ) from error
    return _table(columns, what)


def _table(columns: Mapping[str, Any], what: str) -> pa.Table:
    try:
        return pa.table({name: pa.array(values) for name, values in columns.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"the {what} are not columns of equal length, each of one type ({error})",
            hint="Give ids as strings or integers, and numbers as labels and scores.",
        ) from error


def _not_readable(source: object, what: str) -> DataError:
    return DataError(
        f"{type(source).__name__} cannot be read as {what}",
        hint="Give a file name, a table with columns query_id, document_id and label or score, "
        "{query: {document: number}}, or named tuples with those fields.",
    )
