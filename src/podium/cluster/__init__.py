"""The same evaluations, fits and sweeps over shards, on Ray."""

from podium.cluster.connection import Cluster
from podium.cluster.evaluating import evaluate
from podium.cluster.fitting import fit
from podium.cluster.results_table import TaskResult, read_results
from podium.cluster.shard_values import ShardedEvaluation
from podium.cluster.sources import ShardSource, open_source
from podium.cluster.sweeps import SweepProgress, grid, sweep
from podium.cluster.tuning import tune

__all__ = [
    "Cluster",
    "ShardSource",
    "ShardedEvaluation",
    "SweepProgress",
    "TaskResult",
    "evaluate",
    "fit",
    "grid",
    "open_source",
    "read_results",
    "sweep",
    "tune",
]
