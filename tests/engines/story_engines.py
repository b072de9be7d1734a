"""What the story asks of a search engine, in OpenSearch's and in Solr's words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import httpx2

from tests.engines.servers import OpenSearchServer, SolrServer
from tests.features.collection import fill_opensearch, fill_solr

DEPTH = 6
"""The number of candidates of a query."""
MODEL = "story"
"""The name of the model in the engine."""
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
name = "body_match"
source = "engine"
template = { match = { body = "{{query}}" } }
solr = "{!dismax qf=body mm=1}{{query}}"
missing = 0.0

[[feature]]
name = "clicks"
source = "field"
field = "clicks"
missing = 0.0
"""


class StoryEngine(ABC):
    """A running engine with products in it.

    Attributes:
        kind: Its name on the command line.
        url: The address of the index or collection.
        server: The address of the server.
        models: Where a model is put.
        target: What an export is for.
        candidates: The studio's import: where it searches, and how.
    """

    kind: str
    url: str
    server: str
    models: str
    target: tuple[str, ...]
    candidates: dict[str, Any]

    @abstractmethod
    def search(self, text: str, *, model: bool = False) -> dict[str, float]:
        """Return documents with their scores: the engine's own, or those of the deployed model."""


class InOpenSearch(StoryEngine):
    """Products in OpenSearch."""

    kind = "opensearch"
    target = ("--to", "opensearch")

    def __init__(self, server: OpenSearchServer, products: dict[str, dict[str, Any]]) -> None:
        self.url = fill_opensearch(server.url, "story", products)
        self.server = self.models = server.url
        body = {"size": "{{size}}", "query": _multi_match("{{query}}")}
        self.candidates = {"url": f"{self.url}/_search", "template": body}

    def search(self, text: str, *, model: bool = False) -> dict[str, float]:
        """Search, and have the hits scored again by the model that is live if asked to."""
        body: dict[str, Any] = {"size": DEPTH, "query": _multi_match(text)}
        path = "_search"
        if model:
            params = {**body, "window_size": DEPTH, "params": {"query": text}}
            body, path = {"id": MODEL, "params": params}, "_search/template"
        hits = _post(f"{self.url}/{path}", body)["hits"]["hits"]
        return {hit["_id"]: hit["_score"] for hit in hits}


class InSolr(StoryEngine):
    """Products in Solr."""

    kind = "solr"
    target = ("--to", "solr", "--engine-version", "8.11")

    def __init__(self, server: SolrServer, products: dict[str, dict[str, Any]]) -> None:
        self.url = self.models = fill_solr(server.core, products)
        self.server = server.url
        body = {"query": _DISMAX, "params": {"words": "{{query}}"}, "limit": "{{size}}"}
        self.candidates = {"kind": "solr", "url": f"{self.url}/select", "template": body}

    def search(self, text: str, *, model: bool = False) -> dict[str, float]:
        """Search, and have the hits scored again by the model that is live if asked to."""
        parameters, path = {"words": text}, "select"
        if model:
            parameters["rq"] = f"{{!ltr model=${MODEL} reRankDocs={DEPTH} efi.query=$words}}"
            path = f"select?useParams={MODEL}"
        body = {"query": _DISMAX, "limit": DEPTH, "fields": ["id", "score"], "params": parameters}
        documents = _post(f"{self.url}/{path}", body)["response"]["docs"]
        return {each["id"]: each["score"] for each in documents}


_DISMAX = "{!dismax qf='title^2 body' mm=1 v=$words}"


def _multi_match(text: str) -> dict[str, Any]:
    return {"multi_match": {"query": text, "fields": ["title^2", "body"]}}


def _post(url: str, body: dict[str, Any]) -> Any:
    return httpx2.post(url, json=body, trust_env=False, timeout=60).raise_for_status().json()
