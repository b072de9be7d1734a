"""Aggregations of LETOR's MQ2008-agg: 25 rankings, most of them partial."""

import numpy as np
import pytest

from podium.aggregation import (
    borda,
    exact_kemeny,
    kendall_distance,
    reciprocal_rank,
    supervised_kemeny,
)
from podium.data import Dataset, read_letor
from podium.measures import evaluate
from tests.data.shared_files import shared


@pytest.fixture(scope="module")
def data() -> Dataset:
    return read_letor(shared("letor/MQ2008-agg/A1.txt.gz"))


def test_ranks_are_read_with_null_as_not_ranked(data: Dataset) -> None:
    assert data.features.shape == (2933, 25)
    assert np.isnan(data.features).mean() > 0.5
    assert np.nanmin(data.features) == 1
    assert data.features[0, :6].tolist()[:4] == [1, 30, 48, 133]
    assert np.isnan(data.features[0, 4])


def test_the_published_borda_count() -> None:
    """LETOR 4.0's BordaCount on the first test fold, which takes the largest number as first."""
    test = read_letor(shared("letor/MQ2008-agg/A5.txt.gz"))
    published = {"nDCG@1": 0.2137, "nDCG@10": 0.1679, "P@1": 0.2821, "P@10": 0.2154, "AP": 0.3858}
    scores = borda(test.features, test.offsets)
    result = evaluate(list(published), test, scores, conventions="letor4")
    for name, value in published.items():
        assert result[name].mean() == pytest.approx(value, abs=0.00006)


def test_every_aggregation_beats_the_median_ranker(data: Dataset) -> None:
    votes = -data.features
    best = [
        evaluate("nDCG@10", data, np.where(np.isnan(column), -1e6, column))["nDCG@10"].mean()
        for column in votes.T
    ]
    for aggregate in (borda, reciprocal_rank, supervised_kemeny):
        scores = aggregate(votes, data.offsets)
        assert evaluate("nDCG@10", data, scores)["nDCG@10"].mean() > np.median(best)


def test_exact_is_nearest(data: Dataset) -> None:
    small = data.select(np.flatnonzero(data.sizes <= 30))
    votes = -small.features
    exact = exact_kemeny(votes, small.offsets)
    assert exact.optimal.all()
    supervised = supervised_kemeny(votes, small.offsets, refine=True)
    distances = kendall_distance(supervised, votes, small.offsets)
    assert np.all(distances >= exact.distances - 1e-9)
    assert distances.sum() < 1.01 * exact.distances.sum()
