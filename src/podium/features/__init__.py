"""One definition of features for training and production."""

from podium.features.definition import (
    EngineSource,
    FeatureDefinition,
    FieldSource,
    FunctionSource,
    QuerySource,
    RankerSource,
)
from podium.features.definitions import FeatureDefinitions
from podium.features.engine_search import EngineRequest, EngineSearch, engine_search
from podium.features.rows import FeatureRows
from podium.features.search_query import LoggedDocument, SearchQuery

__all__ = [
    "EngineRequest",
    "EngineSearch",
    "EngineSource",
    "FeatureDefinition",
    "FeatureDefinitions",
    "FeatureRows",
    "FieldSource",
    "FunctionSource",
    "LoggedDocument",
    "QuerySource",
    "RankerSource",
    "SearchQuery",
    "engine_search",
]
