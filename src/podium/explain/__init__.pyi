from .changes import smallest_changes
from .dependence import partial_dependence
from .importance import permutation_importance
from .similarity import similar_pairs

__all__ = [
    "partial_dependence",
    "permutation_importance",
    "similar_pairs",
    "smallest_changes",
]
