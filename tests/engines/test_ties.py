"""Documents with equal scores are in one order: by an engine, the service and a feature log."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import httpx2
import numpy as np
import pytest

from podium.data import Dataset, read_parquet
from podium.export import connect_engine, export_ranker
from podium.export.writing import ExportSettings
from podium.features import read_definitions
from podium.features.feature_log import LogSettings, log_features, upload_feature_set
from podium.features.feature_search import feature_search
from podium.features.search_query import SearchQuery
from podium.rankers import LinearRanker
from podium.serving import ServingSettings
from podium.serving.search_settings import SearchSettings
from podium.serving.settings import parse_model
from tests.features.collection import fill_opensearch, fill_solr
from tests.serving.service import serving

pytestmark = pytest.mark.slow

DOCUMENTS, DEPTH, KINDS = 60, 40, 3
QUERY = SearchQuery("q", "shoe")
DEFINITIONS = """\
[candidates]
template = { match = { title = "{{query}}" } }
solr = "{!dismax qf=title}{{query}}"

[[feature]]
name = "clicks"
source = "field"
field = "clicks"
missing = 0
"""


def fill(engine: str, server) -> str:
    """Index documents with three numbers of clicks, some of them twice, in parts."""
    documents = {
        f"d{number:02}": {
            "title": "shoe " + "word " * int(words), "body": "", "clicks": 1.0 + number % KINDS
        }
        for number, words in enumerate(np.random.default_rng(0).integers(0, 9, DOCUMENTS))
    }  # fmt: skip
    order = np.random.default_rng(1).permutation(sorted(documents)).tolist()
    address = server.url if engine == "opensearch" else server.core
    url = ""
    for names in (order[:30], order[30:], order[10:15]):
        part = {name: documents[name] for name in names}
        if engine == "solr":
            url = fill_solr(address, part)
        elif not url:
            url = fill_opensearch(address, "ties", part)
        else:
            add_opensearch(url, part)
    return url


def add_opensearch(url: str, documents) -> None:
    for name, document in documents.items():
        httpx2.put(f"{url}/_doc/{name}", json=document, timeout=60).raise_for_status()
    httpx2.post(f"{url}/_refresh", timeout=60).raise_for_status()


def by_engine(search, model: str, size: int) -> list[str]:
    request = search.reranked(QUERY, model, DEPTH, size)
    url = f"{search.address}/{request.path}"
    answer = httpx2.post(url, json=request.content, timeout=60).raise_for_status().json()
    return [name for name, _ in search.ranking(answer)]


@pytest.mark.parametrize("engine", ["opensearch", "solr"])
def test_equal_scores_are_in_the_order_of_the_index(engine, request, tmp_path: Path):
    server = request.getfixturevalue("opensearch_ltr" if engine == "opensearch" else "solr_9")
    url = fill(engine, server)
    try:
        check_order(engine, server, url, tmp_path)
    finally:
        if engine == "solr":
            delete = {"delete": {"query": "*:*"}}
            httpx2.post(f"{url}/update?commit=true", json=delete, timeout=60).raise_for_status()


def check_order(engine: Literal["opensearch", "solr"], server, url: str, folder: Path) -> None:
    (folder / "features.toml").write_text(DEFINITIONS)
    definitions = read_definitions(folder / "features.toml")
    search = feature_search(definitions, engine, url)
    upload_feature_set(search)
    log_features(search, [QUERY], folder / "log.parquet", LogSettings(depth=DEPTH))
    logged = read_parquet(folder / "log.parquet", Dataset)
    rows = np.arange(1.0, 1.0 + KINDS, dtype=np.float32).reshape(-1, 1)
    data = Dataset.from_arrays(
        np.tile(rows, (9, 1)), np.tile(rows[:, 0], 9), group=[KINDS] * 9, feature_names=["clicks"]
    )
    ranker = LinearRanker("ListNet()").fit(data)
    ranker.save(folder / "m.podium")
    options = ExportSettings(model_name="ties", extractors=definitions.extractors(engine))
    export = export_ranker(folder / "m.podium", engine, folder / "export", options)
    model = connect_engine(engine, server.url if engine == "opensearch" else url).put(export)
    names = by_engine(search, model, DEPTH)
    scores = ranker.predict(logged)
    assert len(set(scores.tolist())) <= KINDS < len(names) == DEPTH
    assert names != sorted(names)
    assert logged.document_ids is not None
    ids = logged.document_ids.to_pylist()
    assert [ids[row] for row in np.argsort(-scores, kind="stable")] == names
    settings = SearchSettings(
        engine=engine, url=url, definitions=str(folder / "features.toml"), depth=DEPTH,
        budget_ms=60_000,
    )  # fmt: skip
    models = (parse_model(str(folder / "m.podium")),)
    with serving(ServingSettings(models=models, search=settings)) as address:
        for size in (10, DEPTH):
            body = {"query": QUERY.text, "size": size}
            answer = httpx2.post(f"{address}/search", json=body, timeout=60).json()
            assert answer["reranked"] is True
            assert [hit["id"] for hit in answer["hits"]] == names[:size]
            assert by_engine(search, model, size) == names[:size]
