"""A feature in the terms of an engine: what its feature sets, feature stores and extractors hold.

Where a definition says the value of an absent feature, the engine's query has that value for
documents that it would not match: a model there must see what it saw in training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from podium.errors import ArgumentError
from podium.export.targets.opensearch import field_value
from podium.export.targets.solr import field_value as solr_field_value
from podium.features.definition import (
    EngineSource,
    FeatureDefinition,
    FieldSource,
    FunctionSource,
    QuerySource,
)
from podium.features.templates import solr_macros

TITLES: Mapping[str, str] = {
    "opensearch": "OpenSearch",
    "o19s": "Elasticsearch with the o19s plugin",
    "elasticsearch": "Elasticsearch",
    "solr": "Solr",
}
"""The engines that compute features, by the names of export targets."""

_SOLR_QUERY = "org.apache.solr.ltr.feature.SolrFeature"
_ELSEWHERE = (
    "Podium computes it: rerank with podium serve, or train a ranker without it to rank in the "
    "engine."
)


def engine_feature(feature: FeatureDefinition, target: str) -> dict[str, Any]:
    """Return the query of a feature, or Solr's class and parameters.

    Raises:
        ArgumentError: If the engine cannot compute it.

    Example:
        >>> feature = FeatureDefinition("age", FieldSource("days"), missing=0.0)
        >>> engine_feature(feature, "solr")["params"]
        {'field': 'days', 'defaultValue': '0.0'}
    """
    source = feature.source
    if isinstance(source, FieldSource):
        if feature.type == "category":
            raise _refusal(feature, target, "a category, and engines rank by numbers", _ELSEWHERE)
        if target == "solr":
            absent = None if math.isnan(feature.missing) else feature.missing
            return solr_field_value(source.field, absent)
        return _field_query(feature, source, target)
    if isinstance(source, EngineSource):
        return _solr_query(feature, source) if target == "solr" else _query(feature, source, target)
    if isinstance(source, QuerySource):
        what = "a property of the query"
    elif isinstance(source, FunctionSource):
        what = f"the function {source.function} of query and document"
    else:
        what = "the score of another ranker"
    raise _refusal(feature, target, what, _ELSEWHERE)


def _refusal(feature: FeatureDefinition, target: str, what: str, hint: str) -> ArgumentError:
    return ArgumentError(
        f"{TITLES[target]} cannot compute feature {feature.name!r}: it is {what}", hint=hint
    )


def _not_negative(feature: FeatureDefinition, target: str) -> None:
    if feature.missing < 0:
        raise _refusal(
            feature,
            target,
            f"{feature.missing:g} where it is absent, and a query's score is not negative",
            "Leave missing out, or give a number of at least 0.",
        )


def _field_query(feature: FeatureDefinition, source: FieldSource, target: str) -> dict[str, Any]:
    if math.isnan(feature.missing):
        return field_value(source.field)
    _not_negative(feature, target)
    factor = {"field": source.field, "missing": feature.missing}
    return {
        "function_score": {
            "query": {"match_all": {}},
            "functions": [{"field_value_factor": factor}],
            "boost_mode": "replace",
        }
    }


def _query(feature: FeatureDefinition, source: EngineSource, target: str) -> dict[str, Any]:
    if source.template is None:
        raise _refusal(feature, target, "a query of Solr only", "Add template = { ... } to it.")
    if math.isnan(feature.missing):
        return source.template
    _not_negative(feature, target)
    everything = {"constant_score": {"filter": {"match_all": {}}, "boost": feature.missing}}
    if feature.missing == 0:  # a sum with 0 is the score itself
        return {"bool": {"must": [everything], "should": [source.template]}}
    others = {"bool": {"must": [everything], "must_not": [source.template]}}
    return {"bool": {"should": [source.template, others], "minimum_should_match": 1}}


def _solr_query(feature: FeatureDefinition, source: EngineSource) -> dict[str, Any]:
    if source.solr is None:
        raise _refusal(
            feature, "solr", "a query of OpenSearch and Elasticsearch only", "Add solr = ... to it."
        )
    default = "NaN" if math.isnan(feature.missing) else repr(feature.missing)
    params = {"q": solr_macros(source.solr), "defaultValue": default}
    return {"class": _SOLR_QUERY, "params": params}
