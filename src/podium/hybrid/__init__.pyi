from .fusion import Fusion
from .objectives import balance_fusion
from .ranker import HybridRanker
from .tuning import tune_fusion

__all__ = ["Fusion", "HybridRanker", "balance_fusion", "tune_fusion"]
