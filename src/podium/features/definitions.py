"""Definitions of features, which training and production share, and the rows that follow them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.folder import feature_set_name
from podium.export.live.connect import ENGINES
from podium.features.definition import FeatureDefinition
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.sources import EngineSource
from podium.features.templates import QUERY, parameters
from podium.kernels import Floats

_VERSION = 1


@dataclass(frozen=True)
class FeatureDefinitions:
    """What the features of a data set, a ranker and an engine are.

    Attributes:
        features: The features, in the order of the file.
        candidates: The query that finds the documents to rank, or None.

    Example:
        >>> from podium.features.sources import FieldSource
        >>> popularity = FeatureDefinition("popularity", FieldSource("clicks"))
        >>> definitions = FeatureDefinitions((popularity,))
        >>> definitions.names, len(definitions.hash)
        (('popularity',), 64)
    """

    features: tuple[FeatureDefinition, ...]
    candidates: EngineSource | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of all that defines values: not of comments, layout or order.

        It differs if a feature differs, or a ranker whose score is a feature. The query that finds
        candidates is not part of it.
        """
        contents = sorted((feature.content() for feature in self.features), key=_name)
        try:
            canonical = json.dumps(
                {"version": _VERSION, "features": contents},
                sort_keys=True,
                separators=(",", ":"),
                allow_nan=False,
            )
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"what defines the features has no hash ({error})",
                hint="Let `content` of your own source return what JSON can hold: of a file the "
                "digest.",
            ) from error
        return hashlib.sha256(canonical.encode()).hexdigest()

    @cached_property
    def logged(self) -> tuple[FeatureDefinition, ...]:
        """The features that the engine computes, those of nested rankers included.

        A nested feature has the name of its ranker's feature before its own: ``first__bm25``.
        """
        return tuple(each for feature in self.features for each in feature.source.logged(feature))

    @property
    def stored_fields(self) -> tuple[str, ...]:
        """The fields of documents that Podium needs for features that it computes, sorted."""
        return _sorted(feature.source.stored_fields(feature) for feature in self.features)

    def parameters(self, target: str) -> tuple[str, ...]:
        """Return the parameters of an engine's queries: ``query`` is the text, others columns."""
        sources = [feature.source for feature in self.logged]
        if self.candidates is not None:
            sources.append(self.candidates)
        return _sorted(source.parameters(target) for source in sources)

    @property
    def query_columns(self) -> tuple[str, ...]:
        """The columns of the queries that features and queries of any engine use, sorted."""
        computed = _sorted(feature.source.query_columns() for feature in self.features)
        sent = _sorted(self.parameters(target) for target in ENGINES)
        return _sorted([computed, [name for name in sent if name != QUERY]])

    def extractors(self, target: str, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return how an engine computes each feature, for ``ExportSettings(extractors=...)``.

        Args:
            target: ``opensearch``, ``o19s``, ``elasticsearch`` or ``solr``.
            names: The features, by default all of them.

        Raises:
            ArgumentError: If the engine cannot compute one of them.
        """
        if target not in ENGINES:
            raise ArgumentError(
                f"{target!r} does not compute features", hint=f"Targets: {', '.join(ENGINES)}."
            )
        return {
            feature.name: feature.source.engine_feature(feature, target)
            for feature in self.features
            if names is None or feature.name in names
        }

    def to_opensearch(self, name: str | None = None) -> dict[str, Any]:
        """Return the body of ``PUT _ltr/_featureset/NAME``, also of the o19s plugin.

        Args:
            name: That name; by default ``podium_features_`` and a hash of the features.

        Example:
            >>> from podium.features.sources import FieldSource
            >>> popularity = FeatureDefinition("popularity", FieldSource("clicks"))
            >>> body = FeatureDefinitions((popularity,)).to_opensearch()
            >>> [feature["name"] for feature in body["featureset"]["features"]]
            ['popularity']
        """
        queries = self.extractors("opensearch")
        return feature_set(queries, name or feature_set_name(queries))

    def to_solr(self, store: str | None = None) -> list[dict[str, Any]]:
        """Return the body of ``PUT schema/feature-store``; parameters are ``efi`` values.

        Args:
            store: The store's name; by default ``podium_features_`` and a hash of the features.
        """
        features = self.extractors("solr")
        return feature_store(features, store or feature_set_name(features))

    def to_elasticsearch(self) -> list[dict[str, Any]]:
        """Return the ``feature_extractors`` of a model of Elasticsearch's own learning to rank."""
        return [
            {"query_extractor": {"feature_name": name, "query": query}}
            for name, query in self.extractors("elasticsearch").items()
        ]


def feature_set(queries: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a feature set of OpenSearch and of the o19s plugin."""
    features = [
        {
            "name": feature,
            "params": list(parameters(query)),
            "template_language": "mustache",
            "template": query,
        }
        for feature, query in queries.items()
    ]
    return {"featureset": {"name": name, "features": features}}


def feature_store(features: dict[str, Any], store: str) -> list[dict[str, Any]]:
    """Return the features of a feature store of Solr."""
    return [{"store": store, "name": name, **content} for name, content in features.items()]


def _name(content: dict[str, Any]) -> str:
    return str(content["name"])


def _sorted(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for several in names for name in several}))


class FeatureRows:
    """Computes the rows of queries, the same way for a log and for a search.

    Args:
        definitions: The features.

    Example:
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import FieldSource, QuerySource
        >>> length = FeatureDefinition("length", QuerySource(property="words"))
        >>> clicks = FeatureDefinition("clicks", FieldSource("clicks"))
        >>> compute = FeatureRows(FeatureDefinitions((length, clicks)))
        >>> documents = [LoggedDocument("a", 1.0, {"clicks": 7}), LoggedDocument("b", 0.5, {})]
        >>> compute(SearchQuery("1", "running shoes"), documents).tolist()
        [[2.0, 7.0], [2.0, nan]]
    """

    def __init__(self, definitions: FeatureDefinitions) -> None:
        self.definitions = definitions
        self._columns = [feature.source.column_of(feature) for feature in definitions.features]

    def load(self) -> None:
        """Load nested rankers now rather than with the first query; a DataError if one fails."""
        for column in self._columns:
            column.load()

    def __call__(self, query: SearchQuery, documents: Sequence[LoggedDocument]) -> Floats:
        """Return one row per document, one column per feature, in the order of ``names``."""
        features = self.definitions.features
        rows = np.empty((len(documents), len(features)), np.float32)
        with np.errstate(over="ignore"):  # infinities are refused with the feature's name
            for number, (feature, column) in enumerate(zip(features, self._columns, strict=True)):
                values = np.asarray(column.values(query, documents), np.float64)
                rows[:, number] = np.where(np.isnan(values), feature.missing, values)
        if np.isinf(rows).any():
            row, number = np.argwhere(np.isinf(rows))[0]
            raise DataError(
                f"feature {features[number].name!r} of document {documents[row].id!r} of query "
                f"{query.id!r} is infinite in single precision",
                hint="Change its definition, as by a logarithm.",
            )
        return rows
