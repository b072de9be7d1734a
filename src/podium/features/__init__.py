"""One definition of features for training and production."""

from podium.features.check import FeatureFinding, check_definitions, check_features
from podium.features.definition import (
    EngineSource,
    FeatureDefinition,
    FieldSource,
    FunctionSource,
    QuerySource,
    RankerSource,
)
from podium.features.definitions import FeatureDefinitions
from podium.features.feature_log import (
    FeatureLog,
    LogSettings,
    log_features,
    upload_feature_set,
)
from podium.features.feature_search import EngineRequest, FeatureSearch, feature_search
from podium.features.queries_file import read_queries
from podium.features.query_check import QueryVerification, verify_queries
from podium.features.rows import FeatureRows
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.targets import detect_target

__all__ = [
    "EngineRequest",
    "EngineSource",
    "FeatureDefinition",
    "FeatureDefinitions",
    "FeatureFinding",
    "FeatureLog",
    "FeatureRows",
    "FeatureSearch",
    "FieldSource",
    "FunctionSource",
    "LogSettings",
    "LoggedDocument",
    "QuerySource",
    "QueryVerification",
    "RankerSource",
    "SearchQuery",
    "check_definitions",
    "check_features",
    "detect_target",
    "feature_search",
    "log_features",
    "read_queries",
    "upload_feature_set",
    "verify_queries",
]
