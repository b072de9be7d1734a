"""The sources of features that need no definitions of their own: engine, field, query, function."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from podium.errors import DataError
from podium.export.targets.opensearch import field_value
from podium.export.targets.solr import field_value as solr_field_value
from podium.features.definition import Column, FeatureDefinition, Source, ValueType
from podium.features.functions import FUNCTIONS, PROPERTIES
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.templates import QUERY, check_solr, check_template, parameters, solr_macros
from podium.features.toml_table import TomlTable

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")
_SOLR_QUERY = "org.apache.solr.ltr.feature.SolrFeature"


@dataclass(frozen=True)
class EngineSource(Source):
    """The score of a query of the engine.

    Attributes:
        template: The query for OpenSearch and Elasticsearch, with ``{{query}}`` in its strings.
        solr: The query for Solr, such as ``{!field f=title}{{query}}``.
    """

    template: dict[str, Any] | None = None
    solr: str | None = None

    name: ClassVar[str] = "engine"
    keys: ClassVar[tuple[str, ...]] = ("template", "solr")
    types: ClassVar[tuple[ValueType, ...]] = ("float",)

    @classmethod
    def read(cls, table: TomlTable, _value_type: ValueType = "float") -> Self:
        """Read the queries, and check their placeholders."""
        template, solr = table.values.get("template"), table.values.get("solr")
        if template is None and solr is None:
            table.fail("has no query", "Give template (OpenSearch, Elasticsearch), solr, or both.")
        if template is not None and (not isinstance(template, dict) or not template):
            table.fail("is not a table", "Write { match = { title = '{{query}}' } }.", "template")
        if solr is not None and (not isinstance(solr, str) or not solr):
            table.fail("is not a string", "Write '{!field f=title}{{query}}'.", "solr")
        with table.problems_of("template"):
            if template is not None:
                check_template(template)
        with table.problems_of("solr"):
            if solr is not None:
                check_solr(solr)
        return cls(template, solr)

    def description(self) -> str:
        """Return what a value is, in words."""
        return "the score of a query"

    def logged(self, feature: FeatureDefinition) -> tuple[FeatureDefinition, ...]:
        """Return the feature: the engine computes it."""
        return (feature,)

    def parameters(self, target: str) -> tuple[str, ...]:
        """Return the placeholders of the engine's query."""
        return parameters(self.solr if target == "solr" else self.template)

    def engine_feature(self, feature: FeatureDefinition, target: str) -> dict[str, Any]:
        """Return the query, with the value of documents that it would not match."""
        if target == "solr":
            return self._solr_feature(feature)
        if self.template is None:
            what = "a query of Solr only"
            raise feature.refusal(target, what, "Add template = { ... } to it.")
        if math.isnan(feature.missing):
            return self.template
        _require_not_negative(feature, target)
        everything = {"constant_score": {"filter": {"match_all": {}}, "boost": feature.missing}}
        if feature.missing == 0:  # a sum with 0 is the score itself
            return {"bool": {"must": [everything], "should": [self.template]}}
        others = {"bool": {"must": [everything], "must_not": [self.template]}}
        return {"bool": {"should": [self.template, others], "minimum_should_match": 1}}

    def _solr_feature(self, feature: FeatureDefinition) -> dict[str, Any]:
        if self.solr is None:
            what = "a query of OpenSearch and Elasticsearch only"
            raise feature.refusal("solr", what, "Add solr = ... to it.")
        default = "NaN" if math.isnan(feature.missing) else repr(feature.missing)
        params = {"q": solr_macros(self.solr), "defaultValue": default}
        return {"class": _SOLR_QUERY, "params": params}


@dataclass(frozen=True)
class FieldSource(Source):
    """A field of the document: a number, or a string of a known category."""

    field: str

    name: ClassVar[str] = "field"
    keys: ClassVar[tuple[str, ...]] = ("field",)

    @classmethod
    def read(cls, table: TomlTable, _value_type: ValueType) -> Self:
        """Read the name of the field."""
        return cls(_field_name(table))

    def description(self) -> str:
        """Return what a value is, in words, where engines do not compute it."""
        return "a category, and engines rank by numbers"

    def logged(self, feature: FeatureDefinition) -> tuple[FeatureDefinition, ...]:
        """Return the feature if it is a number, which engines compute."""
        return () if feature.type == "category" else (feature,)

    def stored_fields(self, feature: FeatureDefinition) -> tuple[str, ...]:
        """Return the field of a category."""
        return (self.field,) if feature.type == "category" else ()

    def column_of(self, feature: FeatureDefinition) -> Column:
        """Return the numbers of categories; the engine has other values."""
        if feature.type != "category":
            return super().column_of(feature)
        codes = {value: float(code) for code, value in enumerate(feature.categories)}

        def values(_query: SearchQuery, documents: Sequence[LoggedDocument]) -> Any:
            texts = (field_text(document.fields, self.field) for document in documents)
            return [math.nan if text is None else codes.get(text, math.nan) for text in texts]

        return Column(values)

    def engine_feature(self, feature: FeatureDefinition, target: str) -> dict[str, Any]:
        """Return the value of the field."""
        if feature.type == "category":
            return super().engine_feature(feature, target)
        if target == "solr":
            absent = None if math.isnan(feature.missing) else feature.missing
            return solr_field_value(self.field, absent)
        if math.isnan(feature.missing):
            return field_value(self.field)
        _require_not_negative(feature, target)
        factor = {"field": self.field, "missing": feature.missing}
        return {
            "function_score": {
                "query": {"match_all": {}},
                "functions": [{"field_value_factor": factor}],
                "boost_mode": "replace",
            }
        }


@dataclass(frozen=True)
class QuerySource(Source):
    """A property of the query, or a column of the queries.

    Attributes:
        property: The name of a property of the query's text, or None.
        column: The name of a column, or None.
    """

    property: str | None = None
    column: str | None = None

    name: ClassVar[str] = "query"
    keys: ClassVar[tuple[str, ...]] = ("property", "column")

    @classmethod
    def read(cls, table: TomlTable, value_type: ValueType) -> Self:
        """Read which property or column it is."""
        if ("property" in table.values) == ("column" in table.values):
            table.fail("needs either property or column", "Give one of them.")
        if "property" in table.values:
            name = table.choice("property", tuple(PROPERTIES))
            if value_type == "category":
                table.fail("a property of the query is a number", "Give a column.", "type")
            return cls(property=name)
        column = table.text("column", NAME, "the name of a column of the queries")
        if column == QUERY:
            table.fail("'query' is the text of the query", "Give a property of it.", "column")
        return cls(column=column)

    def description(self) -> str:
        """Return what a value is, in words."""
        return "a property of the query"

    def query_columns(self) -> tuple[str, ...]:
        """Return the column."""
        return () if self.column is None else (self.column,)

    def column_of(self, feature: FeatureDefinition) -> Column:
        """Return the query's value, which is the same for all documents."""
        return Column(lambda query, documents: np.full(len(documents), self._value(feature, query)))

    def _value(self, feature: FeatureDefinition, query: SearchQuery) -> float:
        if self.property is not None:
            return PROPERTIES[self.property](query.text)
        assert self.column is not None
        text = query.columns.get(self.column, "")
        if feature.type == "category":
            known = text in feature.categories
            return float(feature.categories.index(text)) if known else math.nan
        if not text.strip():
            return math.nan
        if feature.type == "bool" and text.lower() in ("true", "false"):
            return float(text.lower() == "true")
        try:
            return float(text)
        except ValueError as error:
            raise DataError(
                f"column {self.column!r} of query {query.id!r} is {text[:60]!r}, and feature "
                f"{feature.name!r} is a number",
                hint="Give a number, or define the feature as a category.",
            ) from error


@dataclass(frozen=True)
class FunctionSource(Source):
    """A named function of the query's words and of a text field of the document."""

    function: str
    field: str

    name: ClassVar[str] = "function"
    keys: ClassVar[tuple[str, ...]] = ("function", "field")
    types: ClassVar[tuple[ValueType, ...]] = ("float", "int", "bool")

    @classmethod
    def read(cls, table: TomlTable, _value_type: ValueType) -> Self:
        """Read the names of the function and of the field."""
        return cls(table.choice("function", tuple(FUNCTIONS)), _field_name(table))

    def description(self) -> str:
        """Return what a value is, in words."""
        return f"the function {self.function} of query and document"

    def stored_fields(self, _feature: FeatureDefinition) -> tuple[str, ...]:
        """Return the text field."""
        return (self.field,)

    def column_of(self, _feature: FeatureDefinition) -> Column:
        """Return the values of the function."""
        function = FUNCTIONS[self.function]

        def values(query: SearchQuery, documents: Sequence[LoggedDocument]) -> Any:
            texts = [field_text(document.fields, self.field) for document in documents]
            words = query.words
            return [math.nan if text is None else function(words, text) for text in texts]

        return Column(values)


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


def _field_name(table: TomlTable) -> str:
    return table.text("field", _FIELD, "the name of a field")


def _require_not_negative(feature: FeatureDefinition, target: str) -> None:
    if feature.missing < 0:
        raise feature.refusal(
            target,
            f"{feature.missing:g} where it is absent, and a query's score is not negative",
            "Leave missing out, or give a number of at least 0.",
        )
