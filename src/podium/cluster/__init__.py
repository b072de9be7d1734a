"""The same evaluations, fits and sweeps over shards, on Ray."""

from podium.cluster.connection import Cluster
from podium.cluster.evaluating import evaluate
from podium.cluster.shard_values import ShardedEvaluation
from podium.cluster.sources import ShardSource, open_source

__all__ = [
    "Cluster",
    "ShardSource",
    "ShardedEvaluation",
    "evaluate",
    "open_source",
]
