"""Tuned fusions: what is held out, what is chosen, and that requirements hold on new queries."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from podium.data import Judgments, Rankings
from podium.data.preferences import Preferences
from podium.data.sources import as_judgments
from podium.errors import ArgumentError, DataError
from podium.hybrid import Fusion
from podium.hybrid.fusion import fuse
from podium.hybrid.objectives import SHARES, balance_fusion
from podium.hybrid.ranker import HybridRanker
from podium.hybrid.report import (
    frontier_rows,
    hybrid_document,
    hybrid_json,
    tuning_rows,
    warnings,
)
from podium.hybrid.tuning import (
    CHOICE,
    EQUAL,
    GRID,
    RRF,
    SINGLE,
    Chooser,
    JudgedLists,
    held_out_parts,
    tune_fusion,
    with_optimism,
)
from podium.measures import evaluate
from podium.measures.comparison.statistics import paired_difference
from podium.rankers import load_ranker

DOCUMENTS = 12


def collection(queries, weights, *, noise=1.0, seed=0):
    """Labels, and lists that see them with noise; a list sees nothing where its weight is 0."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (queries, DOCUMENTS))
    ids = np.repeat([f"q{number}" for number in range(queries)], DOCUMENTS)
    documents = np.array([f"q{q}-d{d}" for q in range(queries) for d in range(DOCUMENTS)])
    truth = Judgments.from_columns(ids, documents, labels.ravel().astype(np.float32))
    runs = {}
    for number, weight in enumerate(weights):
        scores = 5 + weight * labels + noise * rng.normal(size=labels.shape)
        kept = rng.random(labels.size) < 0.9
        runs[f"list{number}"] = Rankings.from_columns(
            ids[kept], documents[kept], scores.ravel()[kept]
        )
    return truth, runs, dict(zip(documents.tolist(), rng.random(labels.size).tolist(), strict=True))


def held_out(result):
    return {row.name: row.held_out for row in result.rows}


def test_what_is_held_out_chose_nothing():
    """Fold by fold, the choice is that on the other queries, and its values are of the fold."""
    truth, runs, _ = collection(40, (1.0, 0.5))
    result = tune_fusion(truth, runs, folds=4, random_state=3)
    judged = JudgedLists.of(truth, runs, "nDCG@10", None)
    parts = held_out_parts(judged.usable, 4, 3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(40))
    chooser = Chooser(judged, random_state=3)
    values = np.empty(40)
    for part, fusion in zip(parts, result.folds, strict=True):
        others = np.setdiff1d(np.arange(40), part)
        assert chooser.choice(others) == fusion
        values[part] = judged.values(fusion)[part]
    measured = result.comparison.values["nDCG@10"][:, 0]
    np.testing.assert_allclose(measured, values)
    assert held_out(result)[CHOICE] == pytest.approx(values.mean())


def test_judgments_of_a_query_do_not_choose_for_it():
    truth, runs, _ = collection(30, (1.0, 0.5), seed=2)
    judged = JudgedLists.of(truth, runs, "nDCG@10", None)
    part = held_out_parts(judged.usable, 5, 0)[0]
    others = np.setdiff1d(judged.usable, part)
    labels = np.array(truth.labels)
    for query in part:
        rows = slice(truth.offsets[query], truth.offsets[query + 1])
        labels[rows] = labels[rows][::-1]
    changed = Judgments(
        query_ids=truth.query_ids, offsets=truth.offsets, document_ids=truth.document_ids,
        labels=labels,
    )  # fmt: skip
    other = JudgedLists.of(changed, runs, "nDCG@10", None)
    assert Chooser(judged).choice(others) == Chooser(other).choice(others)
    assert Chooser(judged).grid(others) == Chooser(other).grid(others)


def test_values_are_those_of_evaluate():
    truth, runs, _ = collection(20, (1.0, 0.5))
    judged = JudgedLists.of(truth, runs, "nDCG@10", None)
    for fusion in (Fusion(judged.lists), Fusion(judged.lists, "rank", "rrf", (1, 3))):
        evaluation = evaluate("nDCG@10", truth, fusion.rank(runs))
        np.testing.assert_allclose(judged.values(fusion), evaluation["nDCG@10"])


def test_the_better_list_gets_more_weight_and_noise_none():
    truth, runs, _ = collection(80, (2.0, 0.0))
    result = tune_fusion(truth, runs)
    assert result.fusion.weights[0] > 0.85
    assert result.behind() == []
    means = held_out(result)
    assert means[CHOICE] >= means[EQUAL]
    assert set(means) == {CHOICE, RRF, EQUAL, SINGLE, GRID}


def test_where_nothing_is_to_be_gained_little_is_lost():
    """What 30 queries of equally good lists choose is about as good on new ones as RRF."""
    truth, runs, _ = collection(400, (1.0, 1.0), seed=1)
    judged = JudgedLists.of(truth, runs, "nDCG@10", None)
    chooser = Chooser(judged)
    losses = []
    for first in range(0, 180, 30):
        fusion = chooser.choice(np.arange(first, first + 30))
        losses.append((judged.values(chooser.rrf) - judged.values(fusion))[200:].mean())
    assert np.mean(losses) < 0.01
    assert max(losses) < 0.03


def test_optimism_is_that_of_the_same_queries():
    """The grid's best of lists of pure noise looks better in-sample than it is."""
    optimism = []
    for seed in range(6):
        truth, runs, _ = collection(20, (0.0, 0.0, 0.0), seed=seed)
        rows = {row.name: row for row in tune_fusion(truth, runs, folds=5).rows}
        assert rows[RRF].optimism == pytest.approx(0, abs=1e-9)
        optimism.append(rows[GRID].optimism)
    assert np.mean(optimism) > 0.01


def test_gains_are_of_the_comparison():
    truth, runs, _ = collection(30, (1.0, 0.3))
    result = tune_fusion(truth, runs, folds=3)
    table = result.comparison.values["nDCG@10"]
    for at, row in enumerate(result.rows[1:], start=1):
        differences = table[:, 0] - table[:, at]
        assert row.gain.mean == pytest.approx(differences.mean())
        assert row.gain.low <= row.gain.mean <= row.gain.high
        assert row.gain.wins == int((differences > 1e-12).sum())


def test_optimism_widens_intervals():
    values = np.array([0.1, 0.3, 0.5, -0.2])
    gain = paired_difference(values, np.zeros(4))
    wide = with_optimism(gain, -0.4)
    error = np.hypot(values.std(ddof=1) / 2, 0.4)
    assert wide.mean == gain.mean
    assert wide.high - wide.mean == pytest.approx(3.18244630528 * error)  # t with 3 degrees
    assert wide.mean - wide.low == pytest.approx(wide.high - wide.mean)
    assert (wide.p_values["t"] < 0.05) == (wide.low > 0)
    assert with_optimism(gain, 0.0).p_values["t"] == pytest.approx(gain.p_values["t"])
    same = paired_difference(np.ones(3), np.zeros(3))
    assert with_optimism(same, 0.1) is same
    result = tune_fusion(*collection(30, (1.0, 0.3))[:2], folds=3)
    table = result.comparison.values["nDCG@10"]
    for at, row in enumerate(result.rows[1:], start=1):
        plain = paired_difference(table[:, 0], table[:, at])
        expected = with_optimism(plain, result.rows[0].optimism - row.optimism)
        assert (row.gain.low, row.gain.high) == pytest.approx((expected.low, expected.high))
        assert row.p_value >= expected.p_values["t"] - 1e-12


def test_losses_are_smaller_for_the_choice():
    truth, runs, _ = collection(60, (2.0, 0.0))
    result = tune_fusion(truth, runs, measure="WKT(k=5)", folds=4)
    means = held_out(result)
    assert means[CHOICE] <= means[EQUAL]
    assert result.behind() == []


def test_preferences_are_a_target():
    truth, runs, _ = collection(40, (2.0, 0.3))
    left, right, queries, verdicts = [], [], [], []
    ids = truth.query_ids.to_pylist()
    names = truth.document_ids.to_pylist()
    for query in range(40):
        start = truth.offsets[query]
        for row in range(DOCUMENTS - 1):
            one, other = start + row, start + row + 1
            if truth.labels[one] != truth.labels[other]:
                queries.append(ids[query])
                left.append(names[one])
                right.append(names[other])
                verdicts.append(1 if truth.labels[one] > truth.labels[other] else -1)
    preferences = Preferences.from_columns(queries, left, right, verdicts)
    result = tune_fusion(preferences, runs, measure="ppref", folds=4)
    assert result.fusion.weights[0] > 0.6
    with pytest.raises(ArgumentError, match="preferences"):
        tune_fusion(preferences, runs, measure="ppref", loss="ListNet()")
    with pytest.warns(UserWarning, match="nothing separates"):
        result = tune_fusion(preferences, runs, measure="kNDCG(k=3)@3", folds=4)
    assert result.counts["preferences made labels of the top 3"] == len(left)
    assert result.fusion.weights[0] > 0.6


def test_weights_learned_by_a_loss():
    truth, runs, _ = collection(60, (2.0, 0.5, 0.0))
    result = tune_fusion(truth, runs, loss="ListMLE(k=10)", folds=3)
    assert np.argsort(result.fusion.weights).tolist() == [2, 1, 0]


def test_many_lists():
    truth, runs, _ = collection(40, (2.0, 0.0, 0.0, 1.0, 0.0))
    result = tune_fusion(truth, runs, folds=3, normalizations=["min-max", "rank"])
    weights = result.fusion.weights
    assert weights[0] + weights[3] > 0.8


def two_kinds(queries, seed=0):
    """For every other query the first list is good, else the second; a feature says which."""
    truth, runs, _ = collection(queries, (2.0, 2.0), noise=0.5, seed=seed)
    _, bad, _ = collection(queries, (0.0, 0.0), seed=seed + 1)
    mixed = {}
    for at, name in enumerate(runs):
        good = {
            query: documents
            for number, (query, documents) in enumerate(as_dict(runs[name]).items())
            if number % 2 == at
        }
        mixed[name] = as_dict(bad[name]) | good
    features = {f"q{number}": [float(number % 2)] for number in range(queries)}
    return truth, mixed, features


def as_dict(run):
    result = {}
    for query, document, score in zip(
        run.query_id_of_row().to_pylist(), run.document_ids.to_pylist(), run.scores, strict=True
    ):
        result.setdefault(query, {})[document] = float(score)
    return result


def test_weights_per_query_ship_only_where_they_gain(tmp_path):
    truth, runs, features = two_kinds(80)
    options: dict[str, Any] = {"feature_names": ["odd"], "folds": 4}
    result = tune_fusion(truth, runs, query_features=features, **options)
    assert result.per_query.shown
    assert result.fusion.per_query is not None
    fused = result.fusion.rank(runs, query_features=features)
    fixed = tune_fusion(truth, runs, **{**options, "feature_names": ()}).fusion.rank(runs)
    assert evaluate("nDCG@5", truth, fused).means["nDCG@5"] > (
        evaluate("nDCG@5", truth, fixed).means["nDCG@5"] + 0.05
    )
    result.fusion.save(tmp_path / "hybrid.toml")
    assert Fusion.load(tmp_path / "hybrid.toml").per_query.features == ("odd",)
    rng = np.random.default_rng(1)
    useless = {query: [float(rng.random())] for query in features}
    del useless["q3"]
    result = tune_fusion(truth, runs, query_features=useless, **options)
    assert not result.per_query.shown
    assert result.fusion.per_query is None
    assert result.counts["queries without features"] == 1


def test_what_is_left_out_is_counted():
    truth, runs, numbers = collection(30, (1.0, 0.5))
    first = as_dict(runs["list0"])
    del first["q3"]
    first["q99"] = {"d": 1.0}
    known = dict(list(numbers.items())[:-5])
    result = tune_fusion(
        truth, {"first": first, "second": runs["list1"]}, folds=3, columns={"popularity": known}
    )
    counts = result.counts
    assert counts["queries"] == 30
    assert counts["queries without first"] == 1
    assert counts["queries without second"] == 0
    assert counts["queries of the lists without judgments"] == 1
    assert 0 < counts["documents without popularity"] <= 5
    assert result.fusion.columns == ("popularity",)


def test_too_little_is_refused():
    truth, runs, numbers = collection(12, (1.0, 0.5))
    with pytest.raises(ArgumentError, match="1 lists"):
        tune_fusion(truth, {"a": runs["list0"]})
    with pytest.raises(ArgumentError, match="folds is 13"):
        tune_fusion(truth, runs, folds=13)
    few = as_judgments({"q1": {"q1-d1": 1}})
    with pytest.raises(DataError, match="1 queries"):
        tune_fusion(few, runs)
    with pytest.raises(ArgumentError, match="no form"):
        tune_fusion(truth, runs, normalizations=["rank"], combinations=["geometric"])
    columns = {"margin": numbers}
    for objective in ("margin", "mean(margin)", "mean(margin)@0", "max(margin)@3"):
        with pytest.raises(ArgumentError, match="objective"):
            balance_fusion(truth, runs, objective, ["RR > baseline"], columns)
    with pytest.raises(ArgumentError, match="no column"):
        balance_fusion(truth, runs, "mean(price)@3", ["RR > baseline"], columns)
    with pytest.raises(ArgumentError, match="requirement"):
        balance_fusion(truth, runs, "mean(margin)@3", [], columns)
    with pytest.raises(DataError, match="no document"):
        balance_fusion(truth, runs, "mean(margin)@3", ["RR > baseline"], {"margin": {"x": 1.0}})
    foreign = Fusion(("list0", "other"))
    with pytest.raises(DataError, match="'other'"):
        balance_fusion(
            truth, runs, "mean(margin)@3", ["RR > baseline"], columns, baseline=foreign, folds=3
        )


def test_as_much_of_a_column_as_requirements_allow():
    truth, runs, margin = collection(150, (2.0, 1.0))
    options: dict[str, Any] = {"columns": {"margin": margin}, "folds": 5}
    loose = balance_fusion(truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 20%"], **options)
    strict = balance_fusion(truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 5%"], **options)
    assert loose.chosen.share > strict.chosen.share > 0
    assert loose.model.weights[-1] == pytest.approx(loose.chosen.share)
    assert loose.model.columns == ("margin",)
    assert loose.chosen.gain.mean > strict.chosen.gain.mean > 0
    assert loose.chosen.price.mean < 0
    # Nothing after the first share that is not shown was tested.
    tested = [each.decision is not None for each in loose.shares]
    assert tested == sorted(tested, reverse=True)
    assert [each.shown for each in loose.shares][: sum(tested)] == [True] * (sum(tested) - 1) + [
        False
    ]
    impossible = balance_fusion(
        truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline + 5%"], **options
    )
    assert impossible.chosen is None
    assert impossible.model.columns == ()
    per_slice = balance_fusion(
        truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 20% in each half"],
        properties={"half": {f"q{n}": str(n % 2) for n in range(150)}}, **options,
    )  # fmt: skip
    assert {each.slice_name for each in per_slice.shares[0].decision.results} == {
        "half=0", "half=1",
    }  # fmt: skip
    given = balance_fusion(
        truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 20%"],
        baseline=Fusion(("list0", "list1"), "rank", "rrf"), **options,
    )  # fmt: skip
    rrf = evaluate("nDCG@10", truth, Fusion(("list0", "list1"), "rank", "rrf").rank(runs))
    assert given.baseline[1] == pytest.approx(rrf.means["nDCG@10"])


def test_prices_are_of_queries_that_did_not_choose_the_share():
    truth, runs, margin = collection(60, (2.0, 1.0))
    columns = {"margin": margin}
    options: dict[str, Any] = {"folds": 2, "baseline": Fusion(("list0", "list1"))}
    loose = balance_fusion(
        truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 95%"], columns, **options
    )
    assert loose.chosen is loose.shares[-1]  # the others of every query choose it, too
    assert loose.price == pytest.approx(loose.chosen.price.mean)
    assert f"{loose.price:+.4f}" in loose.verdict
    changes = []
    for seed in range(4):
        truth, runs, margin = collection(60, (2.0, 1.0), seed=seed)
        result = balance_fusion(
            truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 8%"], {"margin": margin},
            **options,
        )  # fmt: skip
        assert result.chosen is not None
        changes.append(result.chosen.price.mean - result.price)
    assert np.abs(changes).max() > 1e-4  # the others of some queries choose another share


def test_the_objective_is_a_mean_over_the_first_documents():
    truth, runs, margin = collection(12, (2.0, 1.0))
    result = balance_fusion(
        truth, runs, "mean(margin)@3", ["nDCG@5 >= baseline - 90%"], {"margin": margin}, folds=2,
        baseline=Fusion(("list0", "list1")),
    )  # fmt: skip
    run = Fusion(("list0", "list1")).rank(runs)
    expected = [
        np.mean([margin[d] for d in sorted(documents, key=documents.get, reverse=True)[:3]])
        for documents in as_dict(run).values()
    ]
    assert result.baseline[0] == pytest.approx(np.mean(expected), rel=1e-6)


@pytest.mark.slow
def test_requirements_hold_on_new_queries():
    """Few samples from a large collection ship what breaks the requirement on all of it."""
    queries, sample, splits = 3000, 150, 25
    truth, runs, margin = collection(queries, (1.5,), seed=9)
    labels = np.array(truth.labels).reshape(queries, DOCUMENTS)
    order = truth.document_ids.to_pylist()
    everything = as_dict(runs["list0"])
    scores = np.array([everything[d.split("-")[0]].get(d, np.nan) for d in order])
    columns = np.column_stack([scores, [margin[d] for d in order]])
    offsets = np.arange(queries + 1) * DOCUMENTS

    def value(share):
        fusion = Fusion(("list0", "margin"), weights=(1 - share, share), columns=("margin",))
        fused = fuse(columns, offsets, fusion)
        return evaluate("nDCG@5", labels.ravel(), fused, group=np.diff(offsets))["nDCG@5"]

    base = value(0.0).mean()
    true = {share: value(share).mean() / base for share in SHARES}
    rng = np.random.default_rng(0)
    broken, shipped = 0, 0
    ids = np.array([f"q{number}" for number in range(queries)])
    grades = {}
    for query, row in zip(ids.tolist(), range(0, labels.size, DOCUMENTS), strict=True):
        graded = zip(order[row : row + DOCUMENTS], labels[row // DOCUMENTS].tolist(), strict=True)
        grades[query] = dict(graded)
    for _ in range(splits):
        drawn = ids[rng.choice(queries, sample, replace=False)].tolist()
        result = balance_fusion(
            {q: grades[q] for q in drawn}, {"list0": {q: everything[q] for q in drawn}},
            "mean(margin)@5", ["nDCG@5 >= baseline - 5%"], {"margin": margin}, folds=2, level=0.1,
        )  # fmt: skip
        if result.chosen is not None:
            shipped += 1
            broken += true[result.chosen.share] < 0.95
    assert shipped > splits / 2
    assert broken <= 6  # of 25 at a level of 10 %: more have a chance of 1 %


def test_reports():
    truth, runs, margin = collection(40, (2.0, 1.0))
    tuned = tune_fusion(truth, runs, folds=3)
    balance = balance_fusion(
        truth, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 20%"], {"margin": margin}, folds=3
    )
    for result in (tuned, balance):
        document = hybrid_document(result)
        assert "| list | weight |" in document.as_markdown()
        assert "<table" in document.as_html()
        content = json.loads(json.dumps(hybrid_json(result), allow_nan=False))
        assert content["fusion"]["lists"][0] == "list0"
    assert len(tuning_rows(tuned)) == 5
    assert len(frontier_rows(balance)) == 1 + len(SHARES)
    assert "<polygon" in hybrid_document(balance).as_html()


def rows_of(truth, runs):
    judged = JudgedLists.of(truth, runs, "nDCG@10", None)
    labels = np.nan_to_num(judged.inputs.labels)
    return judged.votes, labels, np.diff(judged.inputs.offsets)


def test_a_ranker(tmp_path):
    truth, runs, _ = collection(40, (2.0, 0.3))
    X, y, group = rows_of(truth, runs)
    ranker = HybridRanker().fit(X, y, group=group)
    assert ranker.fusion_.weights[0] > 0.6
    offsets = np.concatenate(([0], np.cumsum(group)))
    one = ranker.predict(X[: group[0]])
    np.testing.assert_array_equal(one, fuse(X, offsets, ranker.fusion_)[: group[0]])
    ranker.save(tmp_path / "hybrid.podium")
    loaded = load_ranker(tmp_path / "hybrid.podium")
    np.testing.assert_array_equal(loaded.predict(X[: group[0]]), one)
    by_loss = HybridRanker("min-max", loss="ListMLE(k=10)").fit(X, y, group=group)
    assert by_loss.fusion_.weights[0] > 0.5
    explanation = by_loss.explain(X[: group[0]])
    pair = explanation.pair(*explanation.document_ids[:2])
    assert pair.contributions.sum() == pytest.approx(pair.difference, abs=1e-6)
    with pytest.raises(ArgumentError, match="lists of a query"):
        ranker.fitted_model()


def test_equal_results_have_no_interval():
    truth, runs, _ = collection(12, (1.0, 1.0))
    same = {"first": runs["list0"], "second": runs["list0"]}
    text = hybrid_document(tune_fusion(truth, same, folds=2)).as_markdown()
    assert "nan" not in text
    assert "-0.0000" not in text


@pytest.mark.filterwarnings("error")
def test_unjudged_documents_of_each_list_are_said_once():
    truth, runs, margin = collection(20, (1.0, 0.5))
    few = np.arange(truth.rows) % 4 == 0
    some = Judgments.from_columns(
        truth.query_id_of_row().filter(few), truth.document_ids.filter(few), truth.labels[few]
    )
    tuned = tune_fusion(some, runs, folds=2)
    balance = balance_fusion(
        some, runs, "mean(margin)@5", ["nDCG@5 >= baseline - 90%"], {"margin": margin}, folds=2
    )
    for result in (tuned, balance):
        said = [each for each in warnings(result) if "documents are judged" in each]
        lists = [each.partition(":")[0] for each in said]
        assert len(lists) == len({*lists}) == 3
        assert {"list0", "list1"} < {*lists}
