"""Log the features of queries' candidates in an engine, as a data set on disk.

What the engine answered is kept in a journal beside the output, one line per query, so that a log
that was killed goes on where it was. At the end the journal becomes a Parquet file, in row groups
of whole queries, and is removed. Of queries that are done, only ids and digests are in memory.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from podium.data import Dataset, write_parquet
from podium.data.atomic import atomic_write, try_lock
from podium.data.files import Reporter, writing
from podium.data.json_lines import json_line, json_lines
from podium.errors import ArgumentError, DataError
from podium.export.live.http_client import EngineClient, Retry
from podium.export.live.solr import reload_replicas
from podium.features.definitions import FeatureRows
from podium.features.feature_search import (
    MOST_DOCUMENTS,
    EngineRequest,
    FeatureSearch,
    QueryRefusedError,
)
from podium.features.search_query import LoggedDocument, SearchQuery

_FORMAT = 1


@dataclass(frozen=True)
class LogSettings:
    """How to log.

    Attributes:
        depth: The number of candidates per query.
        rate: The largest number of queries per second; None for no limit.
        retry: How often a request is sent again if the engine is busy or out of reach.
    """

    depth: int = 100
    rate: float | None = None
    retry: Retry = field(default_factory=Retry)


@dataclass(frozen=True)
class FeatureLog:
    """What was logged.

    Attributes:
        queries: The number of queries in the file.
        rows: The number of documents in the file.
        asked: The number of queries that the engine was asked for, without those of an earlier log
            that was killed.
        empty: The number of queries without a candidate.
        unjudged: The number of queries that were left out because they were not judged.
        refused: Why the engine refused a query, by the query's id; these are left out, too. A later
            log of the same queries asks for them again.
    """

    queries: int
    rows: int
    asked: int
    empty: int
    unjudged: int
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def refused_share(self) -> float:
        """The share of the queries that the engine refused."""
        total = self.queries + self.empty + self.unjudged + len(self.refused)
        return len(self.refused) / total if total else 0.0


@dataclass(frozen=True)
class _Entry:
    """A line of the journal: a query's documents and their rows."""

    query: str
    key: str
    ids: list[str]
    rows: str


def log_features(
    search: FeatureSearch,
    queries: Iterable[SearchQuery],
    output: str | os.PathLike[str],
    settings: LogSettings | None = None,
    *,
    relabel: Callable[[Dataset], Dataset] | None = None,
    progress: Reporter | None = None,
) -> FeatureLog:
    """Fetch the candidates of queries with their features, and write them as a data set.

    Documents are in the order of the index, in which engines put those with equal scores. A
    manifest beside the data set has all counts and the queries that the engine refused.

    Args:
        search: The engine's searches; its feature set must be there.
        queries: The queries.
        output: The Parquet file to write.
        settings: How.
        relabel: Gives a part of the data its labels, and may leave queries out; without it all
            labels are 0.
        progress: Called with the number of queries done, and None.

    Raises:
        DataError: If the engine has another feature set, or does not answer.

    Example:
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import EngineSource, FieldSource
        >>> from podium.features.definitions import FeatureDefinitions
        >>> from podium.features.feature_search import feature_search
        >>> features = (FeatureDefinition("clicks", FieldSource("clicks")),)
        >>> definitions = FeatureDefinitions(features, EngineSource({"match_all": {}}))
        >>> search = feature_search(definitions, "opensearch", "http://localhost:1/shop")
        >>> log_features(search, [SearchQuery("1", "shoes")], "a", LogSettings(depth=10))
        Traceback (most recent call last):
        podium.errors.ArgumentError: a is not the name of a Parquet file. Use .parquet.
    """
    settings = settings or LogSettings()
    if not 1 <= settings.depth <= MOST_DOCUMENTS:
        raise ArgumentError(
            f"the depth is {settings.depth}", hint=f"Give 1 to {MOST_DOCUMENTS} candidates."
        )
    if settings.rate is not None and not 0 < settings.rate < np.inf:
        raise ArgumentError(f"the rate is {settings.rate}", hint="Give queries per second.")
    if Path(output).suffix != ".parquet":
        raise ArgumentError(f"{output!s} is not the name of a Parquet file", hint="Use .parquet.")
    path = Path(f"{os.fspath(output)}.journal")
    compute = FeatureRows(search.definitions)
    compute.load()
    asked, keys = 0, {}
    refused: dict[str, str] = {}
    heading = _heading(search, settings)
    with _journal(path, heading) as (journal, finished):
        with EngineClient(search.address, search.title, settings.retry) as client:
            check_feature_set(search, client)
            pace = _Pace(settings.rate)
            for number, query in enumerate(queries, 1):
                keys[query.id] = key = _key(query)
                if key not in finished:
                    pace.wait()
                    asked += 1
                    try:
                        entry = _ask(client, search, compute, query, settings.depth)
                    except QueryRefusedError as error:
                        refused[query.id] = error.problem
                    else:
                        journal.write(json_line({"key": key, **entry}))
                        journal.flush()
                if progress is not None:
                    progress(number, None)
        log = FeatureLog(
            asked=asked, refused=refused, **_write(path, search, keys, refused, output, relabel)
        )
        _write_manifest(Path(f"{os.fspath(output)}.manifest.json"), heading, log)
        path.unlink()
    return log


def upload_feature_set(search: FeatureSearch, retry: Retry | None = None) -> None:
    """Put the feature set of definitions into an engine, unless it is there.

    One of the same name with other features is not replaced: a model may use it.

    Raises:
        DataError: If there is one, or the engine does not answer.

    Example:
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import EngineSource, FieldSource
        >>> from podium.features.definitions import FeatureDefinitions
        >>> from podium.features.feature_search import feature_search
        >>> features = (FeatureDefinition("clicks", FieldSource("clicks")),)
        >>> definitions = FeatureDefinitions(features, EngineSource({"match_all": {}}))
        >>> search = feature_search(definitions, "opensearch", "http://localhost:1/shop")
        >>> upload_feature_set(search)
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    request = search.stored()
    if request is None:
        return
    with EngineClient(search.address, search.title, retry) as client:
        if search.is_stored(*send(client, request)):
            return
        for upload in search.uploads():
            send(client, upload)
        if search.target == "solr":
            reload_replicas(client)
        search.check_stored(*send(client, request))


def check_feature_set(search: FeatureSearch, client: EngineClient) -> None:
    """Raise a DataError unless the engine has the feature set that the definitions say.

    Example:
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import EngineSource, FieldSource
        >>> from podium.features.definitions import FeatureDefinitions
        >>> from podium.features.feature_search import feature_search
        >>> features = (FeatureDefinition("clicks", FieldSource("clicks")),)
        >>> definitions = FeatureDefinitions(features, EngineSource({"match_all": {}}))
        >>> search = feature_search(definitions, "opensearch", "http://localhost:1/shop")
        >>> with EngineClient(search.address, search.title) as client:
        ...     check_feature_set(search, client)
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    request = search.stored()
    if request is not None:
        search.check_stored(*send(client, request))


def send(client: EngineClient, request: EngineRequest) -> tuple[int, Any]:
    """Send a request, and return the status and the parsed answer."""
    return client.request(request.method, request.path, request.content, allowed=request.allowed)


def _ask(
    client: EngineClient,
    search: FeatureSearch,
    compute: FeatureRows,
    query: SearchQuery,
    depth: int,
) -> dict[str, Any]:
    try:
        documents = _documents(client, search, query, depth)
    except QueryRefusedError:
        raise
    except DataError as error:
        raise DataError(f"query {query.id!r}: {error.problem}", hint=error.hint) from error
    # As engines and services order documents to which a ranker gives equal scores.
    documents.sort(key=lambda document: document.number)
    rows = compute(query, documents)
    content = base64.b64encode(rows.astype("<f4").tobytes()).decode()
    return {"query": query.id, "ids": [document.id for document in documents], "rows": content}


def _documents(
    client: EngineClient, search: FeatureSearch, query: SearchQuery, depth: int
) -> list[LoggedDocument]:
    steps = search.asking(query, depth)
    request = next(steps)
    while True:
        answer = send(client, request)
        try:
            request = steps.send(answer)
        except StopIteration as end:
            documents: list[LoggedDocument] = end.value
            return documents


class _Pace:
    """Keeps requests below a rate."""

    def __init__(self, rate: float | None) -> None:
        self._gap = 0.0 if rate is None else 1.0 / rate
        self._next = time.monotonic()

    def wait(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + self._gap


def _key(query: SearchQuery) -> str:
    content = json.dumps([query.id, query.text, sorted(query.columns.items())])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _heading(search: FeatureSearch, settings: LogSettings) -> dict[str, Any]:
    """Return what must be the same for a log to go on: where, what and how much."""
    parts = urlsplit(search.url)
    return {
        "format": _FORMAT,
        "definitions": search.definitions.hash,
        "candidates": search.candidates_key,
        "engine": urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")),
        "depth": settings.depth,
    }


@contextmanager
def _journal(path: Path, heading: dict[str, Any]) -> Iterator[tuple[IO[bytes], set[str]]]:
    """Open a journal to append to, with the keys of the queries that are in it."""
    with writing(path), path.open("ab+") as journal:
        if not try_lock(journal):
            raise DataError(
                "is being written by another process", path=path, hint="Wait until it is done."
            )
        _drop_unfinished(journal)
        lines = _lines(path)
        is_same = next(lines, None) == heading
        finished = {line.key for line in lines if isinstance(line, _Entry)}
        if finished and not is_same:
            raise DataError(
                "is of a log with other definitions, engine or depth",
                path=path,
                hint="Log with the same ones to go on, or remove the file.",
            )
        first = json_line(heading)
        if not is_same:
            journal.truncate(0)
            journal.write(first)
            journal.flush()
        try:
            yield journal, finished
        finally:
            if path.exists() and path.stat().st_size == len(first):
                path.unlink()


def _drop_unfinished(journal: IO[bytes]) -> None:
    """Cut off a last line that has no end."""
    end = journal.seek(0, os.SEEK_END)
    position = end
    while position:
        start = max(0, position - (1 << 16))
        journal.seek(start)
        feed = journal.read(position - start).rfind(b"\n")
        if feed >= 0:
            position = start + feed + 1
            break
        position = start
    journal.truncate(position)
    journal.seek(position)


def _lines(path: Path) -> Iterator[dict[str, Any] | _Entry]:
    """Yield the heading of a journal, if it has one, and its entries."""
    return json_lines(path, lambda content: content if "format" in content else _entry(content))


def _entry(content: dict[str, Any]) -> _Entry:
    ids = content.get("ids")
    texts = [content.get("query"), content.get("key"), content.get("rows")]
    if not isinstance(ids, list) or not all(isinstance(text, str) for text in [*texts, *ids]):
        raise DataError("is not a line of a log", hint="Remove the file, and log again.")
    return _Entry(content["query"], content["key"], ids, content["rows"])


def _write(
    path: Path,
    search: FeatureSearch,
    keys: dict[str, str],
    refused: Mapping[str, str],
    output: str | os.PathLike[str],
    relabel: Callable[[Dataset], Dataset] | None,
) -> dict[str, int]:
    counts = {"queries": 0, "rows": 0, "empty": 0, "unjudged": 0}

    def blocks() -> Iterator[Dataset]:
        for entry in _lines(path):
            if not isinstance(entry, _Entry) or keys.get(entry.query) != entry.key:
                continue  # of a query that was changed or removed since
            if not entry.ids:
                counts["empty"] += 1
                continue
            block = _dataset(entry, search)
            judged = block if relabel is None else relabel(block)
            counts["unjudged"] += len(block) - len(judged)
            counts["queries"] += len(judged)
            counts["rows"] += judged.rows
            yield judged

    try:
        write_parquet(blocks(), output)
    except DataError as error:
        if counts["queries"]:
            raise
        reason = "none was judged" if counts["unjudged"] else "none has a candidate"
        if refused:
            example = next(iter(refused.values()))
            reason = f"{len(refused)} were refused ({example}) and {reason}"
        raise DataError(
            f"of {len(keys)} queries {reason}, so there is nothing to write",
            hint="Compare the query ids, and try the query of [candidates] in the engine.",
        ) from error
    return counts


def _write_manifest(path: Path, heading: dict[str, Any], log: FeatureLog) -> None:
    content = json.dumps(heading | asdict(log), indent=1)
    with atomic_write(path) as file:
        file.write(content.encode() + b"\n")


def _dataset(entry: _Entry, search: FeatureSearch) -> Dataset:
    names = search.definitions.names
    try:
        values = np.frombuffer(base64.b64decode(entry.rows, validate=True), "<f4")
    except ValueError:
        values = np.empty(0, np.float32)
    if len(values) != len(entry.ids) * len(names):
        raise DataError("a line of the journal is damaged", hint="Remove the file, and log again.")
    data = Dataset.from_arrays(
        values.reshape(-1, len(names)),
        np.zeros(len(entry.ids), np.float32),
        group=[len(entry.ids)],
        query_ids=[entry.query],
        document_ids=entry.ids,
        feature_names=names,
    )
    return replace(data, definitions_hash=search.definitions.hash)
