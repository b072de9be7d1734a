"""Measures of preferences against their formulas, and real preferences."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data import Rankings, read_pairs
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, DataError
from podium.measures import Conventions, evaluate, ppref
from podium.measures.inputs import Pairs
from tests.data.shared_files import shared
from tests.measures.queries import dl21

Pair = tuple[float, float]


def ranked(pairs: Sequence[Pair], k: float) -> list[Pair]:
    return [pair for pair in pairs if min(pair) <= k and min(pair) < math.inf]


def right(pair: Pair) -> float:
    return 0.5 if pair[0] == pair[1] else float(pair[0] < pair[1])


def weight(pair: Pair) -> float:
    return 1 / math.log2(1 + min(pair))


def formulas(pairs: Sequence[Pair], k: float) -> list[float]:
    """ppref, rpref and wpref of pairs of ranks, better document first."""
    counted = ranked(pairs, k)
    weights = sum(map(weight, counted))
    return [
        sum(map(right, counted)) / len(counted) if counted else 0.0,
        sum(map(right, counted)) / len(pairs) if pairs else 0.0,
        sum(weight(pair) * right(pair) for pair in counted) / weights if counted else 0.0,
    ]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(-1, 7), st.integers(-1, 7)), max_size=12),
    st.sampled_from([None, 1, 3]),
    st.sampled_from(["expected", "input order"]),
)
def test_formulas(
    scores: list[int], pairs: list[tuple[int, int]], k: int | None, ties: str
) -> None:
    size = len(scores)
    pairs = [(one, other) for one, other in pairs if max(one, other) < size]
    order = sorted(range(size), key=lambda row: -scores[row])
    rank: dict[int, float] = {row: float(index) for index, row in enumerate(order, start=1)}
    if ties == "expected":  # equal scores share the mean of their ranks
        rank = {
            row: float(np.mean([rank[other] for other in rank if scores[other] == scores[row]]))
            for row in rank
        }
    rank[-1] = math.inf
    names = [f"{name}{'' if k is None else f'@{k}'}" for name in ("ppref", "rpref", "wpref")]
    truth = Pairs(*np.array(pairs, int).reshape(-1, 2).T, np.array([0, len(pairs)]))  # type: ignore[call-arg]
    chosen = Conventions(ties=ties)  # type: ignore[arg-type]
    result = evaluate(names, truth, scores, group=[size], conventions=chosen)
    by_rank = [(rank[one], rank[other]) for one, other in pairs]
    expected = formulas(by_rank, math.inf if k is None else k)
    assert [float(result[name][0]) for name in names] == pytest.approx(expected)


def test_by_ids() -> None:
    preferences = Preferences.from_columns(
        ["q", "q", "q", "r"], ["a", "b", "a", "x"], ["b", "c", "gone", "y"], [1, -1, 0, 1]
    )
    run = Rankings.from_columns(["q", "q"], ["a", "b"], [1, 2])
    result = evaluate(["ppref", "rpref"], preferences, run)
    # a > b is ranked wrong, c > b too as c is not in the list, and a tie says nothing.
    assert result.query_ids.to_pylist() == ["q", "r"]
    assert result["ppref"].tolist() == [0.0, 0.0]
    turned = Rankings.from_columns(["q", "q", "r"], ["a", "b", "x"], [2, 1, 1])
    result = evaluate(["ppref", "rpref"], preferences, turned)
    assert result["ppref"].tolist() == [0.5, 1.0]
    skip = Conventions(missing="skip")
    assert math.isnan(evaluate("ppref", preferences, run, conventions=skip)["ppref"][1])


def test_real_preferences() -> None:
    """Better runs agree more with people: TREC DL 2021 passages, judged in pairs."""
    preferences = read_pairs(shared("preferences/trec-dl21/human.pref"))
    means = {
        name: evaluate("ppref@10", preferences, dl21(name)[1]).means.popitem()[1]
        for name in ("p_bm25", "pash_f3")
    }
    assert 0.3 < means["p_bm25"] < means["pash_f3"] < 1


def test_mistakes() -> None:
    pairs = Pairs([0], [1], [0, 1])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="measure of preferences"):
        evaluate(ppref, [1, 0], [1, 2], group=[2])
    with pytest.raises(ArgumentError, match="AP is a measure of labels"):
        evaluate("AP", pairs, [1, 2], group=[2])
    with pytest.raises(DataError, match="outside of its query"):
        evaluate(ppref, pairs, [1], group=[1])
    with pytest.raises(DataError, match="pairs of 1 queries for 2 queries"):
        evaluate(ppref, pairs, [1, 2], group=[1, 1])
    with pytest.raises(DataError, match="arrays of pairs have different lengths"):
        Pairs([0], [1, 2], [0, 1])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="offsets do not divide 2 rows"):
        Pairs([0, 1], [1, 2], [0, 1])  # type: ignore[arg-type]


def test_preferences_of_other_queries_are_refused() -> None:
    preferences = Preferences.from_columns(["1"], ["a"], ["b"], [1])
    rankings = Rankings.from_columns(["q1", "q1"], ["a", "b"], [2, 1])
    with pytest.raises(DataError, match="none of the 1 queries of the rankings is judged"):
        evaluate("ppref", preferences, rankings)
