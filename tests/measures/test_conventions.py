"""Conventions: the golden vectors, and what each choice does."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from podium.data import Dataset, Judgments, Rankings
from podium.data.judged import Joined
from podium.errors import DataError, PodiumError
from podium.measures import AP, Conventions, P, evaluate
from podium.measures.presets import PRESETS, conventions_named
from podium.measures.registry import Measure

GOLDEN = {"labels": [0, 1, 2, 0], "scores": [1, 1, 1, 0.5], "group": [4]}
IDS = ["d1", "d2", "d3", "d4"]


def value(measure: str, conventions: Conventions | str, **arrays: object) -> float:
    query: dict[str, Any] = {"document_ids": IDS, **GOLDEN, **arrays}
    scores = query.pop("scores")
    data = Dataset.from_arrays(np.zeros((len(scores), 1)), **query)
    return float(evaluate(measure, data, scores, conventions=conventions)[measure][0])


def gain(label: float) -> float:
    return 2**label - 1


L2, L3, L4 = (1 / math.log2(1 + rank) for rank in (1, 2, 3))


@pytest.mark.parametrize(
    ("conventions", "printed", "formula"),
    [
        # ranked 0 1 2: in input order
        (Conventions(ties="input order"), 0.5869, (L3 + 3 * L4) / (3 * L2 + L3)),
        (Conventions(ties="input order", gains="linear"), 0.6199, (L3 + 2 * L4) / (2 * L2 + L3)),
        # ranked 2 1 0: by descending id
        (Conventions(ties="id descending"), 1.0, 1.0),
        (Conventions(ties="id descending", gains="linear"), 1.0, 1.0),
        # the mean over the six orders of 0 1 2
        (Conventions(), 0.7825, 4 / 3 * (L2 + L3 + L4) / (3 * L2 + L3)),
        (Conventions(gains="linear"), 0.8100, (L2 + L3 + L4) / (2 * L2 + L3)),
        # discounts 1, 1, 1 / log2(3)
        (PRESETS["letor4"], 0.7232, (1 + 3 / math.log2(3)) / (3 + 1)),
    ],
)
def test_golden_vectors(conventions: Conventions, printed: float, formula: float) -> None:
    result = value("nDCG@3", conventions)
    assert result == pytest.approx(formula, abs=1e-12)
    assert result == pytest.approx(printed, abs=5e-5)


def test_letor_has_nothing_for_a_list_shorter_than_the_cut_off() -> None:
    short = {"labels": [0, 2], "scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    assert value("nDCG@10", "letor4", **short) == 0
    assert value("nDCG@2", "letor4", **short) == 1.0  # ranks 1 and 2 count alike
    assert value("P@10", "letor4", **short) == 0.1
    assert value("AP", "letor4", **short) == 0.5
    assert value("nDCG@10", "podium", **short) == pytest.approx(L3 / L2)


@pytest.mark.parametrize(
    ("ties", "ranked"),
    [
        ("input order", [1, 0, 2]),
        ("id descending", [2, 0, 1]),
        ("id ascending", [1, 0, 2]),
        ("worst", [0, 1, 2]),
        ("best", [2, 1, 0]),
    ],
)
def test_ties(ties: str, ranked: list[int]) -> None:
    chosen = Conventions(ties=ties, gains="linear")  # type: ignore[arg-type]
    for at, label in enumerate(ranked):
        discounts = tuple(float(rank == at) for rank in range(3))
        arrays = {"labels": [1, 0, 2], "scores": [5, 5, 5], "document_ids": ["a", "b", "c"]}
        assert value(f"DCG(discounts={discounts})", chosen, group=[3], **arrays) == label


def test_ids_are_compared_by_their_bytes() -> None:
    arrays = {"labels": [0, 0, 1], "scores": [1, 1, 1], "group": [3]}
    down, up = Conventions(ties="id descending"), Conventions(ties="id ascending")
    assert value("RR", down, document_ids=["a", "ab", "é"], **arrays) == 1
    assert value("RR", up, document_ids=["ab", "é", "a"], **arrays) == 1
    with pytest.raises(DataError, match="Give documents ids"):
        value("RR", down, document_ids=None, **arrays)
    no_ties = {"labels": [0, 1], "scores": [1, 2], "group": [2], "document_ids": None}
    assert value("RR", down, **no_ties) == 1


def test_nothing_relevant() -> None:
    nothing = {"labels": [0, 0, 0, 0]}
    for measure in ("nDCG@3", "AP", "R@3", "Rprec", "bpref", "kNDCG(k=2)", "Compat"):
        assert value(measure, Conventions(), **nothing) == 0
        assert value(measure, Conventions(nothing_relevant=1), **nothing) == 1
        assert math.isnan(value(measure, Conventions(nothing_relevant="skip"), **nothing))
    # As much of a loss as others lack.
    assert value("WKT(k=2)", Conventions(), **nothing) == 1
    assert value("WKT(k=2)", Conventions(nothing_relevant=0.75), **nothing) == 0.25
    assert math.isnan(value("WKT(k=2)", Conventions(nothing_relevant="skip"), **nothing))
    for measure in ("P@3", "RR", "ERR", "RBP", "Success@3", "DCG"):  # these divide by nothing
        assert value(measure, Conventions(nothing_relevant=1), **nothing) == 0
        assert math.isnan(value(measure, Conventions(nothing_relevant="skip"), **nothing))
    some = evaluate(
        "P@1",
        [0, 1, 2],
        [1, 1, 1],
        group=[1, 1, 1],
        conventions=Conventions(nothing_relevant="skip"),
    )
    assert some.values[next(iter(some.values))].tolist() == pytest.approx(
        [math.nan, 1, 1], nan_ok=True
    )
    assert list(some.means.values()) == [1.0]


def test_short_lists() -> None:
    pair = {"labels": [1, 1], "scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    assert value("P@4", Conventions(short_list="pad"), **pair) == 0.5
    assert value("P@4", Conventions(short_list="length"), **pair) == 1.0
    assert value("P@4", Conventions(short_list="zero"), **pair) == 0.0
    assert value("P", Conventions(short_list="pad"), **pair) == 1.0


def test_a_query_left_out_stays_out_however_short_its_list_is() -> None:
    nothing = {"labels": [0, 0], "scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    chosen = Conventions(nothing_relevant="skip", short_list="zero")
    for measure in ("nDCG@4", "P@4", "AP@4", "ERR@4"):
        assert math.isnan(value(measure, chosen, **nothing)), measure
        assert value(measure, chosen, **{**nothing, "labels": [1, 0]}) == 0.0
        assert value(measure, replace(chosen, nothing_relevant=1.0), **nothing) == 0.0


@pytest.mark.parametrize("border", [0.1, 0.7, 1.1, 2.3])
def test_labels_equal_the_thresholds_that_are_written_like_them(border: float) -> None:
    """Labels are 32-bit numbers, thresholds 64-bit ones."""
    pair = {"labels": [border, 0], "scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    assert value(f"P(rel={border})@1", Conventions(), **pair) == 1
    assert value("P@1", Conventions(relevant_from=border), **pair) == 1
    assert value("P@1", Conventions(relevant_from=border + 1e-6), **pair) == 0
    chance = (2**border - 1) / 2**border
    assert value(f"ERR(max={border})", Conventions(), **pair) == pytest.approx(chance)
    assert value("ERR", Conventions(highest_grade=border), **pair) == pytest.approx(chance)
    with pytest.raises(DataError, match="above the highest grade"):
        value(f"ERR(max={border - 1e-6})", Conventions(), **pair)


@pytest.mark.parametrize(
    ("threshold", "label", "relevant"),
    [
        (0.70000001, 0.7, False),  # both are 0.699999988 as float32
        (0.69999999, 0.7, True),
        (0.7, 0.7, True),
        (float(np.float32(0.1)), 0.1, True),  # 0.100000001, which is the label itself
        (16777217.0, 16777216, False),
        (16777217.0, 16777218, True),
        (1e300, 3e38, False),
    ],
)
def test_a_threshold_between_two_labels_is_reached_by_the_larger_one(
    threshold: float, label: float, relevant: bool
) -> None:
    given: dict[str, Any] = {"truth": [label], "ranking": [1], "group": [1]}
    assert evaluate(P(rel=threshold) @ 1, **given).means == {P(rel=threshold) @ 1: float(relevant)}
    by_convention = evaluate("P@1", conventions=Conventions(relevant_from=threshold), **given)
    assert by_convention["P@1"].tolist() == [float(relevant)]


def test_lightgbm_takes_labels_above_a_half_as_relevant() -> None:
    pair = {"scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    above = float(np.nextafter(np.float32(0.5), np.float32(1)))
    assert value("P@1", "lightgbm", labels=[above, 0], **pair) == 1
    assert value("P@1", "lightgbm", labels=[0.5, 0], **pair) == 0


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_scores_that_no_float_can_hold(dtype: type) -> None:
    labels = [0, 1, 0, 2]
    scores = np.array([2**60, 2**60 + 3, 2**60 + 2, 2**60 + 1], dtype)
    arrays = {"labels": labels, "scores": scores, "group": [4]}
    order = [1, 2, 3, 0]
    dcg = sum(gain(labels[row]) / math.log2(2 + rank) for rank, row in enumerate(order))
    assert value("DCG", Conventions(), **arrays) == pytest.approx(dcg)
    # Equal ones still tie, and conventions may still ask for less precision.
    arrays["scores"] = np.array([2**60 + 1, 2**60 + 1, 0, 0], dtype)
    assert value("RR", Conventions(), **arrays) == pytest.approx((1 + 1 / 2) / 2)
    arrays["scores"] = scores
    rough = Conventions(score_precision="float32", ties="input order")
    assert value("RR", rough, **arrays) == 0.5


def joined() -> Joined:
    judgments = Judgments.from_columns(
        ["q1", "q1", "q1", "q2", "q3"], ["a", "b", "c", "a", "a"], [1, 3, 2, 1, 0]
    )
    run = Rankings.from_columns(["q1", "q1", "q1", "q3"], ["a", "x", "c", "a"], [4, 3, 2, 1])
    return run.join(judgments)


def test_missing_queries() -> None:
    empty = evaluate(["nDCG", "TopKLoss(k=1)"], joined())
    assert empty["nDCG"][1] == 0
    assert empty["TopKLoss(k=1)"][1] == 1
    skipped = evaluate("nDCG", joined(), conventions=Conventions(missing="skip"))
    assert math.isnan(skipped["nDCG"][1])
    assert skipped.means[next(iter(skipped.means))] == pytest.approx(skipped["nDCG"][[0, 2]].mean())


def test_pool_of_the_ideal_ranking() -> None:
    dcg = gain(1) * L2 + gain(2) * L4
    judged = evaluate("nDCG", joined())["nDCG"][0]
    assert judged == pytest.approx(dcg / (gain(3) * L2 + gain(2) * L3 + gain(1) * L4))
    retrieved = evaluate("nDCG", joined(), conventions=Conventions(pool="retrieved"))["nDCG"][0]
    assert retrieved == pytest.approx(dcg / (gain(2) * L2 + gain(1) * L3))
    assert evaluate("R", joined())["R"][0] == pytest.approx(2 / 3)
    assert evaluate("R", joined(), conventions=Conventions(pool="retrieved"))["R"][0] == 1


def test_unjudged_documents() -> None:
    assert evaluate("P@2", joined())["P@2"][0] == 0.5
    assert evaluate("P@2", joined(), conventions=Conventions(unjudged="drop"))["P@2"][0] == 1


def test_negative_labels() -> None:
    spam = {"labels": [1, -2, 0, 2]}
    for measure in ("nDCG@3", "P@3"):
        with pytest.raises(DataError, match=r"a label of -2.*negative='irrelevant'"):
            value(measure, Conventions(), **spam)
    zero = Conventions(negative="irrelevant", ties="input order")
    assert value("nDCG", zero, **spam) == value("nDCG", zero, labels=[1, 0, 0, 2])
    unjudged = replace(zero, negative="unjudged")
    assert value("Judged@3", unjudged, **spam) == pytest.approx(2 / 3)
    assert value("Judged@3", zero, **spam) == 1


def test_highest_grade() -> None:
    pair = {"labels": [1, 2], "scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    own = 1 / 4 + 3 / 4 * 3 / 4 / 2
    assert value("ERR", Conventions(), **pair) == pytest.approx(own)
    five = 1 / 32 + 31 / 32 * 3 / 32 / 2
    assert value("ERR", Conventions(highest_grade=5), **pair) == pytest.approx(five)
    assert value("ERR(max=5)", Conventions(), **pair) == pytest.approx(five)
    assert value("ERR", Conventions(gains="linear"), **pair) == pytest.approx(own)
    with pytest.raises(DataError, match="label of 2, above the highest grade of 1"):
        value("ERR", Conventions(highest_grade=1), **pair)


def test_divisor_of_average_precision() -> None:
    three = {
        "labels": [1, 1, 1],
        "scores": [3, 2, 1],
        "group": [3],
        "document_ids": ["a", "b", "c"],
    }
    assert value("AP@2", Conventions(), **three) == pytest.approx(2 / 3)
    assert value("AP@2", Conventions(ap_divisor="cut-off"), **three) == 1


def test_score_precision() -> None:
    close = {"labels": [0, 1], "scores": [1, 1 + 1e-9], "group": [2], "document_ids": ["b", "a"]}
    assert value("RR", Conventions(ties="input order"), **close) == 1
    rough = Conventions(ties="input order", score_precision="float32")
    assert value("RR", rough, **close) == 0.5


def test_cut_off_of_measures_without_one() -> None:
    labels = np.zeros(40)
    labels[[0, 35]] = 1
    arrays = {
        "labels": labels,
        "scores": -np.arange(40),
        "group": [40],
        "document_ids": list(map(str, range(40))),
    }
    assert value("AP", Conventions(), **arrays) == pytest.approx((1 + 2 / 36) / 2)
    assert value("AP", "xgboost", **arrays) == pytest.approx(1 / 2)
    assert value("AP@40", "xgboost", **arrays) == pytest.approx((1 + 2 / 36) / 2)


def test_rank_biased_precision_by_label() -> None:
    pair = {"labels": [2, 1], "scores": [2, 1], "group": [2], "document_ids": ["a", "b"]}
    assert value("RBP(p=0.5)", Conventions(), **pair) == 0.5 * (1 + 0.5)
    assert value("RBP(p=0.5)", Conventions(rbp_gain="label"), **pair) == 0.5 * (2 + 0.5)


def test_ties_together_are_of_average_precision_alone() -> None:
    together = Conventions(ties="together")
    assert value("AP", together) == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="nDCG@3 cannot be computed with ties='together'"):
        value("nDCG@3", together)


def test_gains_must_cover_the_labels() -> None:
    assert value("DCG(gains=(0, 1, 5))@1", Conventions(ties="best")) == 5
    with pytest.raises(DataError, match="gains for labels 0 to 1"):
        value("DCG(gains=(0, 1))@1", Conventions())
    with pytest.raises(DataError, match="or integer labels"):
        value("nDCG(gains=(0, 1, 5))@1", Conventions(), labels=[0, 0.5, 2, 0])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"ties": "alphabetical"}, "ties is 'alphabetical'.*expected, input order"),
        ({"nothing_relevant": "zero"}, "skip, a number"),
        ({"nothing_relevant": math.nan}, "nothing_relevant is nan"),
        ({"relevant_from": "one"}, "relevant_from is 'one'"),
        ({"gains": 2}, "exponential, linear"),
        ({"cut_off": "ten"}, "cut_off is 'ten'"),
    ],
)
def test_unknown_choices(choice: dict[str, object], message: str) -> None:
    with pytest.raises(PodiumError, match=message):
        Conventions(**choice)  # type: ignore[arg-type]


def test_exceptions() -> None:
    mixed = Conventions(nothing_relevant=1).except_for("AP", nothing_relevant=0)
    nothing = {"labels": [0, 0, 0, 0]}
    assert value("nDCG", mixed, **nothing) == 1
    assert value("AP", mixed, **nothing) == 0
    with pytest.raises(PodiumError, match="ties is 'never'"):
        Conventions().except_for("AP", ties="never")


@pytest.mark.parametrize("name", ["AP", "map", "MAP", "average_precision", AP])
def test_exceptions_by_any_name(name: str | Measure) -> None:
    mixed = Conventions(nothing_relevant=1).except_for(name, nothing_relevant=0)
    nothing = {"labels": [0, 0, 0, 0]}
    assert (value("AP", mixed, **nothing), value("nDCG", mixed, **nothing)) == (0, 1)
    assert mixed == Conventions(nothing_relevant=1).except_for("AP", nothing_relevant=0)
    assert mixed.of("map").nothing_relevant == mixed.of(AP @ 5).nothing_relevant == 0
    assert mixed.of("RR").nothing_relevant == 1


def test_exceptions_for_no_measure() -> None:
    with pytest.raises(PodiumError, match=r"no measure 'nDGC'\. Did you mean: nDCG"):
        Conventions().except_for("nDGC", ties="best")
    with pytest.raises(PodiumError, match="Write nDCG"):
        Conventions().except_for("nDCG@10", ties="best")
    with pytest.raises(PodiumError, match="no measure 'x'"):
        Conventions(exceptions=(("x", "ties", "best"),))


@pytest.mark.parametrize(
    ("names", "instead"),
    [(["ndcg_cut_10", "nDCG@10"], "nDCG@10"), (["ndcg_cut_10", "nDCG@5"], "nDCG@10 and nDCG@5")],
)
def test_names_of_two_tools_at_once_are_refused(names: list[str], instead: str) -> None:
    with pytest.raises(PodiumError, match=f"or write {instead} for Podium's"):
        evaluate(names, [1], [1], group=[1])


def test_presets_are_values() -> None:
    assert len(set(PRESETS.values())) == len(PRESETS) == 8
    assert conventions_named("podium") == Conventions()
    with pytest.raises(PodiumError, match=r"no preset .* 'trec'. Did you mean: trec_eval"):
        value("P@1", "trec")
