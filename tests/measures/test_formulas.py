"""Every measure against its formula, and its mean over ties against the mean over all orders."""

import itertools
import math
from sys import modules

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data.grouping import as_strings
from podium.data.judged import Joined
from podium.measures import Conventions, evaluate
from podium.measures.names import parse_measure
from podium.measures.registry import measure_definitions
from tests.measures.measure_formulas import FORMULAS, Label

Case = tuple[list[Label], list[int], list[float]]

NAMES = list(FORMULAS)
LABELS = st.one_of(st.none(), st.integers(0, 4))


@st.composite
def cases(draw: st.DrawFn, size: int, distinct: bool) -> Case:
    """Labels of ranked documents, their scores, and labels of judged documents not ranked."""
    labels = draw(st.lists(LABELS, max_size=size))
    few = st.integers(0, 40 if distinct else 3)
    scores = draw(st.lists(few, min_size=len(labels), max_size=len(labels), unique=distinct))
    others = draw(st.lists(st.integers(0, 4), max_size=3))
    return labels, scores, [float(other) for other in others]


def joined(case: Case) -> Joined:
    labels, scores, others = case
    known = [label for label in labels if label is not None]
    return Joined(
        query_ids=as_strings(["q"], "ids"),
        offsets=np.array([0, len(labels)]),
        document_ids=as_strings([f"d{row}" for row in range(len(labels))], "ids"),
        scores=np.array(scores, np.float64),
        labels=np.array([math.nan if label is None else label for label in labels], np.float32),
        judged_labels=np.array([*known, *others], np.float32),
        judged_offsets=np.array([0, len(known) + len(others)]),
        dropped_queries=0,
    )


def pool_of(case: Case) -> list[float]:
    return [label for label in case[0] if label is not None] + case[2]


def values(case: Case, conventions: Conventions) -> list[float]:
    result = evaluate(NAMES, joined(case), conventions=conventions)
    return [float(result[name][0]) for name in NAMES]


def test_every_measure_of_labels_has_a_formula_here() -> None:
    named = {parse_measure(name).name for name in NAMES}
    assert named >= {
        kind.name
        for kind in measure_definitions()
        # Those that examples define are in no module.
        if not kind.on_pairs
        and kind.function.__module__.startswith("podium.")
        and kind.function.__name__ in vars(modules[kind.function.__module__])
    }


@given(cases(size=9, distinct=True))
def test_formulas(case: Case) -> None:
    labels, scores, _ = case
    ranked = [labels[row] for row in sorted(range(len(labels)), key=lambda row: -scores[row])]
    expected = [FORMULAS[name](ranked, pool_of(case)) for name in NAMES]
    assert values(case, Conventions()) == pytest.approx(expected, abs=1e-9)


@given(cases(size=9, distinct=False))
def test_ties_in_input_order(case: Case) -> None:
    labels, scores, _ = case
    order = sorted(range(len(labels)), key=lambda row: (-scores[row], row))
    expected = [FORMULAS[name]([labels[row] for row in order], pool_of(case)) for name in NAMES]
    result = values(case, Conventions(ties="input order"))
    assert result == pytest.approx(expected, abs=1e-9)


@given(cases(size=5, distinct=False))
def test_expected_ties_are_the_mean_over_all_orders(case: Case) -> None:
    labels, scores, _ = case
    ties = [
        list(group)
        for _, group in itertools.groupby(
            sorted(range(len(labels)), key=lambda row: -scores[row]), key=lambda row: scores[row]
        )
    ]
    orders = [
        [labels[row] for tie in chosen for row in tie]
        for chosen in itertools.product(*map(itertools.permutations, ties))
    ]
    expected = [
        math.fsum(FORMULAS[name](order, pool_of(case)) for order in orders) / len(orders)
        for name in NAMES
    ]
    assert values(case, Conventions()) == pytest.approx(expected, abs=1e-9)


@given(cases(size=9, distinct=False))
def test_condensed_lists(case: Case) -> None:
    labels, scores, others = case
    kept = [row for row, label in enumerate(labels) if label is not None]
    condensed = ([labels[row] for row in kept], [scores[row] for row in kept], others)
    result = values(case, Conventions(unjudged="drop"))
    assert result == pytest.approx(values(condensed, Conventions()), abs=1e-12)
