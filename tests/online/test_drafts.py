"""Drafts of two rankings: fair, the same on every page, and credits that say what they should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ArgumentError
from podium.online import interleave
from podium.online.drafts import METHODS, Method, share_of

RANKINGS = st.permutations(list("abcdefgh")).flatmap(
    lambda order: st.integers(0, 8).map(lambda size: order[:size])
)


@given(RANKINGS, RANKINGS, st.sampled_from(METHODS), st.integers(0, 10))
def test_a_draft_has_each_document_once_and_begins_with_shorter_ones(
    first: list[str], second: list[str], method: Method, seed: int
) -> None:
    draft = interleave(first, second, method=method, random_state=seed)
    assert sorted(draft.documents) == sorted({*first, *second})
    assert len(draft.credits) == len(draft.documents)
    for size in range(len(draft.documents)):
        shorter = interleave(first, second, size, method=method, random_state=seed)
        assert shorter.documents == draft.documents[:size]
        assert shorter.credits == draft.credits[:size]


@given(RANKINGS, st.sampled_from(METHODS), st.integers(0, 10))
def test_equal_rankings_say_nothing(ranking: list[str], method: Method, seed: int) -> None:
    draft = interleave(ranking, ranking, method=method, random_state=seed)
    assert not draft.differs
    if method != "probabilistic":  # which may show any order
        assert draft.documents == ranking


def team_draft(first: list[str], second: list[str], flips: list[int]) -> dict[str, float]:
    """Radlinski, Kurup and Joachims' rule, where what both would pick next belongs to neither."""
    credit: dict[str, float] = {}
    turns: list[int] = []
    while left := [[d for d in ranking if d not in credit] for ranking in (first, second)]:
        if not turns and not all(left):
            return credit | {d: 0.0 for rest in left for d in rest}
        if not turns and left[0][0] == left[1][0]:
            credit[left[0][0]] = 0.0
            continue
        turns = turns or ([0, 1] if flips.pop(0) else [1, 0])
        side = turns.pop(0)
        credit[left[side][0]] = (-1.0, 1.0)[side]
    raise AssertionError


@given(RANKINGS, RANKINGS, st.integers(0, 50))
def test_a_team_draft_follows_its_rule(first: list[str], second: list[str], seed: int) -> None:
    random = np.random.default_rng(seed)
    flips = [int(random.random() < 0.5) for _ in range(20)]
    draft = interleave(first, second, random_state=seed)
    assert dict(zip(draft.documents, draft.credits, strict=True)) == team_draft(
        first, second, flips
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("second", ["hgfedcba", "abdcefgh", "bcdefgha", "bcd", "xyzab", "x"])
def test_users_who_click_anything_prefer_none(method: Method, second: str) -> None:
    # All documents are alike, and users look at rank r with the probability 1/r.
    first = list("abcdefgh")
    size = None if method == "balanced" else 6
    totals = []
    for seed in range(1000):
        draft = interleave(first, list(second), size, method=method, random_state=seed)
        totals.append(sum(c / r for r, c in enumerate(draft.credits, 1)))
    expected = 0.0
    if method == "balanced":  # which estimates clicks: a longer list has more
        expected = sum(1 / r for r in range(1, len(second) + 1)) - sum(1 / r for r in range(1, 9))
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - expected) <= 4 * error + 1e-9


@pytest.mark.parametrize("second", ["hgfedcba", "abdcefgh", "xyzab"])
def test_balanced_credits_estimate_the_difference_of_clicks(second: str) -> None:
    first, size = list("abcdefgh"), 20
    likes = {document: 0.1 + 0.8 * (ord(document) % 3 == 0) for document in "abcdefghxyz"}
    expected = sum(likes[d] / r for r, d in enumerate(second, 1)) - sum(
        likes[d] / r for r, d in enumerate(first, 1)
    )
    totals = []
    for seed in range(200):
        draft = interleave(first, list(second), size, method="balanced", random_state=seed)
        totals.append(
            sum(
                c * likes[d] / r
                for r, (d, c) in enumerate(zip(draft.documents, draft.credits, strict=True), 1)
            )
        )
    # There are two lists; each is shown in half of the searches.
    values, counts = np.unique(np.round(totals, 9), return_counts=True)
    assert len(values) <= 2
    assert counts.min() > 60
    assert np.mean(values) == pytest.approx(expected)


def test_shares_are_even_and_need_the_key() -> None:
    values = [share_of(b"key", f"search {n}") for n in range(2000)]
    assert abs(np.mean(values) - 0.5) < 4 / np.sqrt(12 * 2000)
    other = [share_of(b"other", f"search {n}") for n in range(2000)]
    assert abs(np.corrcoef(values, other)[0, 1]) < 0.1


def test_what_cannot_be_interleaved() -> None:
    with pytest.raises(ArgumentError, match="twice"):
        interleave(["a", "a"], ["b"])
    with pytest.raises(ArgumentError, match="method is 'magic'"):
        interleave(["a"], ["b"], method="magic")  # type: ignore[arg-type]
