"""Reads queries and candidates from uploaded, untrusted files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from podium.data import Candidate, CandidateList, Rankings, read_jsonl, read_run
from podium.data.files import numbered_lines
from podium.data.json_lines import json_lines
from podium.errors import DataError
from podium.studio.json_types import JsonObject
from podium.studio.store.metadata import plain_fields

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_QUERIES = 100_000
MAX_BYTES = 1 << 30
"""How large a file may be once it is decompressed: a small one can stand for a huge one."""
MAX_DEPTH = 1000
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_TEXTS = ("title", "text", "html", "url")


@dataclass(frozen=True)
class Upload:
    """An uploaded file.

    Attributes:
        path: Where it is stored.
        name: Its original name, for messages.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class QueryText:
    """The text of a query."""

    query_id: str
    query: str
    description: str = ""


@dataclass(frozen=True)
class ImportedQuery:
    """A query from an import.

    Attributes:
        entry: The query and its candidates.
        rankings: Rankings of the candidates by name, if there are several.
        left_out: How many of its documents were left out, as they have no text.
        in_words: Whether a file gave its text; else people see its id.
    """

    entry: CandidateList
    rankings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: int = 0
    in_words: bool = True


def has_text(candidate: Candidate) -> bool:
    """Whether a person can see anything of a document."""
    return bool(candidate.title or candidate.text or candidate.html)


class _Readable(Protocol):
    """What is read of a file, be it Python's or Arrow's."""

    def read(self, size: int, /) -> bytes: ...


class _Limited(io.RawIOBase):
    """A decompressed file, limited in size."""

    def __init__(self, stream: _Readable, name: str, most: int) -> None:
        self._stream = stream
        self._most = self._left = most
        self.name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        try:
            data = self._stream.read(min(len(view), self._left + 1))
        except OSError as error:
            raise DataError(
                "is damaged or cut short", path=self.name, hint="Compress it again."
            ) from error
        self._left -= len(data)
        if self._left < 0:
            raise DataError(
                f"holds more than {self._most >> 20} MiB", path=self.name, hint="Split it."
            )
        view[: len(data)] = data
        return len(data)


@contextmanager
def open_upload(upload: Upload, most: int = MAX_BYTES) -> Iterator[IO[bytes]]:
    """Open an uploaded file, decompressed and limited in size."""
    with upload.path.open("rb") as file:
        yield limited(file, upload.name, most)


def limited(file: IO[bytes], name: str, most: int) -> IO[bytes]:
    """A file that someone sent, decompressed and limited in size.

    Args:
        file: The file, at its beginning.
        name: Its name, for messages.
        most: How many bytes it may hold once it is decompressed.
    """
    codec = _MAGIC.get(file.read(2)) or _MAGIC.get((file.seek(0), file.read(4))[1])
    file.seek(0)
    stream: _Readable = file
    if codec:
        stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)
    result = io.BufferedReader(_Limited(stream, name, most))
    # Readers decompress by themselves what looks compressed, and know no limit.
    head = result.peek(4)
    if codec and any(head.startswith(magic) for magic in _MAGIC):
        raise DataError("is compressed twice", path=name, hint="Decompress it once.")
    return result


def read_candidates(upload: Upload) -> Iterator[ImportedQuery]:
    """Queries with their candidates, from Podium's JSONL."""
    with open_upload(upload) as stream:
        for number, entry in enumerate(read_jsonl(stream)):
            _check_count(number + 1)
            yield ImportedQuery(entry)


def read_runs(
    runs: Sequence[Upload],
    documents: Upload,
    queries: Upload | None,
    depth: int,
    *,
    skip_missing: bool = False,
) -> Iterator[ImportedQuery]:
    """Queries from TREC runs and the texts of the documents in them.

    Args:
        runs: One run, or several that are compared or pooled.
        documents: JSONL with ``document_id`` and any of title, text, html and url; or lines of
            id, tab, text; or id, tab, title, tab, text. A text may have tabs: two or more.
        queries: Lines of id, tab, words; or JSONL with query_id, query and description. Without
            it the ids are shown.
        depth: How many documents of each ranking to take.
        skip_missing: Whether to leave out documents without a text, instead of refusing them.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise DataError(f"the depth is {depth}", hint=f"Give 1 to {MAX_DEPTH}.")
    tables = {}
    for upload in runs:
        with open_upload(upload) as stream:
            run = read_run(stream)
        name = run.name if run.name not in tables else upload.name
        if name in tables:
            raise DataError(f"two runs are called {name!r}", hint="Give each its own tag.")
        tables[name] = _top_documents(run, depth)
    query_texts = {each.query_id: each for each in read_queries(queries)} if queries else {}
    names = list(dict.fromkeys(query for table in tables.values() for query in table))
    _check_count(len(names))
    needed = {
        document for table in tables.values() for ranked in table.values() for document, _ in ranked
    }
    documents_by_id = _read_documents(documents, needed)
    for query in names:
        ranked = {name: table[query] for name, table in tables.items() if query in table}
        missing = {
            document for each in ranked.values() for document, _ in each
        } - documents_by_id.keys()
        if missing and not skip_missing:
            raise DataError(
                f"document {min(missing)!r} of query {query!r} is missing",
                path=documents.name,
                hint="Give the texts of all ranked documents, take fewer of each ranking, "
                "or leave out documents without text.",
            )
        read = _from_runs(query_texts.get(query, QueryText(query, query)), ranked, documents_by_id)
        yield replace(read, left_out=len(missing), in_words=query in query_texts)


def read_queries(upload: Upload) -> Iterator[QueryText]:
    """Queries in words: JSONL, or lines of id, tab, words."""
    with open_upload(upload) as stream:
        yield from queries_of(stream)


def queries_of(stream: IO[bytes]) -> Iterator[QueryText]:
    r"""Queries in words, from a stream.

    Example:
        >>> list(queries_of(io.BytesIO(b"q1\tred shoes\n")))
        [QueryText(query_id='q1', query='red shoes', description='')]
    """
    seen: set[str] = set()
    for number, line in numbered_lines(stream):
        if not line.strip():
            continue
        query_text = _parse_query(line, stream, number)
        if not query_text.query_id or query_text.query_id in seen:
            raise DataError(
                f"query id {query_text.query_id!r} is empty or a duplicate",
                path=getattr(stream, "name", None),
                line=number,
                hint="Give each query its own.",
            )
        seen.add(query_text.query_id)
        _check_count(len(seen))
        yield query_text


def _parse_query(line: bytes, stream: IO[bytes], number: int) -> QueryText:
    name = getattr(stream, "name", None)
    if line.lstrip().startswith(b"{"):
        content = next(iter(json_lines(io.BytesIO(line), dict)))
        values = {key: content.get(key, "") for key in ("query_id", "query", "description")}
        if content.keys() - values.keys() or not all(isinstance(v, str) for v in values.values()):
            raise DataError(
                "is not a valid query",
                path=name,
                line=number,
                hint="Give query_id, query, description.",
            )
        return QueryText(**values)
    words = _decoded(line, name, number).split("\t")
    if len(words) not in (2, 3):
        raise DataError(
            f"has {len(words)} columns", path=name, line=number, hint="Write id, tab, words."
        )
    return QueryText(*(word.strip() for word in words))


def _top_documents(run: Rankings, depth: int) -> dict[str, list[tuple[str, float]]]:
    result: dict[str, list[tuple[str, float]]] = {}
    for index, query in enumerate(run.query_ids.to_pylist()):
        begin, end = int(run.offsets[index]), int(run.offsets[index + 1])
        scores = run.scores[begin:end]
        best = np.argsort(-scores, kind="stable")[:depth]
        names = run.document_ids[begin:end].take(pa.array(best)).to_pylist()
        result[query] = list(zip(names, scores[best].tolist(), strict=True))
    return result


def _read_documents(upload: Upload, needed: set[str]) -> dict[str, JsonObject]:
    """The texts of the documents that are needed; the rest of a collection is passed over."""
    result: dict[str, JsonObject] = {}
    with open_upload(upload) as stream:
        for number, line in numbered_lines(stream):
            if not line.strip():
                continue
            name, fields = _document(line, upload.name, number)
            if name in needed:
                result[name] = fields
    return result


def _document(line: bytes, source: str, number: int) -> tuple[str, JsonObject]:
    if line.lstrip().startswith(b"{"):
        try:
            content = next(iter(json_lines(io.BytesIO(line), dict)))
        except DataError as error:
            raise error.at(source, number) from error
        name = content.get("document_id")
        fields: JsonObject = {key: content.get(key, "") for key in _TEXTS}
        metadata = content.get("metadata", {})
        texts = all(isinstance(value, str) for value in fields.values())
        if not isinstance(name, str) or not texts or not isinstance(metadata, dict):
            raise DataError(
                "is not a valid document",
                path=source,
                line=number,
                hint="Give document_id and text.",
            )
        rest = plain_fields(content, {"document_id", "metadata", *_TEXTS})
        return name, fields | {"metadata": {**rest, **metadata}}
    name, tab, text = _decoded(line, source, number).partition("\t")
    if not tab:
        raise DataError("has no tab", path=source, line=number, hint="Write id, tab, text.")
    if text.count("\t") == 1:
        title, _, text = text.partition("\t")
        return name, {"title": title, "text": text}
    return name, {"text": text}


def _from_runs(
    query_text: QueryText,
    ranked: Mapping[str, list[tuple[str, float]]],
    documents_by_id: Mapping[str, JsonObject],
) -> ImportedQuery:
    """A query with the documents that have a text."""
    rankings = {
        name: [document for document, _ in each if document in documents_by_id]
        for name, each in ranked.items()
    }
    # Scores of several systems are on different scales: only one system's put them in order.
    scores = dict(next(iter(ranked.values()))) if len(ranked) == 1 else {}
    candidates = tuple(
        Candidate(document, score=scores.get(document), **documents_by_id[document])
        for document in dict.fromkeys(each for names in rankings.values() for each in names)
    )
    entry = CandidateList(query_text.query_id, query_text.query, candidates, query_text.description)
    return ImportedQuery(entry, rankings if len(rankings) > 1 else {})


def _decoded(line: bytes, name: str | None, number: int) -> str:
    try:
        return line.decode()
    except UnicodeError as error:
        raise DataError(
            "is not UTF-8 text", path=name, line=number, hint="Convert the file first."
        ) from error


def _check_count(count: int) -> None:
    if count > MAX_QUERIES:
        raise DataError(f"there are more than {MAX_QUERIES} queries", hint="Split them.")


def without_empty(entries: Iterable[ImportedQuery]) -> Iterator[ImportedQuery]:
    """Leave out documents without title, text and HTML, and count them."""
    for read in entries:
        kept = tuple(filter(has_text, read.entry.candidates))
        names = {each.document_id for each in kept}
        rankings = {
            name: [document for document in ranked if document in names]
            for name, ranked in read.rankings.items()
        }
        left_out = read.left_out + len(read.entry.candidates) - len(kept)
        yield replace(
            read, entry=replace(read.entry, candidates=kept), rankings=rankings, left_out=left_out
        )


def limit_size(entries: Iterable[ImportedQuery]) -> Iterator[ImportedQuery]:
    """Pass queries on; refuse if their texts exceed the size limit in total."""
    size = 0
    for read in entries:
        size += sum(
            len(each.text) + len(each.html) + len(each.title) + len(str(each.metadata))
            for each in read.entry.candidates
        )
        if size > MAX_BYTES:
            raise DataError(f"the texts are longer than {MAX_BYTES >> 20} MiB", hint="Split them.")
        yield read
