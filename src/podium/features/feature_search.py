"""Searches that log features: the requests to an engine and what its answers mean.

Nothing here sends a request, so that a log and a service may each do so in their own way. The
words of a query are bound as values: they never become a part of a request's structure.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.folder import feature_set_name
from podium.export.live import connect
from podium.export.live.http_client import Retry, expected_form
from podium.export.live.opensearch import stored_features as opensearch_features
from podium.export.live.solr import stored_features as solr_features
from podium.export.targets import TARGETS
from podium.features.definitions import FeatureDefinitions, feature_set, feature_store
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.sources import EngineSource
from podium.features.templates import (
    QUERY,
    SOLR_PREFIX,
    bound,
    parameters,
    solr_references,
    without_macros,
)

DEFAULT_SET = "podium_features"
MOST_DOCUMENTS = 10_000
"""The largest depth: engines refuse to return more by default."""

_REFUSALS = (400, 500)
_LOG = "podium"
_NUMBER = "podium_number"
_INDEX = re.compile(r"[A-Za-z0-9*-][A-Za-z0-9*,._-]{0,254}")
_SET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")


@dataclass(frozen=True)
class EngineRequest:
    """A request below the address of an engine.

    Attributes:
        method: The method of HTTP.
        path: The path below the address, without a slash before it.
        content: What becomes its JSON body, or None.
        allowed: Statuses beside 200 and 201 that are not errors.
    """

    method: str
    path: str
    content: Any = None
    allowed: tuple[int, ...] = ()


class QueryRefusedError(DataError):
    """The engine calls a query itself wrong, and the words of it alone as well."""


class FeatureSearch(ABC):
    """Searches of one engine by one set of definitions.

    Args:
        definitions: The features, and the query that finds candidates.
        url: The address of an index or collection: ``http://localhost:9200/shop`` or
            ``http://localhost:8983/solr/shop``.
        feature_set: What the name of the feature set or feature store there begins with; it ends
            with a hash of the features, so that none with other features has that name.
        id_field: In Solr, the name of the unique key. In OpenSearch, a field with doc values that
            has the same value as ``_id``, which is then not read from stored fields.

    Attributes:
        url: The address of the index or collection.
        address: What the paths of requests are below.
    """

    target: ClassVar[str]
    _form_name: ClassVar[str]
    """The key of an engine's query in a file."""

    def __init__(
        self,
        definitions: FeatureDefinitions,
        url: str,
        feature_set: str = DEFAULT_SET,
        id_field: str | None = None,
    ) -> None:
        if not _SET.fullmatch(feature_set):
            raise ArgumentError(
                f"{feature_set[:60]!r} cannot be the name of a feature set",
                hint="Use letters, digits, underscores and hyphens.",
            )
        if definitions.candidates is None or self._form(definitions.candidates) is None:
            raise ArgumentError(
                f"the definitions do not say how {self.title} finds candidates",
                hint=f"Add [candidates] with {self._form_name} = ... to them.",
            )
        self.definitions = definitions
        self._features = {
            feature.name: feature.source.engine_feature(feature, self.target)
            for feature in definitions.logged
        }
        self.feature_set = feature_set_name(self._features, feature_set)
        self._parameters = definitions.parameters(self.target)
        self._id_field = id_field
        self._locate(url.rstrip("/"))

    def _locate(self, url: str) -> None:
        self.url = self.address = url

    @property
    def title(self) -> str:
        """The name of the engine in messages."""
        return TARGETS[self.target].title

    def _form(self, source: EngineSource) -> Any:
        return getattr(source, self._form_name)

    @abstractmethod
    def uploads(self) -> list[EngineRequest]:
        """Return the requests that put the feature set there, where none has its name."""

    @property
    def candidates_key(self) -> str:
        """The query that finds candidates, as text: the same text finds the same ones."""
        assert self.definitions.candidates is not None
        return json.dumps(self._form(self.definitions.candidates), sort_keys=True)

    def stored(self) -> EngineRequest | None:
        """Return the request for the feature set; None if the engine computes no feature."""
        if not self._features:
            return None
        return EngineRequest("GET", self._stored_path(), allowed=(400, 404))

    def is_stored(self, status: int, answer: Any) -> bool:
        """Return whether the engine has the feature set; a DataError if it has other features.

        Args:
            status: The status of the answer to ``stored``.
            answer: What it holds.
        """
        with expected_form(self.title):
            features = self._stored_features(answer) if status == 200 else {}
        if features:
            self._require_same(features)
        return bool(features)

    def check_stored(self, status: int, answer: Any) -> None:
        """Raise a DataError unless the engine's feature set is that of the definitions.

        Args:
            status: The status of the answer to ``stored``.
            answer: What it holds.
        """
        if not self.is_stored(status, answer):
            raise DataError(
                f"{self.title} has no feature set {self.feature_set!r}",
                hint="Upload it: podium features log --put.",
            )

    def _require_same(self, features: Mapping[str, Any]) -> None:
        others = sorted(
            name
            for name in {*features, *self._features}
            if features.get(name) != self._features.get(name)
        )
        if others:
            raise DataError(
                f"the feature set {self.feature_set!r} in {self.title} differs from the "
                f"definitions in {', '.join(map(repr, others[:5]))}",
                hint="It is not replaced: take the definitions that it was made from, or another "
                "name for the feature set.",
            )

    @abstractmethod
    def _stored_path(self) -> str:
        """Return the path of the feature set."""

    @abstractmethod
    def _stored_features(self, answer: Any) -> dict[str, Any]:
        """Return the features of a feature set, by name, as sources write them."""

    @abstractmethod
    def search(
        self, query: SearchQuery, size: int, start: int = 0, fields: Sequence[str] = ()
    ) -> EngineRequest:
        """Return the request for the candidates of a query with their features.

        Args:
            query: The query.
            size: The number of documents.
            start: The number of documents before the first.
            fields: Stored fields to return beside those that features need.
        """

    def asking(
        self, query: SearchQuery, size: int, start: int = 0, fields: Sequence[str] = ()
    ) -> Generator[EngineRequest, tuple[int, Any], list[LoggedDocument]]:
        """Yield requests for the documents of a query, receive answers, return the documents.

        A query that the engine refuses is asked for once more by its words alone.

        Raises:
            QueryRefusedError: If the engine refuses these, too.
            DataError: If it answers something else.
        """
        status, answer = yield self.search(query, size, start, fields)
        reason = self._refusal(status, answer)
        words = query.words_only()
        if reason is not None and words.text not in ("", query.text):
            status, answer = yield self.search(words, size, start, fields)
            reason = self._refusal(status, answer)
        if reason is not None:
            raise QueryRefusedError(
                f"{self.title} refuses the query: {reason}",
                hint="Shorten the query, or change the queries of the definitions.",
            )
        return self.documents(answer)

    def _refusal(self, status: int, answer: Any) -> str | None:
        """Return why the engine refuses a query, in its words; None if it does not."""
        if status == 200:
            return None
        reason = self._reason(answer)
        # Where a query has too many clauses only when it is rewritten, the status is 500.
        if reason is not None and (status == 400 or "maxClauseCount" in reason):
            return "".join(each for each in " ".join(reason.split()) if each.isprintable())[:200]
        raise DataError(
            f"{self.title} answers a search with status {status}",
            hint="Look at what its log says.",
        )

    @abstractmethod
    def _reason(self, answer: Any) -> str | None:
        """Return what an engine says beside an error; None if it is not the engine that answers."""

    @abstractmethod
    def reranked(self, query: SearchQuery, model: str, depth: int, size: int) -> EngineRequest:
        """Return the request for the candidates of a query as a model in the engine ranks them.

        Args:
            query: The query.
            model: The name of the model there.
            depth: The number of candidates that it reranks, on each shard.
            size: The number of documents to return.
        """

    @abstractmethod
    def ranking(self, answer: Any) -> list[tuple[str, float]]:
        """Return the ids and scores of the answer to ``reranked``, best first."""

    @abstractmethod
    def documents(self, answer: Any) -> list[LoggedDocument]:
        """Return the documents of an answer, best first.

        Raises:
            DataError: If it is not the answer to a search with logged features.
        """

    def check_query(self, query: SearchQuery) -> None:
        """Raise a DataError if a query lacks a column that the engine's queries need."""
        for name in self._parameters:
            if name != QUERY and name not in query.columns:
                raise DataError(
                    f"query {query.id!r} has no column {name!r}, which the definitions use",
                    hint="Add the column to the queries.",
                )

    def _values(self, query: SearchQuery) -> dict[str, str]:
        self.check_query(query)
        return {
            name: query.text if name == QUERY else query.columns[name] for name in self._parameters
        }

    def _all_fields(self, fields: Sequence[str]) -> list[str]:
        return sorted({*self.definitions.stored_fields, *fields})


class OpenSearchSearch(FeatureSearch):
    """OpenSearch's plugin, with ``sltr`` and the extension ``ltr_log``."""

    target = "opensearch"
    _form_name = "template"

    def _locate(self, url: str) -> None:
        address, _, index = url.rpartition("/")
        if not urlsplit(address).hostname or not _INDEX.fullmatch(index):
            raise ArgumentError(
                f"{url!r} does not name an index",
                hint="Give an address such as http://localhost:9200/shop.",
            )
        self.url, self.address, self._index = url, address, index

    def uploads(self) -> list[EngineRequest]:
        """Return the requests that put the feature set there."""
        body = feature_set(self._features, self.feature_set)
        return [
            EngineRequest("PUT", "_ltr", allowed=(400,)),  # 400: there is a store
            # 409: another one put it there. POST would replace it.
            EngineRequest("PUT", self._stored_path(), body, allowed=(409,)),
        ]

    def _stored_path(self) -> str:
        return f"_ltr/_featureset/{self.feature_set}"

    def _stored_features(self, answer: Any) -> dict[str, Any]:
        return opensearch_features(answer)

    def search(
        self, query: SearchQuery, size: int, start: int = 0, fields: Sequence[str] = ()
    ) -> EngineRequest:
        """Return the request for the candidates of a query with their features."""
        values = self._values(query)
        assert self.definitions.candidates is not None
        candidates = bound(self.definitions.candidates.template, values.__getitem__)
        stored = self._all_fields(fields)
        body: dict[str, Any] = {
            "size": size,
            "from": start,
            "query": {"bool": {"must": [candidates]}},
            # As without it, and the number of a document in the index is part of the answer.
            "sort": ["_score", {"_doc": "asc"}],
            "track_total_hits": False,
        }
        if stored or self._id_field is None:
            body["_source"] = stored or False
        else:  # reading one stored field of each document takes longer than its features
            body |= {"stored_fields": "_none_", "docvalue_fields": [self._id_field]}
        if self._features:
            logged = {
                "_name": _LOG,
                "featureset": self.feature_set,
                "params": {name: values[name] for name in self._needed},
            }
            body["query"]["bool"]["filter"] = [{"sltr": logged}]
            specs = {"name": _LOG, "named_query": _LOG}
            body["ext"] = {"ltr_log": {"log_specs": specs}}
        # Shards that refuse a query make the whole search fail, and so say why.
        path = f"{self._index}/_search?allow_partial_search_results=false"
        return EngineRequest("POST", path, body, allowed=_REFUSALS)

    def _reason(self, answer: Any) -> str | None:
        try:
            return str(answer["error"]["root_cause"][0]["reason"])
        except (KeyError, IndexError, TypeError):
            return None

    @cached_property
    def _needed(self) -> tuple[str, ...]:
        """The parameters of the features."""
        return parameters(list(self._features.values()))

    def reranked(self, query: SearchQuery, model: str, depth: int, size: int) -> EngineRequest:
        """Return the request for the candidates of a query as a model in the engine ranks them."""
        values = self._values(query)
        assert self.definitions.candidates is not None
        params = {name: values[name] for name in self._needed}
        rescore = {
            "query_weight": 0,
            "rescore_query": {"sltr": {"model": model, "params": params}},
        }
        body = {
            "size": size,
            "_source": False,
            "query": bound(self.definitions.candidates.template, values.__getitem__),
            "rescore": {"window_size": depth, "query": rescore},
        }
        return EngineRequest("POST", f"{self._index}/_search", body, allowed=_REFUSALS)

    def ranking(self, answer: Any) -> list[tuple[str, float]]:
        """Return the ids and scores of the answer to ``reranked``, best first."""
        with expected_form(self.title):
            _require_complete(answer)
            return [(str(hit["_id"]), _single(hit["_score"])) for hit in answer["hits"]["hits"]]

    def documents(self, answer: Any) -> list[LoggedDocument]:
        """Return the documents of an answer, best first."""
        with expected_form(self.title):
            _require_complete(answer)
            return [self._document(hit) for hit in answer["hits"]["hits"]]

    def _document(self, hit: Any) -> LoggedDocument:
        score, number = hit["sort"]
        identity = hit["_id"] if "_id" in hit else hit["fields"][self._id_field][0]
        values = {}
        if self._features:
            entries = hit["fields"]["_ltrlog"][0][_LOG]
            values = {
                entry["name"]: float(entry["value"]) if "value" in entry else math.nan
                for entry in entries
            }
            _require_names(values, self)
        return LoggedDocument(
            str(identity), float(score), values, hit.get("_source") or {}, int(number)
        )


class ElasticsearchPluginSearch(OpenSearchSearch):
    """The o19s plugin for Elasticsearch, which has the same protocol."""

    target = "o19s"


class SolrSearch(FeatureSearch):
    """Solr, with the document transformer ``[features]``."""

    target = "solr"
    _form_name = "solr"

    @property
    def _id(self) -> str:
        return self._id_field or "id"

    def uploads(self) -> list[EngineRequest]:
        """Return the requests that put the feature store there."""
        store = feature_store(self._features, self.feature_set)
        return [EngineRequest("PUT", "schema/feature-store", store)]

    def _stored_path(self) -> str:
        return f"schema/feature-store/{self.feature_set}"

    def _stored_features(self, answer: Any) -> dict[str, Any]:
        return solr_features(answer)

    def search(
        self, query: SearchQuery, size: int, start: int = 0, fields: Sequence[str] = ()
    ) -> EngineRequest:
        """Return the request for the candidates of a query with their features."""
        values = {name: without_macros(value) for name, value in self._values(query).items()}
        assert self.definitions.candidates is not None
        words = {f"{SOLR_PREFIX}{name}": value for name, value in values.items()}
        columns = [self._id, "score", f"{_NUMBER}:[docid]", *self._all_fields(fields)]
        if self._features:
            needed = parameters(self._queries())
            efi = "".join(f" efi.{name}=${SOLR_PREFIX}{name}" for name in needed)
            columns.append(
                f"{_LOG}:[features store={self.feature_set} format=dense logAll=true{efi}]"
            )
        body = {
            "query": solr_references(str(self.definitions.candidates.solr)),
            "limit": size,
            "offset": start,
            "fields": columns,
            "params": words,
        }
        # Solr would expand macros in the text of the body, before it is parsed.
        path = "select?wt=json&expandMacros=false"
        return EngineRequest("POST", path, body, allowed=_REFUSALS)

    def _reason(self, answer: Any) -> str | None:
        try:
            return str(answer["error"]["msg"])
        except (KeyError, TypeError):
            return None

    def reranked(self, query: SearchQuery, model: str, depth: int, size: int) -> EngineRequest:
        """Return the request for the candidates of a query as a model in the engine ranks them."""
        request = self.search(query, size)
        needed = parameters(self._queries())
        efi = "".join(f" efi.{name}=${SOLR_PREFIX}{name}" for name in needed)
        again = {"rq": f"{{!ltr model={model} reRankDocs={depth}{efi}}}"}
        body = request.content
        content = body | {"fields": [self._id, "score"], "params": body["params"] | again}
        return replace(request, content=content)

    def ranking(self, answer: Any) -> list[tuple[str, float]]:
        """Return the ids and scores of the answer to ``reranked``, best first."""
        with expected_form(self.title):
            if answer["responseHeader"].get("partialResults"):
                raise _incomplete()
            documents = answer["response"]["docs"]
            return [(str(each[self._id]), _single(each["score"])) for each in documents]

    def _queries(self) -> list[str]:
        sources = [feature.source for feature in self.definitions.logged]
        return [str(each.solr) for each in sources if isinstance(each, EngineSource)]

    def documents(self, answer: Any) -> list[LoggedDocument]:
        """Return the documents of an answer, best first."""
        with expected_form(self.title):
            if answer["responseHeader"].get("partialResults"):
                raise _incomplete()
            return [
                LoggedDocument(
                    str(document[self._id]),
                    float(document["score"]),
                    self._logged(document),
                    {
                        name: value
                        for name, value in document.items()
                        if name not in (_LOG, _NUMBER, "score", self._id)
                    },
                    int(document[_NUMBER]),
                )
                for document in answer["response"]["docs"]
            ]

    def _logged(self, document: Mapping[str, Any]) -> dict[str, float]:
        if not self._features:
            return {}
        pairs = (entry.partition("=") for entry in str(document[_LOG]).split(","))
        values = {name: float(value) for name, _, value in pairs}
        _require_names(values, self)
        return values


def _require_names(values: Mapping[str, float], search: FeatureSearch) -> None:
    """Raise a DataError unless an engine's features have the names of the definitions."""
    if values.keys() != search._features.keys():
        raise DataError(
            f"the feature set {search.feature_set!r} in {search.title} has other features than the "
            "definitions",
            hint="Upload it: podium features log --put.",
        )


def _single(score: Any) -> float:
    """Return the single-precision number that an answer has in decimal."""
    return float(np.float32(float(score)))


def _require_complete(answer: Any) -> None:
    """Refuse an answer of some shards only: its ranking and its features are others."""
    if answer.get("timed_out") or answer["_shards"].get("failed"):
        raise _incomplete()


def _incomplete() -> DataError:
    return DataError(
        "the engine answers with a part of its results", hint="Check its shards and its load."
    )


SEARCHES: Mapping[str, type[FeatureSearch]] = {
    "opensearch": OpenSearchSearch,
    "o19s": ElasticsearchPluginSearch,
    "solr": SolrSearch,
}
"""The engines that log features, by the names of export targets."""


def feature_search(
    definitions: FeatureDefinitions,
    target: str,
    url: str,
    feature_set: str = DEFAULT_SET,
    id_field: str | None = None,
) -> FeatureSearch:
    """Return the searches of an engine.

    Args:
        definitions: The features, and the query that finds candidates.
        target: ``opensearch``, ``o19s`` or ``solr``.
        url: The address of an index or collection.
        feature_set: What the name of the feature set or feature store there begins with; it ends
            with a hash of the features, so that none with other features has that name.
        id_field: In Solr, the name of the unique key (``id``). In OpenSearch, a field with doc
            values that has the same value as ``_id``, which is then not read from stored fields.

    Example:
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import FieldSource
        >>> candidates = EngineSource({"match": {"title": "{{query}}"}})
        >>> clicks = FeatureDefinition("clicks", FieldSource("clicks"))
        >>> definitions = FeatureDefinitions((clicks,), candidates)
        >>> search = feature_search(definitions, "opensearch", "http://localhost:9200/shop")
        >>> search.search(SearchQuery("1", "red shoes"), size=10).path
        'shop/_search?allow_partial_search_results=false'
    """
    if target not in SEARCHES:
        raise ArgumentError(
            f"{target!r} does not log features", hint=f"Engines that do: {', '.join(SEARCHES)}."
        )
    return SEARCHES[target](definitions, url, feature_set, id_field)


def detect_target(url: str, retry: Retry | None = None) -> str:
    """Return the target of exports for the engine of an index or collection.

    Example:
        >>> detect_target("http://localhost:8983/solr/shop")
        'solr'
    """
    server = url if connect.is_solr(url) else url.rstrip("/").rpartition("/")[0]
    return connect.detect_target(server, retry)
