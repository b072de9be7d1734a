"""Options of every command that reads data: the format, names of columns, and LETOR's variants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import pyarrow as pa
import typer

from podium.data import Dataset, Judgments, Rankings, ShardSet
from podium.data.candidates import CandidateList, candidate_judgments
from podium.data.conversion import dataset_judgments, read_all
from podium.data.files import Reporter, numbered_lines, plain_suffix
from podium.data.format_registry import Format, format_of
from podium.data.formats.csv import ID_COLUMNS, read_table
from podium.data.formats.parquet import judgments_kind
from podium.data.formats.parquet_file import open_parquet
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.sources import as_judgments, as_rankings, renamed
from podium.errors import ArgumentError, DataError
from podium.measures.comparison.slices import QUERY_COLUMNS

_PANEL = "Reading data"
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_TABLES = (".csv", ".tsv", ".parquet")
_PARQUET = {
    Judgments: "qrels-parquet",
    Preferences: "pairs-parquet",
    PreferenceLevels: "prefs-parquet",
}


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "--from",
            "--truth-format",
            rich_help_panel=_PANEL,
            help="Format of the data, if not clear from the file's name: letor, csv, tsv, parquet, "
            "shards, qrels, run, pairs, prefs, jsonl.",
        ),
    ] = None
    query_column: Annotated[
        str | None,
        typer.Option(rich_help_panel=_PANEL, help="Of a table: the column of query ids."),
    ] = None
    label_column: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="Of a table: the column of labels.")
    ] = None
    document_column: Annotated[
        str | None,
        typer.Option(rich_help_panel=_PANEL, help="Of a table: the column of document ids."),
    ] = None
    feature_columns: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_PANEL,
            help="Of a table: the columns of features, as a,b,c; by default all others.",
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_PANEL, help="LETOR text without qid: the file with rows per query."
        ),
    ] = None
    zero_based: Annotated[
        bool,
        typer.Option(
            "--zero-based", rich_help_panel=_PANEL, help="LETOR text: feature indices start at 0."
        ),
    ] = False
    keep_nonfinite: Annotated[
        bool,
        typer.Option(
            "--keep-nonfinite",
            rich_help_panel=_PANEL,
            help="LETOR text: read nan and inf as missing.",
        ),
    ] = False

    def chosen(self) -> dict[str, Any]:
        """Return the options that are not as by default, by their names."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        named = {name: value for name, (value, default) in values.items() if value != default}
        if "file_format" in named:
            named["format"] = named.pop("file_format")
        return named

    def format_of(self, path: str) -> Format:
        """Return the format of a data set's file."""
        return format_of(path, self.file_format)

    def options(self, entry: Format, *, unlabeled: bool = False) -> dict[str, Any]:
        """Return the arguments of a format's reader; an option that it does not have is refused."""
        chosen: dict[str, Any] = {
            name: value
            for name in ("group", "zero_based", "keep_nonfinite")
            if (value := getattr(self, name))
        }
        if self._rename("label"):
            chosen["rename"] = self._rename("label")
        if self.feature_columns:
            chosen["features"] = self.feature_columns.split(",")
        if unlabeled and "unlabeled" in entry.options:
            chosen["unlabeled"] = True
        return chosen

    def _rename(self, value: str) -> dict[str, str]:
        names = {
            self.query_column: "query_id",
            self.document_column: "document_id",
            self.label_column: value,
        }
        return {column: name for column, name in names.items() if column is not None}

    def data_set(
        self, path: str, *, unlabeled: bool = False, progress: Reporter | None = None
    ) -> Dataset | ShardSet:
        """Read a data set; a shard set stays on disk."""
        entry = self.format_of(path)
        if entry.kind is not Dataset:
            raise DataError(
                f"{entry.name} is not a data set",
                path=path,
                hint="Pass features: letor, csv, tsv, parquet or shards.",
            )
        options = self.options(entry, unlabeled=unlabeled)
        if entry.name == "shards":
            if options:
                raise ArgumentError("shards have columns of their own: leave out these options.")
            return ShardSet.open(path)
        data: Dataset = read_all(entry, path, progress=progress, **options)
        return data

    def whole_data_set(self, path: str, **options: Any) -> Dataset:
        """Read all of a data set into memory."""
        data = self.data_set(path, **options)
        return data.load() if isinstance(data, ShardSet) else data

    def truth(self, path: str, runs: Sequence[str] = ()) -> Judgments | Preferences:
        """Read judgments or preferences: qrels if neither the name nor an option says which.

        Args:
            path: The file.
            runs: Runs that the options are for, too: columns of a table may be theirs.
        """
        suffix = plain_suffix(path)
        known = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl"}
        known |= {".pref": "pairs", ".pairs": "pairs", ".prefs": "prefs"}
        if self.file_format is None and suffix == ".parquet":
            known[suffix] = _PARQUET[judgments_kind(path)]
        name = self.file_format or known.get(suffix) or ("letor" if _is_letor(path) else "qrels")
        if name in _DELIMITERS:
            tables = any(plain_suffix(run) in _TABLES for run in runs)
            table = self._table(path, name, "label", strict=not tables)
            return as_judgments(path if table is None else table)
        entry = format_of(path, name)
        options = self.options(entry)
        if "rename" not in entry.options and any(plain_suffix(run) in _TABLES for run in runs):
            options.pop("rename", None)
        content = read_all(entry, path, **options)
        if isinstance(content, PreferenceLevels):
            content = content.pairs()
        if entry.kind is CandidateList:
            content = candidate_judgments(content)
        if isinstance(content, Judgments | Preferences):
            return content
        if isinstance(content, Dataset):
            return dataset_judgments(content)
        raise DataError(
            f"{entry.name} has no judgments", path=path, hint="Pass qrels or preferences as TRUTH."
        )

    def rankings(self, path: str, score_column: str = "score") -> Rankings:
        """Read a run, whatever the file's extension is."""
        rename = replace(self, label_column=score_column)._rename("score")
        return as_rankings(path, rename=rename)

    def _table(self, path: str, name: str, value: str, *, strict: bool) -> Any:
        """Read a table whose columns are named by options; None if none is named.

        Columns that it does not have are an error if strict: else they may be those of runs.
        """
        rename = self._rename(value)
        if not rename:
            return None
        table = read_table(path, delimiter=_DELIMITERS[name], strings=[*ID_COLUMNS, *rename])
        for column, meaning in rename.items():
            if column not in table.column_names and (strict or meaning == value):
                raise DataError(
                    f"has no column {column!r}",
                    path=path,
                    hint=f"Its columns are {', '.join(table.column_names[:12])}.",
                )
        table = renamed(table, rename)
        columns = table.column_names
        index = columns.index(value) if value in columns else None
        if index is not None:
            table = table.set_column(index, value, table[value].cast("float64"))
        return table


def _is_letor(path: str) -> bool:
    """Whether a file's first line is a document with features; qrels end with .txt as well."""
    if path == "-" or not Path(path).is_file():
        return False
    _, first = next(numbered_lines(path), (0, b""))
    return any(word.startswith(b"qid:") for word in first.split()[:2])


def is_answer_log(path: str) -> bool:
    """Whether a file has a model's answers, as JSON lines, and not judgments."""
    _, first = next(numbered_lines(path), (0, b""))
    return first.lstrip().startswith(b"{")


def read_grades(path: str) -> dict[tuple[str, str], float]:
    """Read judgments of documents, of people or of a machine, by query and document."""
    judged = Reading().truth(path)
    if not isinstance(judged, Judgments):
        raise DataError("has preferences", path=path, hint="Give judgments of documents.")
    keys = zip(judged.query_id_of_row().to_pylist(), judged.document_ids.to_pylist(), strict=True)
    return dict(zip(keys, judged.labels.tolist(), strict=True))


def read_properties(path: str) -> pa.Table:
    """Read a table of queries: a column of ids, which stay text, and others to slice by."""
    suffix = plain_suffix(path)
    if suffix == ".parquet":
        with open_parquet(path) as file:
            return file.read()
    delimiter = _DELIMITERS.get(suffix.removeprefix("."))
    if delimiter is None:
        raise DataError(
            "is not a table of queries", path=path, hint="Name a file .csv, .tsv or .parquet."
        )
    return read_table(path, delimiter=delimiter, strings=QUERY_COLUMNS)


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``Reading``, and pass them as its argument ``reading``."""
    shared = [each.name for each in fields(Reading)]
    hints = get_type_hints(Reading, include_extras=True)

    @wraps(command)
    def with_options(**arguments: Any) -> None:
        chosen = {name: arguments.pop(name) for name in shared}
        command(**arguments, reading=Reading(**chosen))

    own_hints = get_type_hints(command, include_extras=True)
    own = [
        each.replace(annotation=own_hints[each.name])
        for each in inspect.signature(command).parameters.values()
        if each.name != "reading"
    ]
    extra = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=hints[each.name],
        )
        for each in fields(Reading)
    ]
    with_options.__signature__ = inspect.Signature([*own, *extra])  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in [*own, *extra]}
    return with_options
