"""``/search`` beside the engine alone: a plain search, and the engine's own rescoring.

A made-up collection is indexed, a ranker is trained on a log of its features and exported to the
engine. Then the same queries are sent in turn to the engine as a plain search, to the engine with
the exported model as a rescoring of the same depth, to the engine as the search that logs features
alone, and to ``/search`` of one process of ``podium serve``: by one client, and by eight at once.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import numpy as np

from benchmarks._report import Report
from benchmarks._serving_processes import Client, cpu_seconds, served
from podium.data import Dataset, read_parquet, read_qrels
from podium.export import connect_engine, export_ranker
from podium.export.writing import ExportSettings
from podium.features import read_definitions
from podium.features.definitions import FeatureDefinitions
from podium.features.feature_log import LogSettings, log_features, upload_feature_set
from podium.features.feature_search import FeatureSearch, feature_search
from podium.features.queries_file import read_queries
from podium.features.search_query import SearchQuery
from podium.rankers import TreeRanker
from tests.engines.install import installed
from tests.engines.servers import OpenSearchServer, Server, Solr9Server, SolrServer
from tests.features.collection import (
    DEFINITIONS,
    Collection,
    collection,
    fill_opensearch,
    fill_solr,
)

DEPTH, SIZE = 100, 10
_MODEL = "search_speed"
CLIENTS = 8
_COLUMNS = ("place",)
"""The columns of the queries that the definitions use."""
_SERVICES = {"/search": "", "/search with id_field": 'id_field = "sku.keyword"\n'}
"""What is measured, and the settings that it adds."""


def check_search_speed(report: Report, documents: int, queries: int, repeats: int) -> None:
    """Compare ``/search`` with the searches of every engine that is installed.

    Args:
        report: Where figures go.
        documents: The number of documents of the made-up collection.
        queries: The number of its queries.
        repeats: How many times each query is sent in each way.
    """
    content = collection(documents, queries)
    servers: dict[str, tuple[str, type[Server], str]] = {
        "OpenSearch": ("opensearch", OpenSearchServer, "opensearch-ltr"),
        "Solr 9": ("solr", Solr9Server, "solr-9"),
    }
    for title, (target, kind, needed) in servers.items():
        if not installed(needed):
            report.note(f"{title} with learning to rank is not installed: see 'make engines'")
            continue
        with kind(optimized=True) as server, tempfile.TemporaryDirectory() as name:
            search, model = _prepare(target, server, content, Path(name))
            _compare(report, title, search, model, Path(name), repeats)


def _prepare(
    target: str, server: Server, content: Collection, folder: Path
) -> tuple[FeatureSearch, str]:
    """Index the documents, log features, train, and put the ranker into the engine."""
    if isinstance(server, SolrServer):
        address = fill_solr(server.core, content.documents)
    else:
        documents = {name: {**each, "sku": name} for name, each in content.documents.items()}
        address = fill_opensearch(server.url, _MODEL, documents)
    (folder / "features.toml").write_text(DEFINITIONS)
    definitions = read_definitions(folder / "features.toml")
    queries = content.write_queries(folder / "queries.jsonl")
    judgments = read_qrels(content.write_qrels(folder / "judgments.qrels"))
    search = feature_search(definitions, target, address, _MODEL)
    upload_feature_set(search)
    log_features(
        search, read_queries(queries), folder / "train.parquet", LogSettings(DEPTH),
        relabel=lambda block: block.relabel(judgments, part=True),
    )  # fmt: skip
    ranker = TreeRanker("LambdaMART", n_estimators=300, min_child_samples=5).fit(
        read_parquet(folder / "train.parquet", Dataset)
    )
    ranker.save(folder / "web.podium")
    options = ExportSettings(model_name=_MODEL, extractors=definitions.extractors(target))
    export = export_ranker(folder / "web.podium", target, folder / "export", options)
    engine = connect_engine(target, server.url if target == "opensearch" else address)
    return search, engine.put(export)


def _compare(
    report: Report, title: str, search: FeatureSearch, model: str, folder: Path, repeats: int
) -> None:
    """Send each query in each way in turn, over one connection for each way."""
    queries = list(read_queries(folder / "queries.jsonl"))
    candidates = FeatureDefinitions((), search.definitions.candidates)
    plain = feature_search(candidates, search.target, search.url)
    ways = {
        "plain search": [plain.search(query, SIZE) for query in queries],
        "rescoring by the engine": [
            search.reranked(query, model, DEPTH, SIZE) for query in queries
        ],
        "search that logs features": [search.search(query, DEPTH) for query in queries],
    }
    address = urlsplit(search.address)
    assert address.port is not None
    searches = [("/search", _search_body(query)) for query in queries]
    with ExitStack() as stack:
        services = {}
        for way, settings in _SERVICES.items():
            if not settings or search.target != "solr":
                services[way] = _serve(stack, search, folder, settings)
        requests = {way: (port, searches) for way, (port, _) in services.items()}
        for way, each in ways.items():
            bodies = [
                (f"{address.path}/{request.path}", msgspec.json.encode(request.content))
                for request in each
            ]
            requests[way] = (address.port, bodies)
        alone = _sample({way: _calls(*each) for way, each in requests.items()}, repeats)
        before = {way: cpu_seconds(process) for way, (_, process) in services.items()}
        together = _sample_together(
            {way: [_calls(*each) for _ in range(CLIENTS)] for way, each in requests.items()},
            repeats,
        )
        sent = len(searches) * (repeats + 1)
        for way, (_, process) in services.items():
            taken = 1000 * (cpu_seconds(process) - before[way]) / sent
            report.note(
                f"{title}: {way} takes {taken:.2f} ms of one core per search in the service"
            )
    _report(report, f"{title}, 1 client", search, alone)
    _report(report, f"{title}, {CLIENTS} clients", search, together)


def _report(
    report: Report, title: str, search: FeatureSearch, seconds: Mapping[str, Sequence[float]]
) -> None:
    p50 = {way: float(np.median(values)) for way, values in seconds.items()}
    for way, values in seconds.items():
        p99 = float(np.quantile(values, 0.99))
        report.note(f"{title}, {way}: p50 {1000 * p50[way]:.2f} ms, p99 {1000 * p99:.2f} ms")
    for way in _SERVICES:
        if way not in p50:
            continue
        ratio = p50[way] / p50["rescoring by the engine"]
        what = f"{title}: p50 of {way} over the engine's rescoring"
        if search.target == "solr" or _SERVICES[way]:
            report.check(what, ratio, 2, at_least=False)
        else:
            report.note(f"{what}: {ratio:.2f} (it reads the id of each candidate, a stored field)")


def _serve(stack: ExitStack, search: FeatureSearch, folder: Path, settings: str) -> tuple[int, int]:
    """Start a service; return its port and the id of its process."""
    (folder / "search.toml").write_text(
        f'engine = "{search.target}"\nurl = "{search.url}"\ndefinitions = "features.toml"\n'
        f'feature_set = "{_MODEL}"\ndepth = {DEPTH}\nbudget_ms = 10000\n{settings}'
    )
    options = ("--search", str(folder / "search.toml"))
    return stack.enter_context(served(folder / "web.podium", *options))


def _calls(port: int, requests: Sequence[tuple[str, bytes]]) -> list[Callable[[], bytes]]:
    """Return what sends each request, all over one connection."""
    client, headers = Client(port), {"Content-Type": "application/json"}
    return [partial(client.post, path, body, headers) for path, body in requests]


def _sample(
    calls: Mapping[str, Sequence[Callable[[], bytes]]], repeats: int
) -> dict[str, list[float]]:
    """Time calls interleaved, after one round that does not count."""
    seconds: dict[str, list[float]] = {way: [] for way in calls}
    for repeat in range(repeats + 1):
        for number in range(min(map(len, calls.values()))):
            for way, each in calls.items():
                start = time.perf_counter()
                answer = each[number]()
                if repeat:
                    seconds[way].append(time.perf_counter() - start)
                elif way in _SERVICES and not json.loads(answer)["reranked"]:
                    raise RuntimeError(answer.decode())
    return seconds


def _sample_together(
    clients: Mapping[str, Sequence[Sequence[Callable[[], bytes]]]], repeats: int
) -> dict[str, list[float]]:
    """Time the calls of several clients at once, one way after the other in each round."""
    seconds: dict[str, list[float]] = {way: [] for way in clients}

    def timed(calls: Sequence[Callable[[], bytes]]) -> list[float]:
        values = []
        for call in calls:
            start = time.perf_counter()
            call()
            values.append(time.perf_counter() - start)
        return values

    with ThreadPoolExecutor(CLIENTS) as pool:
        for repeat in range(repeats + 1):
            for way, each in clients.items():
                # Each client sends a part of the queries, in another order each time.
                parts = [calls[(number + repeat) % CLIENTS :: CLIENTS]
                         for number, calls in enumerate(each)]  # fmt: skip
                for values in pool.map(timed, parts):
                    if repeat:
                        seconds[way] += values
    return seconds


def _search_body(query: SearchQuery) -> bytes:
    columns = {name: query.columns[name] for name in _COLUMNS}
    return msgspec.json.encode({"query": query.text, "size": SIZE, "columns": columns})
