from .fusion import Fusion
from .objectives import balance_fusion, balance_ranker
from .ranker import HybridRanker
from .tuning import tune_fusion

__all__ = ["Fusion", "HybridRanker", "balance_fusion", "balance_ranker", "tune_fusion"]
