"""``sample_weight=``: weighted means, and what can be tested about them."""

import json
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import podium
from podium.measures.comparison.formats import as_json, as_latex, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.statistics import paired_difference, weighted_interval
from podium.measures.evaluation import concat_evaluations

QRELS = {f"q{n}": {"a": 2, "b": 1, "c": 0} for n in range(6)}
# The first relevant document is at rank n % 3 + 1; in the baseline, the best is always second.
ORDERS = [["a", "b", "c"], ["c", "a", "b"], ["c", "x", "b"]]
RUN = {
    query: {document: 3.0 - rank for rank, document in enumerate(ORDERS[n % 3])}
    for n, query in enumerate(QRELS)
}
BASE = {query: {"c": 2.0, "a": 1.0} for query in QRELS}
WEIGHTS = np.array([5.0, 1.0, 2.0, 0.0, 3.0, 1.0])
RR = np.array([1, 1 / 2, 1 / 3] * 2)


@pytest.mark.parametrize(
    "weights",
    [
        WEIGHTS,
        WEIGHTS.tolist(),
        pd.Series(WEIGHTS),
        pl.Series(WEIGHTS),
        dict(zip(QRELS, WEIGHTS, strict=True)),
        {**dict(zip(QRELS, WEIGHTS, strict=True)), "never judged": 7.0},
        pd.Series(WEIGHTS, index=list(QRELS)).to_dict(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_weighted_means(weights: Any) -> None:
    found = podium.evaluate("RR", QRELS, RUN, sample_weight=weights)
    assert found["RR"].tolist() == RR.tolist()
    assert found.means["RR"] == pytest.approx(RR @ WEIGHTS / WEIGHTS.sum(), abs=1e-15)
    frame = found.to_frame()
    assert frame["weight"].tolist() == WEIGHTS.tolist()
    assert np.average(frame["RR"], weights=frame["weight"]) == pytest.approx(found.means["RR"])


def test_a_mapping_follows_the_ids_whatever_their_order() -> None:
    weights = dict(zip(QRELS, WEIGHTS, strict=True))
    backwards = dict(reversed(weights.items()))
    found = podium.evaluate("RR", QRELS, RUN, sample_weight=backwards)
    assert found.query_weights is not None
    assert found.query_weights.tolist() == WEIGHTS.tolist()


def test_queries_without_a_value_or_a_weight_do_not_count() -> None:
    truth = {"p": {"a": 1}, "q": {"a": 0}}
    run = {query: {"b": 2, "a": 1} for query in truth}
    skip = podium.measures.Conventions(nothing_relevant="skip")
    found = podium.evaluate("RR", truth, run, sample_weight=[3, 1], conventions=skip)
    assert np.isnan(found["RR"]).tolist() == [False, True]
    assert found.means["RR"] == 0.5
    left_out = podium.evaluate("RR", QRELS, RUN, sample_weight=[0, 0, 0, 1, 0, 0])
    assert left_out.means["RR"] == 1.0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "2 weights for 6 queries"),
        ({"q0": 1}, "query 'q1' has no weight"),
        ([1, 1, 1, 1, 1, -0.5], "a weight is -0.5"),
        (np.zeros(6), "all weights are 0"),
        ([1, 1, 1, 1, 1, np.inf], "a weight is inf"),
        ("123456", "weights have 0 dimensions"),
    ],
)
def test_refused(weights: Any, message: str) -> None:
    for call in (
        lambda: podium.evaluate("RR", QRELS, RUN, sample_weight=weights),
        lambda: podium.compare("RR", QRELS, {"a": BASE, "b": RUN}, sample_weight=weights),
    ):
        with pytest.raises(podium.DataError) as caught:
            call()
        assert message in str(caught.value)


def test_parts_of_an_evaluation_keep_their_weights() -> None:
    first = podium.evaluate("RR", {"p": {"a": 1}}, {"p": {"a": 1}}, sample_weight=[3])
    second = podium.evaluate("RR", {"q": {"a": 1}}, {"q": {"b": 2, "a": 1}})
    assert concat_evaluations([first, second]).means["RR"] == (3 * 1 + 1 * 0.5) / 4


def test_comparison_with_weights() -> None:
    found = podium.compare("RR", QRELS, {"base": BASE, "new": RUN}, sample_weight=WEIGHTS)
    differences, counted = RR - 0.5, WEIGHTS > 0
    assert found.query_ids == tuple(np.array(list(QRELS))[counted])
    assert found.left_out == 1
    assert found.query_weights is not None
    assert found.query_weights.tolist() == WEIGHTS[counted].tolist()
    mean = float(differences @ WEIGHTS / WEIGHTS.sum())
    outcome = found.against_baseline["RR"]["new"]
    assert outcome.difference.mean == pytest.approx(mean, abs=1e-15)
    assert found.summaries["RR"]["base"].mean == pytest.approx(0.5, abs=1e-15)
    assert (outcome.difference.wins, outcome.difference.losses) == (1, 2)
    # All choices of signs of the weighted differences.
    products = (differences * WEIGHTS)[counted]
    sums = [abs(np.dot(signs, products)) for signs in product((-1, 1), repeat=len(products))]
    share = np.mean(np.array(sums) >= abs(products.sum()) - 1e-12)
    assert dict(outcome.difference.p_values) == {"randomization": pytest.approx(share)}
    assert np.isnan(outcome.tukey)
    assert outcome.coherence is None
    row = found.to_arrow().to_pylist()[1]
    assert row["p_holm"] == pytest.approx(share)
    assert row["p_tukey"] is None
    assert "weighted" in str(found)
    assert "nan" not in str(found)


def test_the_test_is_of_weighted_differences() -> None:
    rng = np.random.default_rng(4)
    one, other = rng.random((2, 8))
    weights = np.array([9.0, 1, 1, 1, 4, 1, 1, 2])

    def share(values: np.ndarray) -> float:
        sums = [abs(np.dot(signs, values)) for signs in product((-1, 1), repeat=8)]
        return float(np.mean(np.array(sums) >= abs(values.sum()) - 1e-12))

    found = paired_difference(one, other, weights=weights).p_values["randomization"]
    assert found == pytest.approx(share(weights * (one - other)))
    assert found != pytest.approx(share(one - other))


def test_equal_weights_are_no_weights() -> None:
    plain = podium.compare("RR", QRELS, {"base": BASE, "new": RUN})
    same = podium.compare("RR", QRELS, {"base": BASE, "new": RUN}, sample_weight=[7] * 6)
    for system in ("base", "new"):
        assert vars(same.summaries["RR"][system]) == pytest.approx(
            vars(plain.summaries["RR"][system]), nan_ok=True
        )
    one, other = (each.against_baseline["RR"]["new"].difference for each in (plain, same))
    assert (other.low, other.high) == pytest.approx((one.low, one.high))
    assert other.effect == pytest.approx(one.effect)
    assert other.p_values["randomization"] == pytest.approx(one.p_values["randomization"])


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign"])
def test_tests_that_weights_make_unsound_are_refused(test: Any) -> None:
    with pytest.raises(podium.ArgumentError, match="Give test='randomization'"):
        podium.compare("RR", QRELS, {"a": BASE, "b": RUN}, sample_weight=WEIGHTS, test=test)


def test_the_interval_covers_the_mean() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(2000):
        weights = rng.lognormal(size=25)
        values = rng.normal(0.3, 0.2, 25)
        _, low, high = weighted_interval(values, weights)
        covered += low <= 0.3 <= high
    # 95 % of 2000, give or take four standard deviations.
    assert abs(covered / 2000 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)


def test_the_test_keeps_its_level_under_any_weights() -> None:
    rng = np.random.default_rng(6)
    rejected = 0
    for _ in range(1000):
        weights = rng.lognormal(sigma=2.0, size=12)
        one, other = rng.random((2, 12))
        found = paired_difference(one, other, weights=weights)
        rejected += found.p_values["randomization"] <= 0.05
    assert rejected / 1000 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 1000)
    assert rejected / 1000 >= 0.05 - 4 * np.sqrt(0.05 * 0.95 / 1000)


def weighted_by(weights: Any) -> Comparison:
    truth = {f"q{number:02d}": {"a": 1} for number in range(len(weights))}
    runs: dict[str, Any] = {"old": {query: {"b": 2.0, "a": 1.0} for query in truth}, "new": truth}
    return podium.compare("RR", truth, runs, sample_weight=weights)


def test_every_report_warns_where_few_queries_have_the_weight() -> None:
    """40 queries of weight 1 and two of 20: (80)² / (40 + 800) equal ones, two with half of it."""
    found = weighted_by([1.0] * 40 + [20.0] * 2)
    equal = 80**2 / 840
    sentence = f"of 42 queries are worth {equal:.1f} equal ones, and 2 queries have half of the"
    for written in (
        str(found),
        as_markdown(found),
        as_html(found),
        as_json(found),
        as_latex(found),
    ):
        assert sentence in " ".join(written.split())
    assert len(json.loads(as_json(found))["warnings"]) == 1
    assert "queries with just these weights" in str(found)


@pytest.mark.parametrize(
    ("weights", "warned"),
    [
        ([1.0] * 8, False),
        ([1.0, 2.0] * 8, False),  # 24² / 40 = 14.4 of 16
        ([1.0, 3.0, 1.0, 5.0] * 10, False),  # 100² / 360 = 27.8 of 40
        ([1.0] * 12 + [4.0] * 4, True),  # 28² / 76 = 10.3 of 16
        ([1.0] * 270 + [9.0] * 30, True),  # 540² / 2700 = 108 of 300, but a tenth has half
    ],
)
def test_even_weights_are_not_warned_of(weights: list[float], *, warned: bool) -> None:
    assert ("equal ones" in str(weighted_by(weights))) == warned
