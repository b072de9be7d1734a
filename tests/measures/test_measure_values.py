"""Measures as values: written, read, compared, and misspelt."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ArgumentError, PodiumError
from podium.measures import (
    AP,
    DCG,
    ERR,
    RBP,
    RR,
    Compat,
    Judged,
    P,
    R,
    Rprec,
    Success,
    TopKLoss,
    bpref,
    kNDCG,
    nDCG,
    ppref,
)
from podium.measures.names import parse_measure
from podium.measures.registry import Measure, definition_of, measure_definitions

NUMBERS = st.integers(0, 99) | st.floats(-9, 9).map(lambda value: round(value, 3))
VALUES = {
    "rel": NUMBERS,
    "k": st.integers(1, 2000),
    "p": st.floats(0.001, 0.999),
    "max": st.integers(1, 9),
    "gains": st.sampled_from(["exponential", "linear"]) | st.lists(NUMBERS, min_size=1, max_size=4),
    "discounts": st.sampled_from(["log2", "letor", "reciprocal"])
    | st.lists(NUMBERS, min_size=1, max_size=4),
}


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    kind = draw(st.sampled_from([kind for kind in measure_definitions() if kind.name[0] != "_"]))
    result = Measure(kind.name)
    for parameter in kind.parameters:
        if parameter.name in VALUES and draw(st.booleans()):
            result = result(**{parameter.name: draw(VALUES[parameter.name])})
    if kind.takes_cut_off and draw(st.booleans()):
        result = result @ draw(st.integers(1, 10_000))
    return result


@given(measures())
def test_text_and_back(measure: Measure) -> None:
    again = parse_measure(repr(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert repr(again) == repr(measure)
    assert pickle.loads(pickle.dumps(measure)) == measure


def test_text_is_a_python_expression() -> None:
    for measure in (nDCG @ 10, P(rel=2) @ 5, DCG(gains=(0, 1, 3), discounts=(1, 0.5)) @ 10):
        assert eval(repr(measure)) == measure


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        # trec_eval
        ("ndcg_cut_10", nDCG @ 10),
        ("ndcg_cut.10", nDCG @ 10),
        ("ndcg", nDCG),
        ("map", AP),
        ("map_cut_100", AP @ 100),
        ("recip_rank", RR),
        ("P_10", P @ 10),
        ("P.5", P @ 5),
        ("recall_100", R @ 100),
        ("Rprec", Rprec),
        ("bpref", bpref),
        ("success_5", Success @ 5),
        ("set_recall", R),
        ("prefs_simp_imp", ppref),
        # ir_measures
        ("nDCG@10", nDCG @ 10),
        ("nDCG(dcg='exp-log2')@10", nDCG(gains="exponential") @ 10),
        ("nDCG(dcg='log2')", nDCG(gains="linear")),
        ("AP(rel=2)@100", AP(rel=2) @ 100),
        ("RBP(p=0.8,rel=1)", RBP(p=0.8, rel=1)),
        ("Bpref", bpref),
        ("ERR@20", ERR @ 20),
        ("Judged@10", Judged @ 10),
        ("Compat(p=0.95)", Compat(p=0.95)),
        # ranx
        ("ndcg@10", nDCG @ 10),
        ("ndcg_burges@5", nDCG(gains="exponential") @ 5),
        ("precision@10-l2", P(rel=2) @ 10),
        ("hit_rate@3", Success @ 3),
        ("mrr", RR),
        ("r-precision", Rprec),
        ("rbp.95", RBP(p=0.95)),
        # LightGBM and XGBoost
        ("NDCG@10", nDCG @ 10),
        ("map@3", AP @ 3),
        ("pre@3", P @ 3),
        # a shell needs no quotes
        (" nDCG(gains=linear)@10 ", nDCG(gains="linear") @ 10),
        ("kNDCG(k=10)@5", kNDCG(k=10) @ 5),
        ("DCG(gains=[0, 1, 3])", DCG(gains=(0, 1, 3))),
    ],
)
def test_names_of_other_tools(text: str, measure: Measure) -> None:
    assert parse_measure(text) == measure


def test_parameters_have_one_form() -> None:
    assert P(rel=2.0) == P(rel=2)
    assert repr(P(rel=2.0) @ 5) == "P(rel=2)@5"
    assert nDCG(discounts="log2", gains="linear") == nDCG(gains="linear")(discounts="log2")
    assert RBP["p"] == 0.8
    assert RBP["rel"] is None
    assert RBP(p=0.5)["p"] == 0.5


def test_losses_are_known() -> None:
    assert nDCG.larger_is_better
    assert not TopKLoss(k=3).larger_is_better


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "Did you mean: nDCG"),
        ("ndgc_cut_10", "Did you mean: nDCG"),
        ("recal@5", "Did you mean: R"),
        ("xyzzy", r"Choose: .*\bAP, .*bpref"),
        ("@10", "is not a valid measure"),
        ("P(rel=)@5", "cannot be read"),
        ("P(2)@5", "Name every parameter"),
        ("P(rel=f(2))@5", "is not a valid value"),
        ("P(level=2)", "It has: rel"),
        ("P(rel='high')", "Give a number"),
        ("P@0", "at least 1"),
        ("kNDCG(k=0)", "Give an integer of at least 1"),
        ("kNDCG(k=True)", "Give an integer of at least 1"),
        ("RBP(p=1)", "above 0 and below 1"),
        ("nDCG(gains='square')", "'exponential' or 'linear'"),
        ("nDCG(gains=[])", "'exponential' or 'linear'"),
        ("nDCG(dcg='square')", "'exponential' or 'linear'"),
        ("bpref@10", "has no cut-off"),
        ("Rprec.5", "has no cut-off"),
    ],
)
def test_mistakes_say_what_to_do(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message.replace("(", r"\(")):
        parse_measure(text)


def test_cut_off_is_an_integer() -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        nDCG @ 2.5  # type: ignore[operator]
    with pytest.raises(ArgumentError, match="at least 1"):
        nDCG @ True


def test_unknown_measure_in_a_value() -> None:
    with pytest.raises(PodiumError, match="There is no measure 'Gone'"):
        definition_of(Measure("Gone"))
