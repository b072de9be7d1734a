"""Data that say nothing are refused, not fitted to."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from podium.cluster import fit_shards
from podium.data import Dataset, Judgments, write_shards
from podium.errors import DataError
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
)
from tests.rankers.made_up import made_up

RANKERS: list[Ranker] = [
    LinearRanker(),
    LinearRanker("PairHinge()"),
    TreeRanker(n_estimators=2),
    TreeRanker(engine="xgboost", n_estimators=2),
    NeuralRanker(epochs=1),
    BoostedRanker(n_estimators=2),
    CascadeRanker(LinearRanker(), [LinearRanker()]),
]


def indifferent(label: float = 1.0) -> Dataset:
    """Labels differ between queries, not within."""
    random = np.random.default_rng(0)
    labels = np.repeat([0.0, label, 2.0], 8)
    return Dataset.from_arrays(random.random((24, 6)), labels, group=[8, 8, 8])


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_equal_labels_are_refused(ranker: Ranker) -> None:
    with pytest.raises(DataError, match=r"training data is preferred.* each of 3 queries"):
        clone(ranker).fit(indifferent())
    with pytest.raises(DataError, match="validation data is preferred"):
        clone(ranker).fit(made_up(3), eval_set=indifferent())


def test_one_preference_in_the_last_query_is_enough(tmp_path: Path) -> None:
    blank = indifferent()
    labels = blank.labels.copy()
    labels[-1] += 1
    data = Dataset.from_arrays(blank.features, labels, group=[8, 8, 8])
    scores = LinearRanker("ListNet()").fit(data).predict(data)
    assert np.argmax(scores[-8:]) == 7  # the one that is preferred
    shards = write_shards(data, tmp_path / "shards", shard_bytes=200)
    assert len(shards.shards) == 3
    streamed = LinearRanker("ListNet()").fit(shards).predict(data)
    np.testing.assert_allclose(streamed, scores, rtol=1e-3, atol=1e-3)
    flat = write_shards(blank, tmp_path / "flat", shard_bytes=200)
    with pytest.raises(DataError, match="preferred"):
        fit_shards(LinearRanker("ListNet()"), flat)


def test_judgments_of_other_documents_are_refused() -> None:
    data = Dataset.from_arrays(
        np.zeros((3, 1)), [0, 0, 0], qid=["p", "q", "q"], document_ids=["a", "b", "c"]
    )
    others = Judgments.from_columns(["q", "q"], ["B", "C"], [1, 2])
    with pytest.raises(DataError, match="none of the 2 documents of 1 judged queries"):
        data.relabel(others)
