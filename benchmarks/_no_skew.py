"""Features in training and in production: an engine and a file of its log rank alike.

A made-up collection (and CACM, where it is) is indexed, its features are logged by their
definitions, a ranker is trained on the log and exported. Then every query is ranked three times: by
the engine with the exported model, by the ranker on a fresh log, and by ``podium serve``. The live
check by queries compares the same, also on three shards, and must find features that are swapped.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks._report import Report
from benchmarks._serving_processes import served
from podium.data import Dataset, read_parquet, read_qrels
from podium.export import connect_engine, export_ranker
from podium.export.folder import ExportFolder
from podium.export.writing import ExportSettings
from podium.features import read_definitions
from podium.features.feature_log import LogSettings, log_features, upload_feature_set
from podium.features.feature_search import FeatureSearch, feature_search
from podium.features.queries_file import read_queries
from podium.features.query_check import QueryVerification, verify_queries
from podium.features.search_query import SearchQuery
from podium.kernels import Doubles
from podium.rankers import Ranker, TreeRanker, load_ranker
from studies.texts import read_cacm as cacm_texts
from tests.engines.install import installed
from tests.engines.servers import OpenSearchServer, Server, Solr9Server
from tests.features.collection import (
    DEFINITIONS,
    Collection,
    collection,
    fill_opensearch,
    fill_solr,
)

CACM = Path(__file__).parents[2] / "shared/data/text/cacm"
DEPTH, TOP = 100, 10
_MODEL = "no_skew"
_SWAPPED = ("title_match", "body_match")


@dataclass(frozen=True)
class Skew:
    """How rankings of the same queries differ.

    Attributes:
        queries: The number of queries.
        engine_tops: Queries whose top 10 by the engine are others than by the ranker.
        served_tops: Queries whose top 10 by the service are others than by the ranker.
        largest: The largest difference of a score between engine and ranker.
        bound: What the export says rounding explains.
        changed_values: Feature values that differ between the two logs.
        checked: What the live check by queries finds.
        faulty: What it finds where two features of the deployed model are swapped.
    """

    queries: int
    engine_tops: int
    served_tops: int
    largest: float
    bound: float
    changed_values: int
    checked: QueryVerification
    faulty: QueryVerification


def check_no_skew(report: Report, documents: int, queries: int) -> None:
    """Compare rankings in every engine that is installed.

    Args:
        report: Where figures go.
        documents: The number of documents of the made-up collection.
        queries: The number of its queries.
    """
    collections = {"made-up": collection(documents, queries)}
    if CACM.is_dir():
        collections["CACM"] = read_cacm(CACM)
    else:
        report.note("CACM is not in ../shared/data")
    servers: dict[str, tuple[str, type[Server], str]] = {
        "OpenSearch": ("opensearch", OpenSearchServer, "opensearch-ltr"),
        "Solr 9": ("solr", Solr9Server, "solr-9"),
    }
    for title, (target, kind, needed) in servers.items():
        if not installed(needed):
            report.note(f"{title} with learning to rank is not installed: see 'make engines'")
            continue
        with kind() as server:
            for name, content in collections.items():
                with tempfile.TemporaryDirectory() as folder:
                    skew = measure_skew(target, server, content, Path(folder))
                what = f"{title}, {name}, {skew.queries:,} queries: "
                report.check(f"{what}other top 10 by engine", skew.engine_tops, 0, False, "")
                report.check(f"{what}other top 10 by service", skew.served_tops, 0, False, "")
                report.check(f"{what}changed values", skew.changed_values, 0, False, "")
                report.check(f"{what}score difference", skew.largest, skew.bound, False, "")
                _check_live(report, what, skew.checked, skew.faulty)
            if target == "opensearch":
                with tempfile.TemporaryDirectory() as folder:
                    on_shards = _on_shards(server, collections["made-up"], Path(folder), 3)
                _check_live(report, f"{title}, made-up, 3 shards: ", *on_shards)


def _check_live(
    report: Report, what: str, checked: QueryVerification, faulty: QueryVerification
) -> None:
    report.check(f"{what}other top 10 by the live check", checked.differing, 0, False, "")
    report.check(f"{what}queries it compares", checked.queries, 1, unit="")
    report.check(f"{what}other top 10 with swapped features", faulty.differing, 1, unit="")
    if checked.wider:
        report.note(
            f"{what}{checked.wider:,} of {checked.queries:,} queries have documents beyond the "
            f"first {DEPTH} of the whole index, as each shard reranks its own"
        )


def measure_skew(target: str, server: Server, content: Collection, folder: Path) -> Skew:
    """Index, log, train, export and rank by engine, service and ranker."""
    address = _index(target, server, content)
    try:
        return _measure(_Deployed(target, server, content, folder, address))
    finally:
        _clear(target, server)


def _on_shards(
    server: Server, content: Collection, folder: Path, shards: int
) -> tuple[QueryVerification, QueryVerification]:
    """Return what the live check finds in OpenSearch, for an index of several shards."""
    _clear("opensearch", server)
    address = fill_opensearch(server.url, _MODEL, content.documents, shards=shards)
    try:
        return _live_checks(_Deployed("opensearch", server, content, folder, address))
    finally:
        _clear("opensearch", server)


class _Deployed:
    """A ranker that was trained on a log of an engine's features, and is in that engine."""

    def __init__(
        self, target: str, server: Server, content: Collection, folder: Path, address: str
    ) -> None:
        (folder / "features.toml").write_text(DEFINITIONS)
        definitions = read_definitions(folder / "features.toml")
        judgments = read_qrels(content.write_qrels(folder / "judgments.qrels"))
        self.folder, self.target = folder, target
        self.queries = list(read_queries(content.write_queries(folder / "queries.jsonl")))
        self.search = feature_search(definitions, target, address, f"{_MODEL}_log")
        upload_feature_set(self.search)
        log_features(
            self.search, self.queries, folder / "train.parquet", LogSettings(DEPTH),
            relabel=lambda block: block.relabel(judgments, part=True),
        )  # fmt: skip
        self.train = read_parquet(folder / "train.parquet", Dataset)
        TreeRanker("LambdaMART", n_estimators=100, min_child_samples=5).fit(self.train).save(
            folder / "web.podium"
        )
        self.extractors = definitions.extractors(target)
        self.export = self.exported("export", self.extractors)
        self.engine = connect_engine(target, server.url if target == "opensearch" else address)
        self.model = self.engine.put(self.export)

    def exported(self, name: str, extractors: Mapping[str, Any]) -> ExportFolder:
        """Export the ranker with extractors of its features."""
        options = ExportSettings(model_name=_MODEL, extractors=extractors)
        return export_ranker(self.folder / "web.podium", self.target, self.folder / name, options)


def _live_checks(deployed: _Deployed) -> tuple[QueryVerification, QueryVerification]:
    """Check what is deployed by queries, and a model whose features are swapped."""
    of = deployed.extractors
    first, second = _SWAPPED
    swapped = {**of, first: of[second], second: of[first]}
    wrong = deployed.engine.put(deployed.exported("wrong", swapped))
    checked, faulty = (
        verify_queries(deployed.export, deployed.search, deployed.queries, depth=DEPTH, model=model)
        for model in (deployed.model, wrong)
    )
    return checked, faulty


def _measure(deployed: _Deployed) -> Skew:
    folder, search = deployed.folder, deployed.search
    log_features(search, deployed.queries, folder / "fresh.parquet", LogSettings(DEPTH))
    fresh = read_parquet(folder / "fresh.parquet", Dataset)
    ranker = load_ranker(folder / "web.podium")
    texts = {query.id: query for query in deployed.queries}
    rankings = _Rankings(
        by_engine=_engine_rankings(search, fresh, texts, deployed.model),
        by_service=_service_rankings(folder / "web.podium", ranker, fresh),
    )
    return _compare(fresh, ranker.predict(fresh), rankings, deployed)


def _clear(target: str, server: Server) -> None:
    """Remove all documents of an earlier collection."""
    with httpx2.Client(trust_env=False, timeout=300) as client:
        if target == "opensearch":
            client.delete(f"{server.url}/{_MODEL}")
        else:
            assert isinstance(server, Solr9Server)
            clear = {"delete": {"query": "*:*"}}
            client.post(f"{server.core}/update?commit=true", json=clear).raise_for_status()


def _index(target: str, server: Server, content: Collection) -> str:
    """Index a collection, in one segment, and return its address."""
    _clear(target, server)
    with httpx2.Client(trust_env=False, timeout=300) as client:
        if target == "opensearch":
            address = fill_opensearch(server.url, _MODEL, content.documents)
            client.post(f"{address}/_forcemerge?max_num_segments=1").raise_for_status()
            client.post(f"{address}/_refresh").raise_for_status()
            return address
        assert isinstance(server, Solr9Server)
        address = fill_solr(server.core, content.documents)
        client.get(f"{address}/update?optimize=true&maxSegments=1").raise_for_status()
        return address


Rankings = dict[str, list[tuple[str, float]]]
"""The documents of each query with their scores, best first."""


@dataclass(frozen=True)
class _Rankings:
    by_engine: Rankings
    by_service: Rankings


def _engine_rankings(
    search: FeatureSearch, data: Dataset, queries: Mapping[str, SearchQuery], model: str
) -> Rankings:
    rankings: Rankings = {}
    with httpx2.Client(trust_env=False, timeout=60) as client:
        for name in data.query_ids.to_pylist():
            request = search.reranked(queries[name], model, DEPTH, DEPTH)
            answer = client.post(f"{search.address}/{request.path}", json=request.content)
            answer.raise_for_status()
            rankings[name] = search.ranking(answer.json())
    return rankings


def _service_rankings(path: Path, ranker: Ranker, data: Dataset) -> Rankings:
    rankings: Rankings = {}
    with served(path) as (port, _), httpx2.Client(trust_env=False, timeout=60) as client:
        for query in data:
            assert query.document_ids is not None
            documents = [
                {
                    "id": name,
                    "features": {
                        feature: None if np.isnan(value) else value
                        for feature, value in zip(data.feature_names, row, strict=True)
                    },
                }
                for name, row in zip(
                    query.document_ids.to_pylist(), query.features.tolist(), strict=True
                )
            ]
            body = {"documents": documents, "definitions": ranker.definitions_hash_}
            answer = client.post(f"http://127.0.0.1:{port}/rank", content=json.dumps(body))
            answer.raise_for_status()
            rankings[query.id] = [(each["id"], each["score"]) for each in answer.json()["ranking"]]
    return rankings


def _compare(data: Dataset, scores: Doubles, rankings: _Rankings, deployed: _Deployed) -> Skew:
    by_engine, by_service = rankings.by_engine, rankings.by_service
    checked, faulty = _live_checks(deployed)
    engine_tops = served_tops = 0
    largest = 0.0
    for number, query in enumerate(data):
        assert query.document_ids is not None
        ids = query.document_ids.to_pylist()
        own = scores[data.offsets[number] : data.offsets[number + 1]]
        score_of = dict(zip(ids, own.tolist(), strict=True))
        top = [ids[row] for row in np.argsort(-own, kind="stable")[:TOP]]
        engine_tops += [name for name, _ in by_engine[query.id][:TOP]] != top
        served_tops += [name for name, _ in by_service[query.id][:TOP]] != top
        if {name for name, _ in by_engine[query.id]} != set(ids):
            largest = np.inf
            continue
        differences = [abs(score - score_of[name]) for name, score in by_engine[query.id]]
        largest = max(largest, *differences)
    return Skew(
        len(data), engine_tops, served_tops, largest, deployed.export.manifest.tolerance,
        _changed_values(deployed.train, data), checked, faulty,
    )  # fmt: skip


def _changed_values(train: Dataset, fresh: Dataset) -> int:
    """Count the values that differ between two logs, by query and document."""

    def values(data: Dataset) -> dict[tuple[str, str], bytes]:
        assert data.document_ids is not None
        names = zip(data.query_id_of_row().to_pylist(), data.document_ids.to_pylist(), strict=True)
        return {name: row.tobytes() for name, row in zip(names, data.features, strict=True)}

    before, after = values(train), values(fresh)
    return sum(after.get(name) != row for name, row in before.items())


def read_cacm(folder: Path) -> Collection:
    """Read CACM's abstracts, topics and judgments; the year is a number of each document."""
    records, topics = cacm_texts(folder)
    documents: dict[str, dict[str, Any]] = {}
    for name, text in records.items():
        title, _, body = text.partition("\n\n")
        year = re.search(r"CACM\s+\w+,?\s+(\d{4})", text)
        documents[name] = {
            "title": " ".join(title.split()), "body": " ".join(body.split()),
            "clicks": float(len(body)), **({"days": int(year[1])} if year else {}),
        }  # fmt: skip
    queries = [
        {"id": number, "text": text, "place": "algorithm", "country": "us"}
        for number, text in topics.items()
    ]
    grades = {}
    for line in (folder / "qrels.cacm.txt").read_text().splitlines():
        query, _, name, grade = line.split()
        grades[query, name] = int(grade)
    return Collection(documents, queries, grades)
