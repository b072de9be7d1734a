"""A small shop in OpenSearch and Solr: products, their features and rankers of these."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from podium.data import Dataset
from podium.features import (
    EngineSearch,
    FeatureDefinitions,
    FeatureRows,
    SearchQuery,
    engine_search,
)
from podium.rankers import LinearRanker, Ranker
from tests.engines.servers import OpenSearchServer, SolrServer

WORDS = ("red", "blue", "running", "walking", "shoe", "boot", "lace", "sole", "trail", "city")
DEFINITIONS = """\
[candidates]
template = { multi_match = { query = "{{query}}", fields = ["title^2", "text"] } }
solr = "{!dismax qf='title^2 text' mm=1}{{query}}"

[[feature]]
name = "title_match"
source = "engine"
template = { match = { title = "{{query}}" } }
solr = "{!dismax qf=title mm=1}{{query}}"
missing = 0.0

[[feature]]
name = "clicks"
source = "field"
field = "clicks"
missing = 0.0

[[feature]]
name = "overlap"
source = "function"
function = "term_overlap"
field = "text"
missing = 0.0

[[feature]]
name = "query_words"
source = "query"
property = "words"
"""


def products(count: int = 120) -> list[dict[str, Any]]:
    """Return products whose titles and texts are words that repeat."""
    random = np.random.default_rng(3)
    return [
        {
            "id": f"p{number:03}",
            "title": " ".join(random.choice(WORDS, 2)),
            "text": " ".join(random.choice(WORDS, 6)),
            "clicks": float(number % 17),
            "secret": "cost",
        }
        for number in range(count)
    ]


@dataclass(frozen=True)
class Shop:
    """Products in an engine.

    Attributes:
        engine: The kind of engine.
        url: The address of the index or collection.
        definitions: The features.
        path: Their file.
    """

    engine: str
    url: str
    definitions: FeatureDefinitions
    path: Path

    @property
    def search(self) -> EngineSearch:
        """The searches of the engine."""
        return engine_search(self.definitions, self.engine, self.url)

    def ask(self, text: str, size: int = 100) -> list[Any]:
        """Return the candidates of a query, without the service."""
        request = self.search.search(SearchQuery(text, text), size, fields=["title"])
        return self.search.documents(self.send(request))

    def rows(self, text: str, size: int = 100) -> np.ndarray:
        """Return the features of the candidates of a query, without the service."""
        return FeatureRows(self.definitions)(SearchQuery(text, text), self.ask(text, size))

    def send(self, request: Any) -> Any:
        """Send a request of a search."""
        answer = httpx.request(
            request.method, f"{self.search.address}/{request.path}", json=request.content,
            trust_env=False, timeout=60,
        )  # fmt: skip
        if answer.status_code not in (200, 201, *request.may_be):
            raise RuntimeError(answer.text)
        return answer.json() if answer.content else None

    def ranker(self, sign: float = 1.0) -> Ranker:
        """Return a ranker that likes clicks, or dislikes them."""
        queries = ["red shoe", "blue boot", "running", "trail sole", "city lace", "walking"]
        parts = [self.rows(each) for each in queries]
        rows = np.concatenate(parts)
        labels = np.clip(np.round(2 + sign * (rows[:, 1] - 8) / 4), 0, 4)
        data = Dataset.from_arrays(
            rows, labels, group=[len(part) for part in parts],
            feature_names=self.definitions.names,
        )  # fmt: skip
        return LinearRanker("ListNet()").fit(replace(data, definitions_hash=self.definitions.hash))


def stock_opensearch(server: OpenSearchServer, path: Path) -> Shop:
    """Index the products in OpenSearch and upload the features."""
    shop = Shop("opensearch", f"{server.url}/shop", FeatureDefinitions.read(path), path)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        client.delete("/shop")
        fields = {"clicks": {"type": "float"}, "title": {"type": "text"}, "text": {"type": "text"}}
        settings = {"number_of_shards": 1, "number_of_replicas": 0}
        body = {"mappings": {"properties": fields}, "settings": settings}
        client.put("/shop", json=body).raise_for_status()
        lines = [
            line for product in products() for line in ({"index": {"_id": product["id"]}}, product)
        ]
        bulk = "".join(json.dumps(line) + "\n" for line in lines)
        headers = {"content-type": "application/x-ndjson"}
        client.post("/shop/_bulk?refresh=true", content=bulk, headers=headers).raise_for_status()
    for request in shop.search.uploads():
        shop.send(request)
    return shop


def stock_solr(server: SolrServer, path: Path) -> Shop:
    """Index the products in Solr and upload the features."""
    shop = Shop("solr", server.core, FeatureDefinitions.read(path), path)
    with httpx.Client(base_url=server.core, trust_env=False, timeout=60) as client:
        known = {each["name"] for each in client.get("/schema/fields").json()["fields"]}
        added = [
            {"name": name, "type": kind, "stored": True}
            for name, kind in (("clicks", "pfloat"), ("secret", "string"))
            if name not in known
        ]
        if added:
            client.post("/schema", json={"add-field": added}).raise_for_status()
        client.post("/update?commit=true", json=products()).raise_for_status()
    for request in shop.search.uploads():
        shop.send(request)
    return shop


def empty_solr(server: SolrServer) -> None:
    """Delete the products."""
    delete = {"delete": {"query": "*:*"}}
    httpx.post(f"{server.core}/update?commit=true", json=delete, trust_env=False, timeout=60)
