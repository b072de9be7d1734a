"""Made-up queries, cut into shards, and what evaluating them must give."""

from pathlib import Path

import numpy as np

from podium.cluster.shard_values import ShardedEvaluation
from podium.data import Dataset, ShardSet, write_shards
from podium.measures import evaluate as evaluate_rows

MEASURES = ["nDCG@5", "AP", "RR", "ERR@10", "P(rel=2)@3"]


def scored(queries: int, seed: int = 0, *, most: int = 30) -> Dataset:
    """Queries of unequal lengths with labels and two columns of scores, many of them tied."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, most, queries)
    rows = int(sizes.sum())
    features = np.round(draw.normal(size=(rows, 2)), 1)
    labels = draw.integers(0, 4, rows)
    return Dataset.from_arrays(features, labels, group=sizes, feature_names=["bm25", "clicks"])


def cut(data: Dataset, folder: str | Path, shards: int) -> ShardSet:
    most = max(1, data.features.nbytes // shards)
    return write_shards(data, folder, shard_bytes=most)


def assert_equal(evaluation: ShardedEvaluation, data: Dataset, conventions: str = "podium") -> None:
    for column, run in enumerate(evaluation.runs):
        whole = evaluate_rows(MEASURES, data, data.features[:, column], conventions=conventions)
        assert evaluation.queries == len(data)
        assert evaluation[run].query_ids.equals(whole.query_ids)
        for measure, mean in whole.means.items():
            np.testing.assert_allclose(evaluation[run][measure], whole[measure], rtol=0, atol=1e-9)
            assert abs(evaluation.means[run][measure] - mean) <= 1e-9
