"""The rows of a query: what the engine logged, and the features that Podium computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data import Dataset
from podium.data.definitions_hash import require_same_definitions
from podium.errors import DataError
from podium.features.definition import (
    FeatureDefinition,
    FieldSource,
    FunctionSource,
    QuerySource,
    RankerSource,
)
from podium.features.definitions import FeatureDefinitions, nested_name
from podium.features.functions import FUNCTIONS, PROPERTIES, words
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.kernels import Floats

if TYPE_CHECKING:
    from podium.rankers import Ranker


class FeatureRows:
    """Computes the rows of queries, the same way for a log and for a search.

    Args:
        definitions: The features.

    Example:
        >>> length = FeatureDefinition("length", QuerySource(property="words"))
        >>> clicks = FeatureDefinition("clicks", FieldSource("clicks"))
        >>> compute = FeatureRows(FeatureDefinitions((length, clicks)))
        >>> documents = [LoggedDocument("a", 1.0, {"clicks": 7}), LoggedDocument("b", 0.5, {})]
        >>> compute(SearchQuery("1", "running shoes"), documents).tolist()
        [[2.0, 7.0], [2.0, nan]]
    """

    def __init__(self, definitions: FeatureDefinitions) -> None:
        self.definitions = definitions
        self._rankers = {
            feature.name: _RankerScore(feature.name, feature.source)
            for feature in definitions.features
            if isinstance(feature.source, RankerSource)
        }

    def load(self) -> None:
        """Load nested rankers now rather than with the first query; a DataError if one fails."""
        for nested in self._rankers.values():
            nested.load()

    def __call__(self, query: SearchQuery, documents: Sequence[LoggedDocument]) -> Floats:
        """Return one row per document, one column per feature, in the order of ``names``."""
        rows = np.empty((len(documents), len(self.definitions.features)), np.float32)
        query_words = words(query.text)
        with np.errstate(over="ignore"):  # infinities are refused with the feature's name
            for column, feature in enumerate(self.definitions.features):
                values = self._column(feature, query, query_words, documents)
                rows[:, column] = np.where(np.isnan(values), feature.missing, values)
        if np.isinf(rows).any():
            row, column = np.argwhere(np.isinf(rows))[0]
            raise DataError(
                f"feature {self.definitions.names[column]!r} of document {documents[row].id!r} of "
                f"query {query.id!r} is infinite in single precision",
                hint="Change its definition, as by a logarithm.",
            )
        return rows

    def _column(
        self,
        feature: FeatureDefinition,
        query: SearchQuery,
        query_words: list[str],
        documents: Sequence[LoggedDocument],
    ) -> Any:
        source = feature.source
        if feature.is_logged:
            name = feature.name
            return np.array([document.values.get(name, math.nan) for document in documents], float)
        if isinstance(source, QuerySource):
            return np.full(len(documents), _query_value(feature, source, query))
        if isinstance(source, FieldSource):
            codes = {value: float(code) for code, value in enumerate(feature.categories)}
            values = (field_text(document.fields, source.field) for document in documents)
            return np.array([math.nan if v is None else codes.get(v, math.nan) for v in values])
        if isinstance(source, FunctionSource):
            function = FUNCTIONS[source.function]
            texts = [field_text(document.fields, source.field) for document in documents]
            return np.array(
                [math.nan if text is None else function(query_words, text) for text in texts]
            )
        return self._rankers[feature.name](query, documents)


class _RankerScore:
    """The score of a ranker, from its own features."""

    def __init__(self, name: str, source: RankerSource) -> None:
        self._name = name
        self._source = source
        self._rows = FeatureRows(source.definitions)

    def load(self) -> None:
        self._rows.load()
        assert self._ranker is not None

    @cached_property
    def _ranker(self) -> Ranker:
        from podium.rankers import load_ranker  # needs packages that other features do not

        path: Path = self._source.path
        ranker = load_ranker(path)
        own = self._source.definitions
        if set(ranker.feature_names_) != set(own.names):
            other = sorted(set(ranker.feature_names_) ^ set(own.names))
            raise DataError(
                f"has other features than its definitions: {', '.join(other[:5])}",
                path=path,
                hint=f"Define the ranker's own features for the feature {self._name!r}.",
            )
        require_same_definitions(ranker.definitions_hash_, own.hash, str(path), "its definitions")
        return ranker

    def __call__(self, query: SearchQuery, documents: Sequence[LoggedDocument]) -> Any:
        if not documents:
            return np.empty(0)
        prefix = nested_name(self._name, "")
        own = [
            LoggedDocument(
                document.id,
                document.score,
                {
                    name.removeprefix(prefix): value
                    for name, value in document.values.items()
                    if name.startswith(prefix)
                },
                document.fields,
            )
            for document in documents
        ]
        rows = Dataset.from_arrays(
            self._rows(query, own),
            np.zeros(len(own), np.float32),
            group=[len(own)],
            feature_names=self._rows.definitions.names,
        )
        return self._ranker.predict(rows)


def _query_value(feature: FeatureDefinition, source: QuerySource, query: SearchQuery) -> float:
    if source.property is not None:
        return PROPERTIES[source.property](query.text)
    assert source.column is not None
    text = query.columns.get(source.column, "")
    if feature.type == "category":
        return float(feature.categories.index(text)) if text in feature.categories else math.nan
    if not text.strip():
        return math.nan
    if feature.type == "bool" and text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text)
    except ValueError as error:
        raise DataError(
            f"column {source.column!r} of query {query.id!r} is {text[:60]!r}, and feature "
            f"{feature.name!r} is a number",
            hint="Give a number, or define the feature as a category.",
        ) from error


def field_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return the text of a stored field, values of a list joined by spaces; None if absent.

    A name with dots may be a path into objects.

    Example:
        >>> field_text({"author": {"name": ["Ann", "Bo"]}}, "author.name")
        'Ann Bo'
    """
    value: Any = fields.get(name)
    if value is None and "." in name:
        value = fields
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, list):
        values = [_text(each) for each in value if each is not None]
        return " ".join(values) if values else None
    return None if value is None else _text(value)


def _text(value: object) -> str:
    """Return a value as JSON and the columns of queries have it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
