"""Real queries in running engines: the engine's first documents are those of the ranker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from podium.data import Dataset, read_parquet, read_qrels
from podium.export import connect_engine, export_ranker
from podium.export.folder import ExportFolder
from podium.export.writing import ExportSettings
from podium.features import read_definitions
from podium.features.feature_log import LogSettings, log_features, upload_feature_set
from podium.features.feature_search import FeatureSearch, feature_search
from podium.features.queries_file import read_queries
from podium.features.query_check import verify_queries
from podium.features.search_query import SearchQuery
from podium.rankers import TreeRanker
from tests.engines.servers import OpenSearchServer
from tests.features.collection import DEFINITIONS, collection, fill_opensearch, fill_solr

pytestmark = pytest.mark.slow

DEPTH = 30
CONTENT = collection(300, 25)


@dataclass
class Ranked:
    """A collection in an engine, with a ranker that was trained on its log."""

    target: str
    url: str
    models: str
    folder: Path
    search: FeatureSearch
    queries: list[SearchQuery]
    export: ExportFolder

    def put(self, export: ExportFolder) -> str:
        return connect_engine(self.target, self.models).put(export)

    def exported(self, folder: Path, definitions: str = DEFINITIONS) -> ExportFolder:
        (folder / "definitions.toml").write_text(definitions)
        defined = read_definitions(folder / "definitions.toml")
        options = ExportSettings(model_name="checked", extractors=defined.extractors(self.target))
        return export_ranker(self.folder / "web.podium", self.target, folder / "export", options)


def prepared(target: str, url: str, models: str, folder: Path) -> Ranked:
    (folder / "features.toml").write_text(DEFINITIONS)
    definitions = read_definitions(folder / "features.toml")
    queries = list(read_queries(CONTENT.write_queries(folder / "queries.jsonl")))
    judgments = read_qrels(CONTENT.write_qrels(folder / "judgments.qrels"))
    search = feature_search(definitions, target, url, "checked_log")
    upload_feature_set(search)
    log_features(
        search, queries, folder / "train.parquet", LogSettings(DEPTH),
        relabel=lambda block: block.relabel(judgments, part=True),
    )  # fmt: skip
    train = read_parquet(folder / "train.parquet", Dataset)
    TreeRanker(n_estimators=30, min_child_samples=5).fit(train).save(folder / "web.podium")
    ranked = Ranked(target, url, models, folder, search, queries, None)  # type: ignore[arg-type]
    ranked.export = ranked.exported(folder)
    ranked.put(ranked.export)
    return ranked


@pytest.fixture(scope="module", params=["opensearch-1", "opensearch-3", "solr-1"])
def ranked(request, tmp_path_factory):
    engine, _, shards = request.param.partition("-")
    folder = tmp_path_factory.mktemp("ranked")
    if engine == "opensearch":
        server = request.getfixturevalue("opensearch_ltr")
        name = f"checked{shards}"
        url = fill_opensearch(server.url, name, CONTENT.documents, shards=int(shards))
        yield prepared(engine, url, server.url, folder)
        return
    server = request.getfixturevalue("solr_9")
    url = fill_solr(server.core, CONTENT.documents)
    yield prepared(engine, url, url, folder)
    delete = {"delete": {"query": "*:*"}}
    httpx2.post(f"{url}/update?commit=true", json=delete, trust_env=False, timeout=60)


def check(ranked: Ranked, export: ExportFolder | None = None, model: str | None = None):
    return verify_queries(
        export or ranked.export, ranked.search, ranked.queries, depth=DEPTH, model=model
    )


def test_the_engine_ranks_as_the_ranker(ranked):
    found = check(ranked)
    assert found.holds, found.differences
    assert found.queries + found.empty == len(ranked.queries)
    assert found.documents > 10 * found.queries
    # Each shard reranks a window of its own.
    assert (found.wider > 0) == ranked.url.endswith("checked3")
    assert found.unchecked[0].startswith("what changed since")


def test_a_window_that_covers_all_matches_is_the_same_on_several_shards(ranked):
    found = verify_queries(ranked.export, ranked.search, ranked.queries, depth=300)
    assert found.holds, found.differences
    assert found.wider == 0


FAULTS = {
    "wrong field": ('field = "clicks"', 'field = "days"'),
    "swapped features": ("", ""),
    "another analyzer": ('match = { title = "{{query}}" }',
                         'match = { title = { query = "{{query}}", analyzer = "keyword" } }'),
    "other definitions": ("""body = "{{query}}" } }
solr = "{!dismax qf=body}{{query}}""", """body = "{{place}}" } }
solr = "{!dismax qf=body}{{place}}"""),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(ranked, fault, tmp_path):
    before, after = FAULTS[fault]
    definitions = DEFINITIONS.replace(before, after) if before else _swapped(DEFINITIONS)
    if ranked.target == "solr" and "analyzer" in fault:
        definitions = DEFINITIONS.replace("{!dismax qf=title}{{query}}", "{!term f=title}{{query}}")
    assert definitions != DEFINITIONS
    found = check(ranked, model=ranked.put(ranked.exported(tmp_path, definitions)))
    assert not found.holds
    assert found.differing > 0
    assert found.differences


def _swapped(text: str) -> str:
    for first, second in (
        ('match = { title =', 'match = { body ='), ("qf=title}", "qf=body}"),
    ):  # fmt: skip
        text = text.replace(first, "@").replace(second, first).replace("@", second)
    return text


def test_an_old_model_under_the_name_is_found(ranked, tmp_path):
    train = read_parquet(ranked.folder / "train.parquet", Dataset)
    old = TreeRanker(n_estimators=5, min_child_samples=5).fit(train)
    options = ExportSettings(
        model_name="checked", extractors=ranked.search.definitions.extractors(ranked.target)
    )
    version = ranked.put(export_ranker(old, ranked.target, tmp_path / "old", options))
    found = check(ranked, model=version)
    assert found.differing == found.queries > 0


def test_a_ranking_without_a_candidate_is_a_difference(ranked, monkeypatch):
    for ranking in ([], [("nobody", 1.0)]):
        monkeypatch.setattr(ranked.search, "ranking", lambda _answer, value=ranking: value)
        found = check(ranked)
        assert found.differing == found.queries > 0
        assert not found.holds
        assert f"none of {len(ranking)} documents" in found.differences[0].text


def test_queries_that_the_engine_refuses_are_counted(ranked):
    words = " ".join(f"word{number}" for number in range(1100))
    long = SearchQuery("long", words, ranked.queries[0].columns)
    queries = [long, *ranked.queries[:3]]
    found = verify_queries(ranked.export, ranked.search, queries, depth=DEPTH)
    assert (found.refused, found.queries + found.empty, found.differing) == (1, 3, 0)
    assert "1 queries that the engine refuses" in found.unchecked
    assert found.holds


@pytest.mark.long
def test_shards_with_a_replica_each_rank_as_the_ranker(opensearch_ltr, tmp_path):
    """Copies of a shard differ in what is deleted but still counted, so requests name one copy."""
    with OpenSearchServer(joins=opensearch_ltr):
        replicated = fill_opensearch(
            opensearch_ltr.url, "replicated", CONTENT.documents, shards=3, replicas=1
        )
        with httpx2.Client(base_url=replicated, trust_env=False, timeout=300) as client:
            for name in [*CONTENT.documents][::3]:
                client.put(f"/_doc/{name}", json=CONTENT.documents[name]).raise_for_status()
            health = f"{opensearch_ltr.url}/_cluster/health/replicated"
            green = client.get(health, params={"wait_for_status": "green", "timeout": "120s"})
            assert green.json()["status"] == "green"
            client.post("/_refresh").raise_for_status()
        ranked = prepared("opensearch", replicated, opensearch_ltr.url, tmp_path)
        try:
            for _ in range(4):
                found = check(ranked)
                assert found.holds, found.differences
        finally:
            httpx2.delete(replicated, trust_env=False, timeout=120).raise_for_status()
