"""Weights learned from what rankers are worth."""

import numpy as np
import pytest

from podium.aggregation import borda, proportional_weights, supervised_kemeny, tuned_weights
from podium.errors import DataError
from podium.kernels import Doubles
from podium.measures import evaluate

RANDOM = np.random.default_rng(5)
LABELS = RANDOM.integers(0, 3, 400).astype(np.float64)
OFFSETS = np.arange(0, 401, 20)
NOISE = (0.5, 2.0, 8.0)
VOTES = np.stack([LABELS + noise * RANDOM.normal(size=400) for noise in NOISE], axis=1)


def quality(scores: Doubles) -> float:
    return float(
        evaluate("nDCG@10", labels=LABELS, scores=scores, offsets=OFFSETS)["nDCG@10"].mean()
    )


def test_proportional_to_the_measure() -> None:
    values = np.array([quality(column) for column in VOTES.T])
    assert proportional_weights(VOTES, quality, OFFSETS) == pytest.approx(values / values.sum())


def test_documents_left_out_come_last() -> None:
    votes = np.where(VOTES > 0, VOTES, np.nan)
    filled = np.where(np.isnan(votes), -1.0, votes)
    values = np.array([quality(column) for column in filled.T])
    assert proportional_weights(votes, quality, OFFSETS) == pytest.approx(values / values.sum())


def test_rankers_worth_nothing() -> None:
    assert proportional_weights([[1, 2]], lambda _: -1.0).tolist() == [0.5, 0.5]
    assert proportional_weights([[np.nan, 2]], lambda _: 1.0).tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match="quality"):
        proportional_weights([[1, 2]], lambda _: float("nan"))


@pytest.mark.parametrize("aggregate", [borda, supervised_kemeny])
def test_tuned_is_no_worse_where_it_was_tuned(aggregate) -> None:  # type: ignore[no-untyped-def]
    first = proportional_weights(VOTES, quality, OFFSETS)
    tuned = tuned_weights(VOTES, quality, aggregate, OFFSETS)
    assert tuned.sum() == pytest.approx(1)
    before, after = (
        quality(aggregate(VOTES, OFFSETS, ranker_weights=weights)) for weights in (first, tuned)
    )
    assert after >= before
    assert tuned[0] > tuned[2]
    again = tuned_weights(VOTES, quality, aggregate, OFFSETS, start=tuned, rounds=1)
    assert quality(aggregate(VOTES, OFFSETS, ranker_weights=again)) >= after
