"""Prediction-powered means: the formula, what they come to in the limits, and their coverage."""

import json
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from podium.data import Judgments, Rankings, write_qrels, write_run
from podium.errors import ArgumentError, DataError
from podium.measures import Conventions, compare_powered, evaluate
from podium.measures.comparison.prediction_powered import powered_mean
from podium.measures.comparison.statistics import mean_interval
from tests.cli.run_podium import fail, succeed


def drawn(random, queries, correlation):
    """Values of a measure by people and by a machine, and the true mean of the former."""
    noise = random.standard_normal((2, queries))
    machine = correlation * noise[0] + math.sqrt(1 - correlation**2) * noise[1]
    # The machine is off by 0.2: only the correction makes the mean right.
    return stats.norm.cdf(noise[0]), stats.norm.cdf(machine) + 0.2, 0.5


def test_the_formula():
    random = np.random.default_rng(0)
    y, f, _ = drawn(random, 60, 0.8)
    n, rest = 15, 45
    result = powered_mean(y[:n], f[:n], f[n:])
    weight = np.cov(y[:n], f[:n])[0, 1] / ((1 + n / rest) * np.var(f, ddof=1))
    assert result.weight == pytest.approx(weight)
    # The weight of each query is that of the others.
    others = [
        np.cov(np.delete(y[:n], query), np.delete(f[:n], query))[0, 1]
        / ((1 + n / rest) * np.var(f, ddof=1))
        for query in range(n)
    ]
    corrected = y[:n] - np.multiply(others, f[:n])
    assert result.mean == pytest.approx(corrected.mean() + np.mean(others) * f[n:].mean())
    residuals = y[:n] - weight * f[:n]
    variance = (
        np.sum((residuals - residuals.mean()) ** 2) / (n - 2) / n
        + weight**2 * np.var(f[n:], ddof=1) / rest
    )
    half = stats.t.ppf(0.975, n - 2) * math.sqrt(variance)
    assert (result.low, result.high) == pytest.approx((result.mean - half, result.mean + half))
    alone = (result.human_mean, result.human_low, result.human_high)
    assert alone == pytest.approx(mean_interval(y[:n]))
    assert (result.human_queries, result.machine_queries) == (15, 45)
    ratio = (result.human_high - result.human_low) / (result.high - result.low)
    assert result.effective_queries == pytest.approx(15 * ratio**2)


def test_a_useless_machine_does_not_count():
    y = np.array([0.1, 0.5, 0.9, 0.3, 0.7])
    for machine, others in [
        (1 - y, np.linspace(0, 1, 30)),  # worse than chance
        (np.full(5, 0.5), np.full(30, 0.5)),  # always the same
        (y, np.array([0.5])),  # nothing to gain
    ]:
        result = powered_mean(y, machine, others)
        assert result.weight == 0.0
        assert (result.mean, result.low, result.high) == pytest.approx(mean_interval(y))
    few = powered_mean(y[:3], y[:3], np.linspace(0, 1, 30))
    assert (few.weight, few.mean) == (0.0, pytest.approx(0.5))
    assert math.isnan(powered_mean(y[:1], y[:1], y).low)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("people", [10, 40])
def test_coverage(people, correlation):
    random = np.random.default_rng(int(10 * correlation) + people)
    runs = 600
    covered = widths = alone = 0.0
    for _ in range(runs):
        y, f, truth = drawn(random, 5 * people, correlation)
        result = powered_mean(y[:people], f[:people], f[people:])
        covered += result.low <= truth <= result.high
        widths += result.high - result.low
        alone += result.human_high - result.human_low
    error = math.sqrt(0.95 * 0.05 / runs)
    assert abs(covered / runs - 0.95) < 0.02 + 2 * error
    # Narrower by the variance that the machine explains, once there are enough queries.
    expected = math.sqrt(1 - 0.8 * correlation**2)
    assert widths / alone == pytest.approx(expected, abs=0.09 if people == 10 else 0.04)


@pytest.mark.parametrize("people", [10, 20, 50])
@pytest.mark.parametrize("accuracy", [0.8, 0.97])
def test_coverage_and_bias_with_values_of_0_and_1(people, accuracy):
    """A rate of a tenth is in none of ten queries every third time."""
    random = np.random.default_rng([people, int(100 * accuracy)])
    repeats, rate = 200, 0.1
    results = []
    for _ in range(repeats):
        y = (random.random(people + 200) < rate).astype(float)
        f = np.where(random.random(people + 200) < accuracy, y, 1.0 - y)
        results.append(powered_mean(y[:people], f[:people], f[people:]))
    covered = sum(each.low <= rate <= each.high for each in results)
    assert covered >= stats.binom.ppf(0.001, repeats, 0.92)
    assert sum(each.human_low <= rate <= each.human_high for each in results) >= 0.9 * repeats
    means = [each.mean for each in results]
    assert np.mean(means) == pytest.approx(
        rate, abs=float(3.3 * np.std(means) / math.sqrt(repeats))
    )
    assert all(each.high > each.low for each in results)


def test_coverage_where_most_of_peoples_values_are_equal():
    """Twenty values of which one in twenty is below 1: a third of samples have none of them."""
    random = np.random.default_rng(5)
    repeats, covered = 200, 0
    for _ in range(repeats):
        y = np.where(random.random(220) < 0.95, 1.0, random.random(220))
        f = y + 0.05 * random.standard_normal(220)
        result = powered_mean(y[:20], f[:20], f[20:])
        covered += result.low <= 0.975 <= result.high
    assert covered >= stats.binom.ppf(0.001, repeats, 0.92)


def test_queries_that_people_find_nothing_for():
    """With nothing_relevant="skip" they have no value, but they were judged."""
    random = np.random.default_rng(3)
    repeats, people, rest = 25, 30, 120
    convention = Conventions(nothing_relevant="skip")
    covered = 0
    for _ in range(repeats):
        human, machine, run = {}, {}, {}
        for number in range(people + rest):
            query, first = f"q{number:03d}", int(random.integers(1, 5))
            found = random.random() < 0.9 - 0.2 * first  # rarely, where the run is bad
            agrees = random.random() < 0.8
            documents = [f"d{rank}" for rank in range(1, 5)]
            human[query] = {each: int(found and each == f"d{first}") for each in documents}
            seen = found if agrees else not found
            machine[query] = {each: int(seen and each == f"d{first}") for each in documents}
            run[query] = {each: -float(rank) for rank, each in enumerate(documents)}
        judged = {query: human[query] for query in list(human)[:people]}
        result = compare_powered("RR", judged, machine, {"run": run}, conventions=convention)
        mean = result.means["RR"]["run"]
        assert (mean.human_queries, mean.machine_queries) == (people, rest)
        chances = np.array([0.9 - 0.2 * first for first in range(1, 5)])
        truth = float(chances @ (1.0 / np.arange(1, 5)) / chances.sum())
        covered += mean.low <= truth <= mean.high
        known = [query for query in judged if any(human[query].values())]
        expected = evaluate("RR", {query: human[query] for query in known}, run).means["RR"]
        assert mean.human_mean == pytest.approx(expected)
    assert covered >= stats.binom.ppf(0.001, repeats, 0.93)


def test_values_that_do_not_fit():
    one = np.ones(3)
    with pytest.raises(DataError, match="not of the same queries"):
        powered_mean(one, np.ones(4), one)
    with pytest.raises(DataError, match="NaN or infinite"):
        powered_mean(one, np.array([1.0, np.nan, 1.0]), one)


@pytest.fixture(scope="module")
def judged():
    """Labels of 40 queries by people and a machine that errs, and two runs."""
    random = np.random.default_rng(5)
    queries = [f"q{n:02d}" for n in range(40) for _ in range(8)]
    documents = [f"d{n}" for _ in range(40) for n in range(8)]
    labels = random.integers(0, 4, 320)
    machine = np.clip(labels + random.integers(-1, 2, 320), 0, 3)
    people = Judgments.from_columns(queries, documents, labels)
    model = Judgments.from_columns(queries, documents, machine)
    good = Rankings.from_columns(queries, documents, labels + 2 * random.random(320), name="good")
    bad = Rankings.from_columns(queries, documents, random.random(320), name="bad")
    return people, model, {"bad": bad, "good": good}


def some(judgments, count):
    """The first queries."""
    end = judgments.offsets[count]
    queries = np.repeat(judgments.query_ids.to_pylist(), np.diff(judgments.offsets))[:end]
    return Judgments.from_columns(
        queries, judgments.document_ids.to_pylist()[:end], judgments.labels[:end]
    )


def test_measures_of_runs(judged):
    people, model, runs = judged
    result = compare_powered(["nDCG@5", "P(rel=2)@3"], some(people, 10), model, runs)
    for measure in ("nDCG@5", "P(rel=2)@3"):
        y = {name: evaluate(measure, people, run)[measure] for name, run in runs.items()}
        f = {name: evaluate(measure, model, run)[measure] for name, run in runs.items()}
        for name in runs:
            expected = powered_mean(y[name][:10], f[name][:10], f[name][10:])
            assert result.means[measure][name] == expected
        gap = {key: values["good"] - values["bad"] for key, values in (("y", y), ("f", f))}
        expected = powered_mean(gap["y"][:10], gap["f"][:10], gap["f"][10:])
        assert result.differences[measure]["good"] == expected
        assert list(result.differences[measure]) == ["good"]


def test_what_is_refused(judged):
    people, model, runs = judged
    with pytest.raises(DataError, match="query 'q20' has human judgments and none of the machine"):
        compare_powered("nDCG@5", people, some(model, 20), runs)
    with pytest.raises(ArgumentError, match="not a mean over queries"):
        compare_powered("NumRet", people, model, runs)
    with pytest.raises(ArgumentError, match="no systems"):
        compare_powered("AP", people, model, {})
    other = Judgments.from_columns(["x"], ["d"], [1])
    with pytest.raises(DataError, match="none of the 40 queries of the rankings is judged"):
        compare_powered("AP", other, model, runs)


def test_commands(judged, tmp_path):
    people, model, runs = judged
    write_qrels(some(people, 10), tmp_path / "people.qrels")
    write_qrels(model, tmp_path / "model.qrels")
    for name, run in runs.items():
        write_run(run, tmp_path / f"{name}.run")
    files = [tmp_path / "people.qrels", tmp_path / "bad.run", tmp_path / "good.run"]
    options = ("--machine", tmp_path / "model.qrels", "-m", "nDCG@5")
    expected = compare_powered("nDCG@5", some(people, 10), model, runs)
    content = json.loads(succeed("evaluate", *files, *options, "--json"))
    mean = expected.means["nDCG@5"]["good"]
    assert content["means"]["nDCG@5"]["good"]["mean"] == pytest.approx(mean.mean)
    assert content["means"]["nDCG@5"]["good"]["effective_queries"] == pytest.approx(
        mean.effective_queries
    )
    lines = succeed("evaluate", *files, *options).splitlines()
    assert len(lines) == 3
    assert lines[2].split("\t")[:4] == [
        "nDCG@5", "good", f"{mean.mean:.4f}", f"{mean.low:.4f} to {mean.high:.4f}"
    ]  # fmt: skip
    assert lines[2].split("\t")[-1] == "10+30"
    lines = succeed("compare", *files, *options).splitlines()
    gap = expected.differences["nDCG@5"]["good"]
    assert lines[3].split("\t")[1:3] == ["good - bad", f"{gap.mean:+.4f}"]
    assert "prints means" in fail("evaluate", *files, *options, "--per-query")
    assert "needs runs" in fail("evaluate", files[0], *options)
    for others in (("--seed", 1), ("--test", "t"), ("--level", 0.1), ("--topics", files[0])):
        assert f"Leave out {others[0]}." in fail("compare", *files, *options, *others)
    assert "Leave out --output" in fail("compare", *files, *options, "-o", tmp_path / "x.html")


class Scored(NamedTuple):
    query_id: str
    doc_id: str
    score: float


class Judged(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


def test_sources_that_can_be_read_once_are_read_once():
    truth = {f"q{n}": {"a": n % 2, "b": 1 - n % 2} for n in range(20)}
    pairs = [(query, document) for query in truth for document in "ab"]
    rows = [Scored(query, document, float(document == "a")) for query, document in pairs]
    qrels = [Judged(query, document, truth[query][document]) for query, document in pairs]
    result = compare_powered("RR", iter(qrels[:8]), iter(qrels), {"x": iter(rows), "y": iter(rows)})
    expected = compare_powered("RR", qrels[:8], qrels, {"x": rows, "y": rows})
    assert result.means["RR"]["y"] == expected.means["RR"]["y"]
