"""Registry of file formats: contents, reader, streaming reader and writer of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from podium.data.candidates import CandidateList
from podium.data.dataset import Dataset
from podium.data.files import Source, plain_suffix, source_name
from podium.data.formats.csv import read_csv, write_csv
from podium.data.formats.jsonl import read_jsonl, write_jsonl
from podium.data.formats.letor import iter_letor, read_letor, write_letor
from podium.data.formats.parquet import iter_parquet, read_parquet, write_parquet
from podium.data.formats.trec import (
    read_pairs,
    read_prefs,
    read_qrels,
    read_run,
    write_pairs,
    write_prefs,
    write_qrels,
    write_run,
)
from podium.data.formats.workbench import read_workbench, write_workbench
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.shard_writer import write_shards
from podium.data.shards import ShardSet
from podium.errors import ArgumentError
from podium.registry import Registry


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: Its name on the command line.
        kind: The type of its contents.
        read: Reads all of a source.
        write: Writes what ``read`` returns, or (data sets, candidates) an iterable of blocks.
        stream: Reads a source as blocks of whole queries in bounded memory; None if not supported.
        suffixes: File suffixes it is recognized by.
        options: Keyword arguments of ``read``.
    """

    name: str
    kind: type
    read: Callable[..., Any]
    write: Callable[[Any, Any], object]
    stream: Callable[..., Iterator[Any]] | None = None
    suffixes: tuple[str, ...] = ()
    options: tuple[str, ...] = ("progress",)


def _stream_shards(folder: Source, **options: Any) -> Iterator[Dataset]:
    return ShardSet.open(_path(folder)).blocks(**options)


def _read_shards(folder: Source, **options: Any) -> Dataset:
    return ShardSet.open(_path(folder)).load(**options)


def _write_shards(datasets: Dataset | Iterable[Dataset], folder: Source) -> object:
    return write_shards(datasets, _path(folder))


def _path(folder: Source) -> str:
    if not isinstance(folder, str | os.PathLike) or os.fspath(folder) == "-":
        raise ArgumentError("shards are a folder, not a stream", hint="Name a folder.")
    return os.fspath(folder)


def _parquet(name: str, kind: type) -> Format:
    return Format(name, kind, partial(read_parquet, kind=kind), write_parquet, options=("rename",))


def _separated(name: str, delimiter: str) -> Format:
    return Format(
        name,
        Dataset,
        partial(read_csv, delimiter=delimiter),
        partial(write_csv, delimiter=delimiter),
        suffixes=(f".{name}",),
        options=("progress", "rename", "features", "unlabeled"),
    )


FORMATS: Registry[Format] = Registry(
    "format",
    {
        entry.name: entry
        for entry in (
            Format(
                "letor",
                Dataset,
                read_letor,
                write_letor,
                iter_letor,
                (".txt", ".svm", ".letor"),
                (
                    *("progress", "group", "zero_based", "keep_nonfinite", "max_features"),
                    "unlabeled",
                ),
            ),
            Format(
                "parquet",
                Dataset,
                partial(read_parquet, kind=Dataset),
                write_parquet,
                iter_parquet,
                (".parquet",),
                ("rename", "features", "unlabeled"),
            ),
            _separated("csv", ","),
            _separated("tsv", "\t"),
            Format("shards", Dataset, _read_shards, _write_shards, _stream_shards),
            Format("qrels", Judgments, read_qrels, write_qrels, None, (".qrels", ".qrel")),
            Format("run", Rankings, read_run, write_run, None, (".run", ".trec")),
            Format("pairs", Preferences, read_pairs, write_pairs, None, (".pref", ".pairs")),
            Format("prefs", PreferenceLevels, read_prefs, write_prefs, None, (".prefs",)),
            Format(
                "qrels-prefs",
                PreferenceLevels,
                partial(read_prefs, subgroups=False),
                partial(write_prefs, subgroups=False),
            ),
            Format("jsonl", CandidateList, read_jsonl, write_jsonl, read_jsonl, (".jsonl",)),
            Format("workbench", Judgments, read_workbench, write_workbench),
            _parquet("qrels-parquet", Judgments),
            _parquet("run-parquet", Rankings),
            _parquet("pairs-parquet", Preferences),
            _parquet("prefs-parquet", PreferenceLevels),
        )
    },
)
"""All formats by name."""


def format_of(source: Source, name: str | None = None) -> Format:
    """Find a format by name or by a path's suffix; a folder is a shard set.

    Example:
        >>> format_of("train.txt.gz").name, format_of("-", "run").name
        ('letor', 'run')
    """
    if name is not None:
        return FORMATS.named(name)
    if isinstance(source, str | os.PathLike):
        suffix = plain_suffix(source)
        for entry in FORMATS.values():
            if suffix in entry.suffixes:
                return entry
        path = Path(source)
        if os.fspath(source) != "-" and (path.is_dir() or not (suffix or path.is_file())):
            return FORMATS["shards"]
    raise ArgumentError(
        f"the format of {source_name(source)} cannot be inferred from its name",
        hint=f"Name it: {', '.join(FORMATS)}.",
    )
