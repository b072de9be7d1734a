from .connection import Cluster
from .evaluating import evaluate_shards
from .fitting import fit_shards
from .sweeps import grid, sweep

__all__ = [
    "Cluster",
    "evaluate_shards",
    "fit_shards",
    "grid",
    "sweep",
]
