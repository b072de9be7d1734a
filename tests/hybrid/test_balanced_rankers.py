"""Rankers of relevance and a second objective, under requirements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.data import Dataset, write_parquet
from podium.errors import ArgumentError, DataError
from podium.hybrid import balance_ranker
from podium.hybrid.objectives import _ordered_by
from podium.hybrid.report import hybrid_document, hybrid_json
from podium.measures import evaluate
from podium.rankers import LinearRanker, TreeRanker, load_ranker
from tests.cli.run_podium import fail, podium

NAMES = ["words", "noise", "margin"]


def collection(queries: int, seed: int = 0, documents: int = 15) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 3))
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=len(X))), 0, 3)
    return Dataset.from_arrays(X, y, group=[documents] * queries, feature_names=NAMES)


def margin_of(ranker: Any, data: Dataset, top: int) -> float:
    scores, means = ranker.predict(data), []
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        best = np.argsort(-scores[begin:end], kind="stable")[:top]
        means.append(data.features[begin:end, 2][best].mean())
    return float(np.mean(means))


@pytest.mark.parametrize(
    "ranker",
    [LinearRanker("PairLogistic(k=5)"), TreeRanker(n_estimators=30, num_leaves=7)],
    ids=["linear", "trees"],
)
def test_a_looser_requirement_buys_more(ranker: Any) -> None:
    data, new = collection(150), collection(400, seed=1)
    options: dict[str, Any] = {"folds": 2, "measure": "nDCG@5"}
    strict, loose = results = [
        balance_ranker(
            ranker, data, "mean(margin)@5", [f"nDCG@5 >= baseline - {bound}%"], **options
        )
        for bound in (4, 25)
    ]
    assert strict.chosen is not None
    assert loose.chosen is not None
    assert 0 < strict.chosen.share < loose.chosen.share
    # What is stated of held-out queries holds on others.
    base = type(ranker)(**ranker.get_params()).fit(data)
    for result in results:
        gain = margin_of(result.model, new, 5) - margin_of(base, new, 5)
        assert gain == pytest.approx(result.chosen.gain.mean, abs=0.15)
        before, after = (
            evaluate("nDCG@5", new.labels, each.predict(new), group=[15] * 400)["nDCG@5"].mean()
            for each in (base, result.model)
        )
        assert after - before == pytest.approx(result.chosen.price.mean, abs=0.05)
    assert all(each.shown for each in loose.shares[:-1])
    if not loose.shares[-1].shown:
        assert loose.chosen.share == loose.shares[-2].share


def test_figures_are_of_queries_that_taught_nothing() -> None:
    rng = np.random.default_rng(0)
    noise = rng.choice(4, 900).astype(float)  # nothing can be learned, and trees learn it by heart
    data = Dataset.from_arrays(
        rng.normal(size=(900, 3)), noise, group=[15] * 60, feature_names=NAMES
    )
    ranker = TreeRanker(n_estimators=200, learning_rate=0.3, min_data_in_leaf=1)
    result = balance_ranker(
        ranker, data, "mean(margin)@5", ["nDCG@5 >= baseline - 30%"], folds=2, measure="nDCG@5"
    )
    group = [15] * 60
    by_heart = evaluate("nDCG@5", noise, ranker.fit(data).predict(data), group=group)["nDCG@5"]
    chance = evaluate("nDCG@5", noise, rng.random(900), group=group)["nDCG@5"].mean()
    assert by_heart.mean() > 0.9
    assert result.baseline[1] == pytest.approx(chance, abs=0.12)


def test_what_cannot_be_had_leaves_the_ranker_as_it_is() -> None:
    data = collection(60)
    ranker = LinearRanker("PairLogistic(k=5)")
    done: list[tuple[int, int]] = []
    result = balance_ranker(
        ranker, data, "mean(margin)@5", ["nDCG@5 >= baseline + 10%"], folds=2,
        progress=lambda number, most: done.append((number, most)),
    )  # fmt: skip
    assert result.chosen is None
    assert len(result.shares) == 1  # nothing is fitted after a share that is not shown
    np.testing.assert_array_equal(result.model.coef_, ranker.fit(data).coef_)
    assert done[-1] == (25, 25)
    assert "left out" in result.verdict


def test_a_share_that_gains_nothing_does_not_ship() -> None:
    data, ranker = collection(60), LinearRanker("PairLogistic(k=5)")
    # The first 15 documents are all documents, whatever their order.
    result = balance_ranker(
        ranker, data, "mean(margin)@15", ["nDCG@5 >= baseline - 25%"], folds=2
    )  # fmt: skip
    assert result.shares[0].shown
    assert result.chosen is None
    np.testing.assert_array_equal(result.model.coef_, ranker.fit(data).coef_)
    assert result.verdict == "No share of margin gains anything: it is left out."


def test_slices_must_hold_too() -> None:
    data = collection(120)
    halves = {name: str(at % 2) for at, name in enumerate(data.query_ids.to_pylist())}
    result = balance_ranker(
        LinearRanker("PairLogistic(k=5)"), data, "mean(margin)@5",
        ["nDCG@5 >= baseline - 20% in each half"], properties={"half": halves}, folds=2,
    )  # fmt: skip
    assert {each.slice_name for each in result.shares[0].decision.results} == {"half=0", "half=1"}


def test_labels_of_the_objective_are_its_order() -> None:
    nan = float("nan")
    data = Dataset.from_arrays(
        [[5.0], [nan], [7.0], [7.0], [1.0], [2.0]], [0, 4, 0, 0, 0, 2], group=[4, 2],
        feature_names=["margin"],
    )  # fmt: skip
    second = _ordered_by(data, "margin")
    assert second.labels.tolist() == [0.0, 2.0, 3.0, 3.0, 0.0, 4.0]
    assert set(second.query_ids.to_pylist()).isdisjoint(data.query_ids.to_pylist())


def test_what_does_not_fit_is_refused() -> None:
    data, ranker, bound = collection(20), LinearRanker(), ["nDCG@5 >= baseline - 5%"]
    with pytest.raises(ArgumentError, match="not an objective"):
        balance_ranker(ranker, data, "margin", bound)
    with pytest.raises(ArgumentError, match="no feature 'price'"):
        balance_ranker(ranker, data, "mean(price)@5", bound)
    with pytest.raises(ArgumentError, match="requirement"):
        balance_ranker(ranker, data, "mean(margin)@5", [])
    with pytest.raises(ArgumentError, match="no weights of queries"):
        balance_ranker(_Weightless(), data, "mean(margin)@5", bound)
    features = np.array(data.features)
    features[:, 2] = np.nan
    empty = Dataset.from_arrays(features, data.labels, group=[15] * 20, feature_names=NAMES)
    with pytest.raises(DataError, match="no document has a margin"):
        balance_ranker(TreeRanker(), empty, "mean(margin)@5", bound)


class _Weightless(LinearRanker):
    takes_weights = False


def test_the_command(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "balanced.podium"
    write_parquet(collection(80), rows)
    options = (
        "train", rows, out, "--scorer", "linear", "--loss", "PairLogistic(k=5)", "--folds", "2",
        "--maximize", "mean(margin)@5",
    )  # fmt: skip
    done = podium(*options, "--require", "nDCG@5 >= baseline - 20%")
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("A share of 0.")
    assert lines[2].startswith("share\tobjective\tgain")
    assert lines[3].startswith("0\t")
    assert load_ranker(out).coef_[2] > 0.05
    done = podium(*options, "--require", "nDCG@5 >= baseline + 20%", "--json")
    assert done.returncode == 1
    balance = json.loads(done.stdout)["balance"]
    assert "No share of margin" in balance["verdict"]
    assert len(balance["frontier"]) == 1
    assert abs(load_ranker(out).coef_[2]) < 0.05
    assert "--require" in fail(*options)
    assert "--level is of --maximize" in fail("train", rows, out, "--level", "0.1")
    assert balance["counts"] == {
        "queries": 80, "queries that prefer no document": 0, "documents without margin": 0,
    }  # fmt: skip
    message = fail(*options, "--require", "RR > baseline", "--validation", rows)
    assert "--validation cannot be used with --maximize" in message


def test_the_report_shows_the_frontier() -> None:
    result = balance_ranker(
        LinearRanker("PairLogistic(k=5)"), collection(60), "mean(margin)@5",
        ["nDCG@5 >= baseline - 20%"], folds=2,
    )  # fmt: skip
    markdown = hybrid_document(result).as_markdown()
    assert "LinearRanker(" in markdown
    assert "<polygon" in hybrid_document(result).as_html()
    assert "fusion" not in hybrid_json(result)
