from .fusion import Fusion, QueryWeights, fuse, normalize

__all__ = ["Fusion", "QueryWeights", "fuse", "normalize"]
