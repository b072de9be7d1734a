"""For measures that are losses, the system with the smaller value is ahead in every report."""

import numpy as np

from podium.data import Judgments
from podium.data.sources import as_judgments, as_rankings
from podium.measures import compare
from podium.measures.comparison.details import Details
from podium.measures.comparison.html import as_html
from podium.measures.comparison.single_queries import moved_lists
from podium.measures.comparison.statistics import paired_difference
from podium.reports.charts import difference_chart

TRUTH = {f"q{number}": {"a": 1, "b": 0} for number in range(10)}
WRONG = {query: {"b": 2.0, "a": 1.0} for query in TRUTH}
RIGHT = {query: {"a": 2.0, "b": 1.0} for query in TRUTH}


def test_wins_are_of_smaller_losses() -> None:
    comparison = compare("TopKLoss(k=1)", TRUTH, {"old": WRONG, "new": RIGHT})
    difference = comparison.against_baseline["TopKLoss(k=1)"]["new"].difference
    assert (difference.mean, difference.wins, difference.ties, difference.losses) == (-1, 10, 0, 0)
    back = compare("TopKLoss(k=1)", TRUTH, {"old": RIGHT, "new": WRONG})
    difference = back.against_baseline["TopKLoss(k=1)"]["new"].difference
    assert (difference.mean, difference.wins, difference.losses) == (1, 0, 10)


def test_equal_losses_are_ties() -> None:
    ours, theirs = np.array([0.1, 0.5, 0.7, 0.2]), np.array([0.3, 0.5, 0.6, 0.9])
    difference = paired_difference(ours, theirs, larger_is_better=False)
    assert (difference.wins, difference.ties, difference.losses) == (2, 1, 1)


def test_what_gained_comes_first_and_is_green() -> None:
    half = {query: (RIGHT if number < 6 else WRONG)[query] for number, query in enumerate(TRUTH)}
    other = {query: (RIGHT if number >= 4 else WRONG)[query] for number, query in enumerate(TRUTH)}
    comparison = compare("TopKLoss(k=1)", TRUTH, {"old": half, "new": other})
    outcome = comparison.against_baseline["TopKLoss(k=1)"]["new"]
    # The new system is right from the fifth query on, the old one up to the sixth.
    assert outcome.moved[:4] == (6, 7, 8, 9)
    assert set(outcome.moved[4:]) == {0, 1, 2, 3}
    judgments = as_judgments(TRUTH)
    assert isinstance(judgments, Judgments)
    pairs = moved_lists(
        comparison,
        judgments,
        {"old": as_rankings(half), "new": as_rankings(other)},
    )
    assert [(pair.difference, pair.is_better) for pair in pairs[:5]] == [
        *[(-1.0, True)] * 4, (1.0, False),
    ]  # fmt: skip
    page = as_html(comparison, Details(lists=pairs))
    assert "<td>q6</td><td class='up'>-1.0000</td>" in page
    assert "<td>q0</td><td class='down'>+1.0000</td>" in page
    assert "<span class='up'>-1.0000</span>" in page
    significant = as_html(compare("TopKLoss(k=1)", TRUTH, {"old": WRONG, "new": RIGHT}))
    assert "<td class='up'>-1.0000*</td>" in significant


def test_bars_of_gains_are_green_and_come_first() -> None:
    differences = np.array([0.5, -0.25])
    for larger, first, tone in ((True, "a: +0.5", "--up"), (False, "b: -0.25", "--up")):
        bars = difference_chart(differences, ["a", "b"], larger_is_better=larger).split("<rect")[1:]
        assert first in bars[0]
        assert tone in bars[0]
        assert "--down" in bars[1]
