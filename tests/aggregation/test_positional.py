"""Borda's count and reciprocal rank fusion against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.aggregation import borda, reciprocal_rank
from podium.aggregation.votes import Unranked
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from tests.aggregation.cases import prefers, votes, weighted_votes

NAN = float("nan")


@given(weighted_votes(), st.sampled_from(["below", "ignore"]))
def test_borda_counts_pairs(case: tuple[Doubles, Doubles], unranked: Unranked) -> None:
    table, weights = case
    expected = np.zeros(len(table))
    for ranker, column in enumerate(table.T):
        for one in range(len(table)):
            for other in range(len(table)):
                seen = unranked == "below" or not np.isnan(column[[one, other]]).any()
                if one != other and seen:
                    wins = prefers(column, one, other, unranked)
                    loses = prefers(column, other, one, unranked)
                    expected[one] += weights[ranker] * (1.0 if wins else 0.0 if loses else 0.5)
    assert borda(table, ranker_weights=weights, unranked=unranked) == pytest.approx(expected)


def test_unranked_documents_share_the_points_left() -> None:
    result = borda([[5], [NAN], [NAN], [4], [NAN]])
    assert result.tolist() == [4, (0 + 1 + 2) / 3, (0 + 1 + 2) / 3, 3, (0 + 1 + 2) / 3]


@given(votes(), st.floats(0, 100))
def test_reciprocal_rank_sums_positions(table: Doubles, k: float) -> None:
    if k == 0:
        k = 1.0
    expected = np.zeros(len(table))
    for column in table.T:
        for row, value in enumerate(column):
            if not np.isnan(value):
                above, tied = np.sum(column > value), np.sum(column == value)
                expected[row] += 1 / (k + above + (tied + 1) / 2)
    assert reciprocal_rank(table, rank_constant=k) == pytest.approx(expected)


@given(st.lists(votes(rankers=1, most=9), min_size=1, max_size=4))
def test_queries_are_apart(queries: list[Doubles]) -> None:
    offsets = np.concatenate(([0], np.cumsum([len(table) for table in queries])))
    for aggregate in (borda, reciprocal_rank):
        together = aggregate(np.concatenate(queries), offsets)
        assert together.tolist() == [x for table in queries for x in aggregate(table).tolist()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2], [3]],), "not numbers"),
        (([1, 2],), "dimensions"),
        ((np.empty((3, 0)),), "shape"),
        (([[float("inf")]],), "infinite"),
        (([[1], [2]], [0, 1]), "offsets"),
    ],
)
def test_wrong_votes_are_named(arguments: tuple[object, ...], message: str) -> None:
    for aggregate in (borda, reciprocal_rank):
        with pytest.raises(DataError, match=message):
            aggregate(*arguments)


def test_wrong_options_are_named() -> None:
    with pytest.raises(DataError, match="weights"):
        borda([[1, 2]], ranker_weights=[1])
    with pytest.raises(DataError, match="weights"):
        borda([[1, 2]], ranker_weights=[1, -1])
    with pytest.raises(ArgumentError, match="unranked"):
        borda([[1, 2]], unranked="above")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="rank_constant is"):
        reciprocal_rank([[1, 2]], rank_constant=NAN)


def test_no_rows() -> None:
    assert borda(np.empty((0, 2)), [0]).tolist() == []
