from .fusion import Fusion, QueryWeights, fuse, normalize
from .tuning import HybridTuning, tune_fusion

__all__ = ["Fusion", "HybridTuning", "QueryWeights", "fuse", "normalize", "tune_fusion"]
