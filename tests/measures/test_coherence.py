import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from podium.errors import DataError
from podium.measures.coherence import BASES, STEEPNESS, coherence


def gain(label: float, base: float) -> float:
    if base == 0:
        return float(label > 0)
    return label if base == 1 else (base**label - 1) / (base - 1)


def dcg(labels: np.ndarray, base: float, steepness: float) -> float:
    return sum(
        gain(label, base) / np.log2(1 + rank) ** steepness
        for rank, label in enumerate(labels.tolist(), start=1)
    )


labels = arrays(
    np.float32,
    st.tuples(st.just(3), st.integers(1, 4), st.just(5)),
    elements=st.integers(0, 3).map(float),
)


@given(labels)
def test_the_family_by_its_formulas(stacked: np.ndarray) -> None:
    ours, theirs, extra = stacked
    ideal = -np.sort(-np.concatenate((ours, theirs, extra), axis=1), axis=1)[:, :5]
    found = coherence(ours, theirs, ideal)
    for row in (0, 2, 4, 8, 16):
        for column in (0, 4, 12):
            base, steepness = BASES[row], STEEPNESS[column]
            differences = []
            for query in range(len(ours)):
                best = dcg(ideal[query], base, steepness)
                gap = dcg(ours[query], base, steepness) - dcg(theirs[query], base, steepness)
                differences.append(gap / best if best else 0.0)
            assert found.differences[row, column] == pytest.approx(np.mean(differences), abs=1e-9)


@given(labels)
def test_a_verdict_turned_round_is_as_coherent(stacked: np.ndarray) -> None:
    ours, theirs, _ = stacked
    one, other = (coherence(a, b, normalised=False) for a, b in ((ours, theirs), (theirs, ours)))
    assert one.difference == pytest.approx(-other.difference)
    assert (one.keeps, one.turns, one.nearest, one.unanimous) == (
        other.keeps,
        other.turns,
        other.nearest,
        other.unanimous,
    )


@given(labels)
def test_what_all_agree_on_no_member_turns(stacked: np.ndarray) -> None:
    ours, theirs, _ = stacked
    found = coherence(ours, theirs, normalised=False)
    if found.unanimous:
        assert found.nearest is None
        assert found.turns == 0.0


def test_two_grades_and_one_place_leave_nothing_to_disagree_on() -> None:
    found = coherence(np.float32([[1], [1]]), np.float32([[0], [1]]), np.float32([[1], [1]]))
    assert found.keeps == 1.0
    assert found.unanimous
    assert found.nearest is None


def test_orders_of_a_thousand_documents_do_not_overflow() -> None:
    order = np.arange(1000, 0, -1, dtype=np.float32)[None, :]
    found = coherence(order, order[:, ::-1].copy(), order)
    assert np.isfinite(found.differences).all()
    assert found.difference > 0


def test_rankings_of_different_depth_are_refused() -> None:
    with pytest.raises(DataError, match="same depth"):
        coherence(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32), normalised=False)
