"""Coherence against formulas over the family, and against gains and discounts drawn at random."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from podium.data import Dataset, Judgments, Rankings
from podium.errors import ArgumentError
from podium.measures import Conventions, compare, evaluate
from podium.measures.comparison.coherence import BASES, STEEPNESS, FamilyMember, coherence
from podium.measures.presets import PRESETS
from tests.measures.queries import judged_runs

DEPTH = 4


def gain(label: float, base: float) -> float:
    if base == 0:
        return float(label > 0)
    return label if base == 1 else (base**label - 1) / (base - 1)


def dcg(labels: list[float], base: float, steepness: float) -> float:
    return math.fsum(
        gain(label, base) / np.log2(1 + rank) ** steepness
        for rank, label in enumerate(labels[:DEPTH], start=1)
    )


def mean_over_ties(labels: np.ndarray, scores: np.ndarray, base: float, steepness: float) -> float:
    """The mean DCG over all orders that the scores allow."""
    rows = sorted(range(len(labels)), key=lambda row: -scores[row])
    ties = [list(tie) for _, tie in itertools.groupby(rows, key=lambda row: scores[row])]
    orders = [
        [float(labels[row]) for tie in chosen for row in tie]
        for chosen in itertools.product(*map(itertools.permutations, ties))
    ]
    return math.fsum(dcg(order, base, steepness) for order in orders) / len(orders)


@st.composite
def two_systems(draw: st.DrawFn) -> tuple[Dataset, np.ndarray, np.ndarray]:
    group = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    rows = sum(group)
    labels = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    scores = [draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)) for _ in range(2)]
    data = Dataset.from_arrays(np.zeros((rows, 1)), labels, group=group)
    return data, np.array(scores[0]), np.array(scores[1])


@settings(max_examples=25)
@given(two_systems())
def test_the_family_by_its_formulas(case: tuple[Dataset, np.ndarray, np.ndarray]) -> None:
    data, ours, theirs = case
    result = coherence(f"nDCG@{DEPTH}", data, ours, theirs)
    for row, column in itertools.product((0, 2, 4, 8, 16), (0, 4, 12)):
        base, steepness = BASES[row], STEEPNESS[column]
        differences = []
        for begin, end in itertools.pairwise(data.offsets.tolist()):
            labels = data.labels[begin:end]
            best = dcg(sorted(labels.tolist(), reverse=True), base, steepness)
            one, other = (
                mean_over_ties(labels, scores[begin:end], base, steepness)
                for scores in (ours, theirs)
            )
            differences.append((one - other) / best if best else 0.0)
        expected = np.mean(differences)
        assert result.differences[row, column] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(two_systems())
def test_swapping_rows_or_systems_changes_nothing(
    case: tuple[Dataset, np.ndarray, np.ndarray],
) -> None:
    data, ours, theirs = case
    for name in ("nDCG@3", "DCG@3"):
        result = coherence(name, data, ours, theirs)
        other = coherence(name, data, theirs, ours)
        assert result.difference == pytest.approx(-other.difference)
        assert result.differences == pytest.approx(-other.differences)
        assert (result.keeps, result.turns, result.nearest) == (
            other.keeps,
            other.turns,
            other.nearest,
        )
        assert result.unanimous == other.unanimous
        order = np.concatenate(
            [np.arange(begin, end)[::-1] for begin, end in itertools.pairwise(data.offsets)]
        )
        turned = Dataset.from_arrays(
            np.zeros((len(order), 1)), data.labels[order], group=np.diff(data.offsets)
        )
        again = coherence(name, turned, ours[order], theirs[order])
        assert again.differences == pytest.approx(result.differences)
        assert again.unanimous == result.unanimous


MEASURES = [
    *("nDCG", "DCG", "nDCG@3", "DCG@3", "nDCG(gains='linear')@3", "DCG(discounts='reciprocal')@4"),
    *("nDCG(gains=(0, 3, 1, 9), discounts=(0.5, 1, 0.3))", "DCG(gains=(0, 1, 2, 2))@2"),
    "nDCG(discounts='letor')@5",
]


@settings(max_examples=40)
@given(judged_runs(size=8), judged_runs(size=8), st.sampled_from(MEASURES), st.data())
def test_the_measure_itself_is_a_member(
    case: tuple[Judgments, Rankings],
    other: tuple[Judgments, Rankings],
    measure: str,
    data: st.DataObject,
) -> None:
    """Whatever the conventions, at that member the difference is the table's."""
    judgments, ours = case
    theirs = other[1]
    named = data.draw(st.sampled_from(sorted(PRESETS)))
    chosen = replace(
        PRESETS[named],
        short_list=data.draw(st.sampled_from(["pad", "zero"])),
        nothing_relevant=data.draw(st.sampled_from([0.0, 1.0, "skip"])),
        pool=data.draw(st.sampled_from(["judged", "retrieved"])),
        unjudged=data.draw(st.sampled_from(["irrelevant", "drop"])),
    )
    values = [
        evaluate(measure, judgments, run, conventions=chosen)[measure] for run in (ours, theirs)
    ]
    differences = (values[0] - values[1])[~np.isnan(values[0] - values[1])]
    assume(len(differences))
    result = coherence(measure, judgments, ours, theirs, conventions=chosen)
    assert result.difference == pytest.approx(differences.mean(), abs=1e-9)
    if abs(result.difference) > 1e-9:
        assert result.keeps > 0  # the measure itself keeps the result


@pytest.mark.parametrize("conventions", ["podium", "trec_eval", "letor4", "lightgbm", "catboost"])
def test_gains_are_those_of_the_conventions(conventions: str) -> None:
    """One document of grade 2 against two of grade 1: linear gains are even, others not."""
    judgments = Judgments.from_columns(["q"] * 4, ["a", "b", "c", "x"], [3, 1, 1, 0])
    one = Rankings.from_columns(["q"] * 3, ["x", "a", "y"], [3, 2, 1])
    other = Rankings.from_columns(["q"] * 3, ["b", "c", "x"], [3, 2, 1])
    result = compare("DCG@3", judgments, {"one": one, "other": other}, conventions=conventions)
    outcome = result.against_baseline["DCG@3"]["other"]
    assert outcome.coherence is not None
    assert outcome.coherence.difference == pytest.approx(outcome.difference.mean)
    assert np.sign(outcome.difference.mean) in (-1, 1)
    expected = np.sign(outcome.coherence.differences) == np.sign(outcome.difference.mean)
    assert outcome.coherence.keeps == pytest.approx(expected.mean())


def random_members(random: np.random.Generator, grades: int, depth: int) -> tuple:
    gains = np.concatenate(([0.0], np.cumsum(random.exponential(size=grades) ** 3)))
    return gains.tolist(), np.sort(random.random(depth) ** 3)[::-1].tolist()


@settings(max_examples=60)
@given(two_systems(), st.sampled_from(["nDCG", "DCG"]), st.integers(0, 10**6))
def test_what_is_unanimous_no_gains_and_discounts_turn(
    case: tuple[Dataset, np.ndarray, np.ndarray], name: str, seed: int
) -> None:
    data, ours, theirs = case
    result = coherence(f"{name}@{DEPTH}", data, ours, theirs)
    if not result.unanimous:
        return
    assert result.nearest is None
    assert result.turns == 0.0
    random = np.random.default_rng(seed)
    sign = np.sign(result.difference)
    for _ in range(5):
        gains, discounts = random_members(random, 3, DEPTH)
        measure = f"{name}(gains={gains}, discounts={discounts})"
        one, other = (evaluate(measure, data, scores)[measure] for scores in (ours, theirs))
        assert sign * np.mean(one - other) >= -1e-12


def test_a_verdict_of_ndcg_is_not_unanimous_by_the_counts_of_dcg() -> None:
    """Over both queries one system has more of every grade in every top, but not in each query."""
    labels = [1, 0] + [3] + [1] * 9 + [0] * 10
    data = Dataset.from_arrays(np.zeros((22, 1)), labels, group=[2, 20])
    ours = np.array([1, 2] + [9] + [1] * 9 + [5] * 10)
    theirs = np.array([2, 1] + [1] + [1] * 9 + [5] * 10)
    by_dcg, by_ndcg = (coherence(name, data, ours, theirs) for name in ("DCG@10", "nDCG@10"))
    # DCG: 7 more in the second query, 1 - 1 / log2(3) less in the first.
    assert by_dcg.difference == pytest.approx((7 - (1 - 1 / math.log2(3))) / 2)
    assert by_dcg.unanimous
    # nDCG: with binary gains the ideal of the second query has ten documents of one worth.
    lost = 1 - 1 / math.log2(3)
    ranks = [1 / math.log2(1 + rank) for rank in range(1, 11)]
    usual, binary = 7 / (7 + sum(ranks[1:])), 1 / sum(ranks)
    assert by_ndcg.difference == pytest.approx((usual - lost) / 2)
    assert by_ndcg.differences[0, 4] == pytest.approx((binary - lost) / 2)
    assert by_ndcg.difference > 0 > by_ndcg.differences[0, 4]
    assert not by_ndcg.unanimous
    assert by_ndcg.nearest is not None


def test_unanimous_in_every_query() -> None:
    data = Dataset.from_arrays(np.zeros((5, 1)), [2, 1, 0, 1, 0], group=[3, 2])
    best, worse = np.array([3.0, 2, 1, 2, 1]), np.array([2.0, 3, 1, 1, 2])
    assert coherence("nDCG@3", data, best, worse).unanimous
    assert coherence("nDCG@3", data, worse, best).unanimous  # the other way round, too
    # What was retrieved is another pool for each system.
    retrieved = Conventions(pool="retrieved")
    assert not coherence("nDCG@3", data, best, worse, conventions=retrieved).unanimous
    # Discounts that rise, and gains that fall, are outside of what is proved.
    assert not coherence("nDCG(discounts=(0.5, 1, 0.2))", data, best, worse).unanimous
    assert not coherence("nDCG(gains=(0, 2, 1))@3", data, best, worse).unanimous
    assert not coherence("DCG(gains=(1, 2, 3))@3", data, best, worse).unanimous
    # Nothing is ahead where nothing differs.
    assert not coherence("nDCG@3", data, best, best).unanimous


def test_the_nearest_member_is_near_the_measure_itself() -> None:
    # One document of grade 2 against two of grade 1, all without discount: 2^2 - 1 > 2 > 2 * 0.5.
    judgments = Judgments.from_columns(["q"] * 3, ["a", "b", "c"], [2, 1, 1])
    one = Rankings.from_columns(["q"], ["a"], [1])
    other = Rankings.from_columns(["q"] * 2, ["b", "c"], [2, 1])
    for measure, own in (("DCG@3", 2.0), ("DCG(gains='linear')@3", 1.0)):
        result = coherence(measure, judgments, one, other)
        turned = result.differences < -1e-12
        distance = {
            FamilyMember(base, steepness): ((base - own) / 4) ** 2 + ((steepness - 1) / 3) ** 2
            for row, base in enumerate(BASES)
            for column, steepness in enumerate(STEEPNESS)
            if turned[row, column]
        }
        assert result.difference > 0
        assert result.nearest is not None
        assert distance[result.nearest] == min(distance.values())


@pytest.mark.parametrize(
    ("member", "text"),
    [
        (FamilyMember(2.0, 1.0), "gains of base 2 and discount 1/log2(1 + rank)^1"),
        (FamilyMember(0.0, 0.0), "binary gains and no discount"),
        (FamilyMember(1.0, 0.5, "reciprocal"), "linear gains and discount (1/rank)^0.5"),
        (FamilyMember(None, 2.0, "given"), "its own gains and its own discounts to the power 2"),
    ],
)
def test_members_in_words(member: FamilyMember, text: str) -> None:
    assert str(member) == text


def test_orders_of_a_thousand_documents_do_not_overflow() -> None:
    labels = np.concatenate([np.arange(2000, 0, -1), np.arange(300, 0, -1)])
    data = Dataset.from_arrays(np.zeros((2300, 1)), labels, group=[2000, 300])
    result = coherence("nDCG", data, labels, -labels)
    assert np.isfinite(result.differences).all()
    values = [evaluate("nDCG", data, scores)["nDCG"] for scores in (labels, -labels)]
    assert result.difference == pytest.approx(np.mean(values[0] - values[1]))
    assert result.nearest is None


def test_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(8)
    data = Dataset.from_arrays(np.zeros((9000, 1)), random.integers(0, 4, 9000), group=[6] * 1500)
    ours, theirs = random.random(9000), random.random(9000)
    result = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        result.append(coherence("nDCG@5", data, ours, theirs).differences)
    assert np.array_equal(*result)


def test_measures_without_gains_are_refused() -> None:
    data = Dataset.from_arrays(np.zeros((2, 1)), [1, 0], group=[2])
    for measure in ("AP", "DCG(discounts=(1, -1))"):
        with pytest.raises(ArgumentError, match="no gains and discounts to change"):
            coherence(measure, data, [1, 2], [2, 1])
