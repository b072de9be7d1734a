"""A small shop in OpenSearch and Solr: products, their features and rankers of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from podium.data import Dataset
from podium.export.live.http_client import EngineClient
from podium.features import read_definitions
from podium.features.definitions import FeatureDefinitions, FeatureRows
from podium.features.feature_log import send, upload_feature_set
from podium.features.feature_search import FeatureSearch, feature_search
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.rankers import LinearRanker, Ranker
from tests.engines.servers import OpenSearchServer, SolrServer
from tests.features.collection import fill_opensearch, fill_solr

WORDS = ("red", "blue", "running", "walking", "shoe", "boot", "lace", "sole", "trail", "city")
DEFINITIONS = """\
[candidates]
template = { multi_match = { query = "{{query}}", fields = ["title^2", "body"] } }
solr = "{!dismax qf='title^2 body' mm=1}{{query}}"

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
field = "body"
missing = 0.0

[[feature]]
name = "query_words"
source = "query"
property = "words"
"""


def products(count: int = 120) -> dict[str, dict[str, Any]]:
    """Return products whose titles and descriptions are words that repeat, by id."""
    random = np.random.default_rng(3)
    return {
        f"p{number:03}": {
            "title": " ".join(random.choice(WORDS, 2)),
            "body": " ".join(random.choice(WORDS, 6)),
            "clicks": float(number % 17),
            "kind": "secret",
        }
        for number in range(count)
    }


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
    def search(self) -> FeatureSearch:
        """The searches of the engine."""
        return feature_search(self.definitions, self.engine, self.url)

    def ask(self, text: str, size: int = 100) -> list[Any]:
        """Return the candidates of a query, without the service."""
        search = self.search
        with EngineClient(search.address, "the shop") as client:
            request = search.search(SearchQuery(text, text), size, fields=["title"])
            return search.documents(send(client, request)[1])

    def rows(self, text: str, size: int = 100) -> np.ndarray:
        """Return the features of the candidates of a query, in the order of the index."""
        candidates = self.in_index_order(text, size)
        return FeatureRows(self.definitions)(SearchQuery(text, text), candidates)

    def in_index_order(self, text: str, size: int = 100) -> list[LoggedDocument]:
        """Return the candidates of a query in the order of the index, that of equal scores."""
        return sorted(self.ask(text, size), key=lambda document: document.number)

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
    return _opened("opensearch", fill_opensearch(server.url, "shop", products()), path)


def stock_solr(server: SolrServer, path: Path) -> Shop:
    """Index the products in Solr and upload the features."""
    return _opened("solr", fill_solr(server.core, products()), path)


def empty_solr(server: SolrServer) -> None:
    """Delete the products."""
    delete = {"delete": {"query": "*:*"}}
    httpx2.post(f"{server.core}/update?commit=true", json=delete, trust_env=False, timeout=60)


def _opened(engine: str, url: str, path: Path) -> Shop:
    shop = Shop(engine, url, read_definitions(path), path)
    upload_feature_set(shop.search)
    return shop
