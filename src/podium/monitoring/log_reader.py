"""Ranking logs, as ``podium serve`` writes them, read as data sets."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.definitions_hash import checked_hash, common_hash
from podium.data.json_lines import parse_object
from podium.errors import DataError
from podium.kernels import Doubles, Floats

_LONGEST_LINE = 1 << 28
_NUMBERS = {int, float}
_RANKINGS = 100
"""The rankings that a block has at most."""

_KEEP_LAST = """
INSERT INTO last VALUES (?, ?, ?) ON CONFLICT (query) DO UPDATE
SET time = excluded.time, place = excluded.place WHERE excluded.time >= time
"""


@dataclass(frozen=True)
class _Entry:
    query: str
    ids: list[str]
    features: dict[str, Floats]
    scores: Doubles
    definitions: str | None
    time: str
    model: str


@dataclass(frozen=True)
class LoggedRankings:
    """The rankings of a log, in the order in which they were made.

    Attributes:
        feature_names: The names of the features.
        queries: The id of each ranking's query, or its text if it has no id.
        document_ids: The ids of each ranking's documents.
        features: The features of each ranking's documents.
        scores: Their scores.
        definitions_hash: The hash of the definitions that the features follow, or None.
        models: The names of the models that made them.
    """

    feature_names: tuple[str, ...]
    queries: tuple[str, ...]
    document_ids: tuple[tuple[str, ...], ...]
    features: tuple[Floats, ...]
    scores: tuple[Doubles, ...]
    definitions_hash: str | None = None
    models: tuple[str, ...] = ()

    def dataset(self) -> Dataset:
        """Return the last ranking of each query as a data set, all of whose labels are 0."""
        last = {query: number for number, query in enumerate(self.queries)}
        numbers = [number for number in last.values() if len(self.scores[number])]
        if not numbers:
            raise DataError("the log has no ranking", hint="Check its folder.")
        rows = np.concatenate([self.features[number] for number in numbers])
        data = Dataset.from_arrays(
            rows,
            np.zeros(len(rows), np.float32),
            group=[len(self.scores[number]) for number in numbers],
            query_ids=[self.queries[number] for number in numbers],
            document_ids=[name for number in numbers for name in self.document_ids[number]],
            feature_names=self.feature_names,
        )
        return replace(data, definitions_hash=self.definitions_hash)


def read_ranking_log(path: str | os.PathLike[str], *, model: str | None = None) -> LoggedRankings:
    """Read a file of a ranking log, or all files of a folder.

    The last line of a file may be unfinished, if its process was killed, and is then left out.
    Rankings without a query have one of their own.

    Args:
        path: A file, or a folder with ``rankings-*.jsonl.gz``.
        model: The name of the model whose rankings are read; all by default.

    Raises:
        DataError: If a line is not a ranking, or if rankings have different features.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "rankings-1.jsonl"
        >>> line = b'{"query": "q", "ids": [7], "scores": [0.5], "features": {"a": [2]}}'
        >>> _ = file.write_bytes(line + bytes([10]))
        >>> read_ranking_log(file).dataset().features.tolist()
        [[2.0]]
    """
    # Each process of a server has a file of its own: the files overlap in time.
    every = (entry for _, entry in _all_entries(_files(Path(path)), model))
    entries = sorted(every, key=lambda each: each.time)
    return _logged(entries, tuple(entries[0].features))


def last_rankings(path: str | os.PathLike[str], *, model: str | None = None) -> Iterator[Dataset]:
    """Yield the last ranking of each query, in blocks, all of whose labels are 0.

    The files are read twice: what is kept of the first time is only where each query's last
    ranking is, in a temporary file, so that a log of any number of queries is read.
    """
    files = _files(Path(path))
    definitions: set[str | None] = set()
    names: tuple[str, ...] = ()

    def places() -> Iterator[tuple[bytes, bytes, int]]:
        nonlocal names
        for place, entry in _all_entries(files, model):
            names = names or tuple(entry.features)
            definitions.add(entry.definitions)
            yield _bytes(entry.query), _bytes(entry.time), place

    with closing(sqlite3.connect("")) as last:
        last.execute("CREATE TABLE last (query BLOB PRIMARY KEY, time BLOB, place INTEGER)")
        try:
            last.executemany(_KEEP_LAST, places())
            shared = common_hash(sorted(definitions, key=str), "the rankings")
            rows = last.execute("SELECT place FROM last ORDER BY place")
            kept = _at((place for (place,) in rows), _all_entries(files, model))
            empty = True
            while some := list(islice(kept, _RANKINGS)):
                empty = False
                yield replace(_logged(some, names).dataset(), definitions_hash=shared)
        except sqlite3.Error as error:
            raise DataError(
                f"the queries of the log do not fit in a temporary file ({error})",
                hint="Set TMPDIR to a folder with more space.",
            ) from error
    if empty:
        raise DataError("the log has no ranking", hint="Check its folder.")


def _bytes(text: str) -> bytes:
    """Encode any text of JSON; bytes compare as the texts do."""
    return text.encode("utf-8", "surrogatepass")


def _at(places: Iterator[int], entries: Iterator[tuple[int, _Entry]]) -> Iterator[_Entry]:
    """Yield the rankings at some places, which ascend, that have documents."""
    chosen = next(places, None)
    for place, entry in entries:
        if place == chosen:
            chosen = next(places, None)
            if len(entry.scores):
                yield entry


def _logged(entries: Sequence[_Entry], names: tuple[str, ...]) -> LoggedRankings:
    return LoggedRankings(
        names,
        tuple(entry.query for entry in entries),
        tuple(tuple(entry.ids) for entry in entries),
        tuple(np.stack([entry.features[name] for name in names], axis=1) for entry in entries),
        tuple(entry.scores for entry in entries),
        common_hash([entry.definitions for entry in entries], "the rankings"),
        tuple(sorted({entry.model for entry in entries})),
    )


def _all_entries(files: Sequence[Path], model: str | None) -> Iterator[tuple[int, _Entry]]:
    """Yield all rankings, each with a number for its place, which another reading has again.

    A server may write to the files in between.
    """
    names: tuple[str, ...] | None = None
    for index, file in enumerate(files):
        for number, entry in _entries(file, model):
            present = tuple(entry.features)
            if names is None:
                names = present
            elif set(present) != set(names):
                raise DataError(
                    "has a ranking with other features than the first",
                    path=file, line=number, hint="Name one model, or read the files apart.",
                )  # fmt: skip
            yield (index << 40) + number, entry
    if names is None:
        where = files[0] if len(files) == 1 else files[0].parent
        raise DataError("has no ranking", path=where, hint="Check the folder and the model.")


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("rankings-*.jsonl*"))
    if not files:
        raise DataError("has no file of a ranking log", path=path, hint="Check the folder.")
    return files


def _entries(file: Path, model: str | None) -> Iterator[tuple[int, _Entry]]:
    number = 0
    try:
        compressed = file.suffix == ".gz"
        with gzip.open(file) if compressed else file.open("rb") as stream, suppress(EOFError):
            while line := stream.readline(_LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n"):
                    if len(line) == _LONGEST_LINE:
                        raise DataError("is too long", hint="It is not a line of a ranking log.")
                    return
                content = parse_object(line)
                if model is None or content.get("model") == model:
                    yield number, _entry(content, f"{file.name}:{number}")
    except DataError as error:
        raise error.at(file, number) from error
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot be read ({reason})", path=file, hint="Check the path.") from error


def _entry(content: dict[str, Any], own_name: str) -> _Entry:
    try:
        ids, scores, columns = content["ids"], content["scores"], content["features"]
        query = content.get("query_id")
        if query is None:  # logs of 0.1.0 have one name
            query = content["query"]
        features = {
            str(name): _numbers(column, missing=True).astype(np.float32)
            for name, column in columns.items()
        }
        lengths = {len(ids), len(scores), *map(len, features.values())}
        if len(lengths) != 1 or not features:
            raise ValueError("its columns differ in length")
        entry = _Entry(
            own_name if query is None else str(query),
            [str(each) for each in ids],
            features,
            _numbers(scores, missing=False),
            checked_hash(content.get("definitions")),
            str(content.get("time", "")),
            str(content.get("model", "")),
        )
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise DataError(
            f"is not a ranking of a log ({error!r})", hint="Give a log of podium serve."
        ) from error
    return entry


def _numbers(column: list[Any], *, missing: bool) -> Doubles:
    """Return numbers of JSON, None as NaN where values may be missing."""
    unknown = column.count(None) if missing else 0
    if not {type(value) for value in column} <= _NUMBERS | ({type(None)} if unknown else set()):
        raise ValueError("it has values that are not numbers")
    numbers = np.array(column, np.float64)
    if np.count_nonzero(np.isfinite(numbers)) != len(column) - unknown:
        raise ValueError("it has numbers that are not finite")
    return numbers
