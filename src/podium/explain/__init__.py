"""What a ranker does: changes that swap documents, what features are worth, cards, reports."""

from podium.explain.cards import data_card, model_card
from podium.explain.changes import FeatureChange, smallest_changes
from podium.explain.dependence import PartialDependence, partial_dependence
from podium.explain.explanation_html import explanation_html
from podium.explain.importance import GroupImportance, Importance, permutation_importance
from podium.explain.importance_html import importance_html
from podium.explain.similarity import SimilarPair, query_correlations, similar_pairs

__all__ = [
    "FeatureChange",
    "GroupImportance",
    "Importance",
    "PartialDependence",
    "SimilarPair",
    "data_card",
    "explanation_html",
    "importance_html",
    "model_card",
    "partial_dependence",
    "permutation_importance",
    "query_correlations",
    "similar_pairs",
    "smallest_changes",
]
