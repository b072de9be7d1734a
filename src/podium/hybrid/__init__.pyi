from .fusion import Fusion, QueryWeights, fuse, normalize
from .objectives import Balance, balance_fusion
from .ranker import HybridRanker
from .tuning import HybridTuning, tune_fusion

__all__ = [
    "Balance",
    "Fusion",
    "HybridRanker",
    "HybridTuning",
    "QueryWeights",
    "balance_fusion",
    "fuse",
    "normalize",
    "tune_fusion",
]
