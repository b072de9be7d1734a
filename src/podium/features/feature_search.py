"""Searches that log features: the requests to an engine and what its answers mean.

Nothing here sends a request, so that a log and a service may each do so in their own way. The
words of a query are bound as values: they never become a part of a request's structure.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.feature_names import feature_set_name
from podium.export.live.opensearch import stored_features as opensearch_features
from podium.export.live.solr import stored_features as solr_features
from podium.features.definition import EngineSource
from podium.features.definitions import FeatureDefinitions, feature_set, feature_store
from podium.features.engine_features import TITLES, engine_feature
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.templates import (
    QUERY,
    SOLR_PREFIX,
    bound,
    parameters,
    solr_references,
    without_macros,
)

MOST_DOCUMENTS = 10_000
"""The largest depth: engines refuse to return more by default."""

_LOG = "podium"
_INDEX = re.compile(r"[A-Za-z0-9*-][A-Za-z0-9*,._-]{0,254}")
_SET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")


@dataclass(frozen=True)
class EngineRequest:
    """A request below the address of an engine.

    Attributes:
        method: The method of HTTP.
        path: The path below the address, without a slash before it.
        content: What becomes its JSON body, or None.
        may_be: Statuses beside 200 and 201 that are no error.
    """

    method: str
    path: str
    content: Any = None
    may_be: tuple[int, ...] = ()


class FeatureSearch(ABC):
    """Searches of one engine by one set of definitions.

    Args:
        definitions: The features, and the query that finds candidates.
        url: The address of an index or collection: ``http://localhost:9200/shop`` or
            ``http://localhost:8983/solr/shop``.
        feature_set: The name of the feature set or feature store there; by default it ends with a
            hash of the features.

    Attributes:
        url: The address of the index or collection.
        address: What the paths of requests are below.
    """

    target: ClassVar[str]

    def __init__(
        self, definitions: FeatureDefinitions, url: str, feature_set: str | None = None
    ) -> None:
        if feature_set is not None and not _SET.fullmatch(feature_set):
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
        self.url = self.address = url.rstrip("/")
        self._features = {
            feature.name: engine_feature(feature, self.target) for feature in definitions.logged
        }
        self.feature_set = feature_set or feature_set_name(self._features)
        self._parameters = definitions.parameters(self.target)

    @property
    def title(self) -> str:
        """The name of the engine in messages."""
        return TITLES[self.target]

    @property
    @abstractmethod
    def _form_name(self) -> str:
        """The key of an engine's query in a file."""

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
        return EngineRequest("GET", self._stored_path(), may_be=(400, 404))

    def is_stored(self, status: int, answer: Any) -> bool:
        """Return whether the engine has the feature set; a DataError if it has other features.

        Args:
            status: The status of the answer to ``stored``.
            answer: What it holds.
        """
        try:
            features = self._stored_features(answer) if status == 200 else {}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(self, error) from error
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
        """Return the features of a feature set, by name, as ``engine_feature`` returns them."""

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

    def __init__(
        self, definitions: FeatureDefinitions, url: str, feature_set: str | None = None
    ) -> None:
        super().__init__(definitions, url, feature_set)
        address, _, index = self.url.rpartition("/")
        if not urlsplit(address).hostname or not _INDEX.fullmatch(index):
            raise ArgumentError(
                f"{url!r} does not name an index",
                hint="Give an address such as http://localhost:9200/shop.",
            )
        self.address, self._index = address, index

    @property
    def _form_name(self) -> str:
        return "template"

    def uploads(self) -> list[EngineRequest]:
        """Return the requests that put the feature set there."""
        body = feature_set(self._features, self.feature_set)
        return [
            EngineRequest("PUT", "_ltr", may_be=(400,)),  # 400: there is a store
            # 409: another one put it there. POST would replace it.
            EngineRequest("PUT", self._stored_path(), body, may_be=(409,)),
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
        needed = parameters(list(self._features.values()))
        body: dict[str, Any] = {
            "size": size,
            "from": start,
            "_source": self._all_fields(fields) or False,
            "query": {"bool": {"must": [candidates]}},
        }
        if self._features:
            logged = {
                "_name": _LOG,
                "featureset": self.feature_set,
                "params": {name: values[name] for name in needed},
            }
            body["query"]["bool"]["filter"] = [{"sltr": logged}]
            specs = {"name": _LOG, "named_query": _LOG}
            body["ext"] = {"ltr_log": {"log_specs": specs}}
        return EngineRequest("POST", f"{self._index}/_search", body)

    def reranked(self, query: SearchQuery, model: str, depth: int, size: int) -> EngineRequest:
        """Return the request for the candidates of a query as a model in the engine ranks them."""
        values = self._values(query)
        assert self.definitions.candidates is not None
        needed = parameters(list(self._features.values()))
        params = {name: values[name] for name in needed}
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
        return EngineRequest("POST", f"{self._index}/_search", body)

    def ranking(self, answer: Any) -> list[tuple[str, float]]:
        """Return the ids and scores of the answer to ``reranked``, best first."""
        try:
            _require_complete(answer)
            return [(str(hit["_id"]), _single(hit["_score"])) for hit in answer["hits"]["hits"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(self, error) from error

    def documents(self, answer: Any) -> list[LoggedDocument]:
        """Return the documents of an answer, best first."""
        try:
            _require_complete(answer)
            return [
                LoggedDocument(
                    str(hit["_id"]),
                    float(hit["_score"]),
                    self._logged(hit),
                    dict(hit.get("_source") or {}),
                )
                for hit in answer["hits"]["hits"]
            ]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise _malformed(self, error) from error

    def _logged(self, hit: Any) -> dict[str, float]:
        if not self._features:
            return {}
        entries = hit["fields"]["_ltrlog"][0][_LOG]
        values = {
            str(entry["name"]): float(entry["value"])
            for entry in entries
            if entry.get("value") is not None
        }
        return _known(values, {str(entry["name"]) for entry in entries}, self)


class ElasticsearchPluginSearch(OpenSearchSearch):
    """The o19s plugin for Elasticsearch, which has the same protocol."""

    target = "o19s"


class SolrSearch(FeatureSearch):
    """Solr, with the document transformer ``[features]``."""

    target = "solr"

    def __init__(
        self,
        definitions: FeatureDefinitions,
        url: str,
        feature_set: str | None = None,
        id_field: str = "id",
    ) -> None:
        super().__init__(definitions, url, feature_set)
        self._id = id_field

    @property
    def _form_name(self) -> str:
        return "solr"

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
        columns = [self._id, "score", *self._all_fields(fields)]
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
        return EngineRequest("POST", "select?wt=json&expandMacros=false", body)

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
        try:
            if answer["responseHeader"].get("partialResults"):
                raise _incomplete()
            documents = answer["response"]["docs"]
            return [(str(each[self._id]), _single(each["score"])) for each in documents]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(self, error) from error

    def _queries(self) -> list[str]:
        sources = [feature.source for feature in self.definitions.logged]
        return [str(each.solr) for each in sources if isinstance(each, EngineSource)]

    def documents(self, answer: Any) -> list[LoggedDocument]:
        """Return the documents of an answer, best first."""
        try:
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
                        if name not in (_LOG, "score", self._id)
                    },
                )
                for document in answer["response"]["docs"]
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise _malformed(self, error) from error

    def _logged(self, document: Mapping[str, Any]) -> dict[str, float]:
        if not self._features:
            return {}
        pairs = (entry.partition("=") for entry in str(document[_LOG]).split(","))
        values = {name: float(value) for name, _, value in pairs}
        return _known(values, set(values), self)


def _known(values: dict[str, float], names: set[str], search: FeatureSearch) -> dict[str, float]:
    """Return values that are not NaN, if the engine has the features of the definitions."""
    if names != set(search._features):
        raise DataError(
            f"the feature set {search.feature_set!r} in {search.title} has other features than the "
            "definitions",
            hint="Upload it: podium features log --put.",
        )
    return {name: value for name, value in values.items() if not math.isnan(value)}


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


def _malformed(search: FeatureSearch, error: Exception) -> DataError:
    if isinstance(error, DataError):
        return error
    return DataError(
        f"{search.title} answers in another form ({str(error)[:100]!r})",
        hint="Check the address, and that the feature set was uploaded.",
    )


SEARCHES: Mapping[str, type[FeatureSearch]] = {
    "opensearch": OpenSearchSearch,
    "o19s": ElasticsearchPluginSearch,
    "solr": SolrSearch,
}
"""The engines that log features, by the names of export targets."""


def feature_search(
    definitions: FeatureDefinitions, target: str, url: str, feature_set: str | None = None
) -> FeatureSearch:
    """Return the searches of an engine.

    Args:
        definitions: The features, and the query that finds candidates.
        target: ``opensearch``, ``o19s`` or ``solr``.
        url: The address of an index or collection.
        feature_set: The name of the feature set or feature store there; by default it ends with a
            hash of the features.

    Example:
        >>> from podium.features import FeatureDefinition, FieldSource
        >>> candidates = EngineSource({"match": {"title": "{{query}}"}})
        >>> clicks = FeatureDefinition("clicks", FieldSource("clicks"))
        >>> definitions = FeatureDefinitions((clicks,), candidates)
        >>> search = feature_search(definitions, "opensearch", "http://localhost:9200/shop")
        >>> search.search(SearchQuery("1", "red shoes"), size=10).path
        'shop/_search'
    """
    if target not in SEARCHES:
        raise ArgumentError(
            f"{target!r} does not log features", hint=f"Engines that do: {', '.join(SEARCHES)}."
        )
    return SEARCHES[target](definitions, url, feature_set)
