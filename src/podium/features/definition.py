"""What one feature is: where its values come from, their type, and the value of an absent one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from podium.features.definitions import FeatureDefinitions

ValueType: TypeAlias = Literal["float", "int", "bool", "category"]


@dataclass(frozen=True)
class EngineSource:
    """The score of a query of the engine.

    Attributes:
        template: The query for OpenSearch and Elasticsearch, with ``{{query}}`` in its strings.
        solr: The query for Solr, such as ``{!field f=title}{{query}}``.
    """

    template: dict[str, Any] | None = None
    solr: str | None = None


@dataclass(frozen=True)
class FieldSource:
    """A field of the document: a number, or a string of a known category."""

    field: str


@dataclass(frozen=True)
class QuerySource:
    """A property of the query, or a column of the queries.

    Attributes:
        property: The name of a property of the query's text, or None.
        column: The name of a column, or None.
    """

    property: str | None = None
    column: str | None = None


@dataclass(frozen=True)
class FunctionSource:
    """A named function of the query's words and of a text field of the document."""

    function: str
    field: str


@dataclass(frozen=True)
class RankerSource:
    """The score of a saved ranker, from features of its own.

    Attributes:
        path: The file of the ranker.
        sha256: The digest of its bytes.
        definitions: Its features.
    """

    path: Path
    sha256: str
    definitions: FeatureDefinitions


Source: TypeAlias = EngineSource | FieldSource | QuerySource | FunctionSource | RankerSource

SOURCES: dict[str, type[Source]] = {
    "engine": EngineSource,
    "field": FieldSource,
    "query": QuerySource,
    "function": FunctionSource,
    "ranker": RankerSource,
}
"""Where values come from, by the name in a file."""


@dataclass(frozen=True)
class FeatureDefinition:
    """A feature.

    Attributes:
        name: Its name in data sets, rankers and engines.
        source: Where its values come from.
        type: What its values are; a category is a number from 0, in the order of ``categories``.
        missing: The value where a document has none; NaN stays missing.
        categories: The known values of a category.
    """

    name: str
    source: Source
    type: ValueType = "float"
    missing: float = math.nan
    categories: tuple[str, ...] = ()

    @property
    def source_name(self) -> str:
        """The name of its kind of source in a file."""
        return next(name for name, kind in SOURCES.items() if isinstance(self.source, kind))

    @property
    def is_logged(self) -> bool:
        """Whether the engine computes it, rather than Podium."""
        return isinstance(self.source, EngineSource) or (
            isinstance(self.source, FieldSource) and self.type != "category"
        )

    def content(self) -> dict[str, Any]:
        """Return what defines its values, as JSON has it: what the hash is taken of."""
        source = self.source
        details: dict[str, Any]
        if isinstance(source, RankerSource):
            details = {"sha256": source.sha256, "definitions": source.definitions.hash}
        else:
            details = {name: value for name, value in vars(source).items() if value is not None}
        content = {
            "name": self.name,
            "source": self.source_name,
            "type": self.type,
            "missing": None if math.isnan(self.missing) else self.missing,
            **details,
        }
        return content | ({"categories": list(self.categories)} if self.categories else {})
