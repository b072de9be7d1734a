"""Training on simulated clicks: what each way learns, and what is chosen with which evidence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from podium.clicks import (
    ClickLog,
    clicked_searches,
    import_clicks,
    simulate_clicks,
    train_on_clicks,
)
from podium.data import Dataset, Judgments, write_parquet, write_qrels
from podium.errors import ArgumentError, DataError
from podium.measures import evaluate
from podium.rankers import LinearRanker, TreeRanker, load_ranker
from tests.cli.run_podium import fail, podium, succeed

QUERIES, SIZE = 120, 12
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(QUERIES * SIZE, 4)).astype(np.float32)
Y = np.clip(np.round(X[:, 0] + X[:, 1] / 2 + RANDOM.normal(size=len(X)) / 3 + 1), 0, 4)
IDS = [f"d{row}" for row in range(len(X))]
DATA = Dataset.from_arrays(X, Y, group=[SIZE] * QUERIES, document_ids=IDS)
UNLABELED = Dataset.from_arrays(X, np.zeros(len(X)), group=[SIZE] * QUERIES, document_ids=IDS)
PEOPLE = Judgments.from_columns(DATA.query_id_of_row(), IDS, Y)
# Shows first what has a large third feature, which says nothing of relevance.
MISLED = 2 * X[:, 2] + X[:, 0] / 2
RANKER = LinearRanker("ListNet()")


def quality(ranker: LinearRanker) -> float:
    return float(evaluate("nDCG@10", DATA, ranker.predict(X))["nDCG@10"].mean())


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> ClickLog:
    folder = tmp_path_factory.mktemp("swapped") / "log"
    return simulate_clicks(DATA, folder, policy=MISLED, searches=40, shuffled=0.3)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> ClickLog:
    folder = tmp_path_factory.mktemp("fixed") / "log"
    return simulate_clicks(DATA, folder, policy=MISLED, searches=10)


def test_every_way_repairs_what_the_policy_did(swapped: ClickLog) -> None:
    results = {
        way: quality(
            train_on_clicks(RANKER, UNLABELED, swapped, position_bias=way, people=PEOPLE).ranker
        )
        for way in ("naive", "position", "pbm", "people")
    }
    assert results["naive"] + 0.02 < min(results["position"], results["pbm"]), results
    assert max(results, key=lambda way: results[way]) in ("pbm", "people"), results


def test_auto_takes_what_is_better_and_reports_what_lost(swapped: ClickLog) -> None:
    result = train_on_clicks(RANKER, UNLABELED, swapped, people=PEOPLE)
    assert result.chosen != "naive"
    assert result.comparison is not None
    (measure,) = result.comparison.measures
    assert result.comparison.baseline == "naive"
    outcome = result.comparison.against_baseline[measure][result.chosen]
    assert outcome.difference.low > 0
    means = {
        name: outcome.difference.mean
        for name, outcome in result.comparison.against_baseline[measure].items()
    }
    assert max(means, key=lambda name: means[name]) == result.chosen
    rows = {row[0]: row for row in result.table()}
    assert set(rows) == {"naive", "position", "pbm", "sdbn", "people"}
    assert [name for name, row in rows.items() if row[4] == "chosen"] == [result.chosen]
    assert quality(result.ranker) > 0.9


def test_without_evidence_clicks_are_taken_as_they_are(swapped: ClickLog) -> None:
    result = train_on_clicks(RANKER, UNLABELED, swapped)
    assert (result.chosen, result.comparison) == ("naive", None)
    assert "nothing to choose by" in result.notes[0]
    assert "nobody judged" in result.left_out["people"]
    few = Judgments.from_columns(["0"] * SIZE + ["1"] * SIZE, IDS[: 2 * SIZE], Y[: 2 * SIZE])
    assert train_on_clicks(RANKER, UNLABELED, swapped, people=few).comparison is None
    # Judgments without any relation to the documents prove nothing.
    noise = Judgments.from_columns(
        DATA.query_id_of_row(), IDS, np.random.default_rng(7).integers(0, 3, len(X))
    )
    result = train_on_clicks(RANKER, UNLABELED, swapped, people=noise)
    assert result.chosen == "naive"
    assert "no way is shown to be better" in result.notes[0]


def test_what_cannot_be_learned_is_not_tried(fixed: ClickLog) -> None:
    result = train_on_clicks(RANKER, UNLABELED, fixed, people=PEOPLE)
    assert result.check.verdict == "no"
    assert set(result.left_out) == {"pbm"}
    assert result.comparison is not None
    assert set(result.comparison.systems) == {"naive", "position", "sdbn", "people"}
    with pytest.warns(UserWarning, match="Position bias cannot be learned from this log"):
        result = train_on_clicks(RANKER, UNLABELED, fixed, position_bias="position")
    assert result.chosen == "position"


def test_lightgbms_own_parameter_passes_through(fixed: ClickLog) -> None:
    bias = []
    for regularization in (0.0, 100.0):
        ranker = TreeRanker(
            "lambdarank", n_estimators=5, lambdarank_position_bias_regularization=regularization
        )
        with pytest.warns(UserWarning, match="Position bias cannot be learned from this log"):
            result = train_on_clicks(ranker, UNLABELED, fixed, position_bias="position")
        bias.append(np.abs(list(result.ranker.position_bias_.values())).max())
    assert bias[1] < bias[0] / 10
    assert train_on_clicks(ranker, UNLABELED, fixed, position_bias="naive").ranker is ranker


def test_equal_searches_are_one_and_all_are_counted(tmp_path: Path) -> None:
    rows = {
        "search_id": [*"aabbccddee"], "query": ["0"] * 8 + ["x"] * 2,
        "document_id": ["d0", "d1"] * 4 + ["d0", "d1"], "rank": [1, 2] * 5,
        "clicked": [1, 0, 1, 0, 0, 1, 0, 0, 1, 0],
    }  # fmt: skip
    log = import_clicks(rows, tmp_path / "log")
    taken = clicked_searches(log, DATA)
    assert taken.counts == {
        "searches": 5, "without features": 1, "without a preference": 1, "taken": 3,
    }  # fmt: skip
    assert sorted(zip(taken.weights, taken.data.labels[0::2], strict=True)) == [(1, 0), (2, 1)]
    assert taken.data.features[:2].tolist() == X[:2].tolist()
    assert taken.rank.tolist() == [1, 2, 1, 2]
    named = clicked_searches(log, DATA, names={"x": "0"})
    assert named.counts["without features"] == 4
    with pytest.raises(DataError, match="no search shows documents of the features"):
        clicked_searches(log, DATA, names={"y": "0"})


def test_held_out_queries_are_not_trained_on(swapped: ClickLog) -> None:
    taken = clicked_searches(swapped, DATA)
    left = taken.without(np.arange(100))
    assert set(left.query.tolist()) <= set(range(100, QUERIES))
    assert left.data.rows == len(left.rank)
    assert len(left.weights) == len(left.data)
    assert taken.without(np.array([QUERIES])) is taken


def test_refusals(swapped: ClickLog) -> None:
    with pytest.raises(ArgumentError, match="position_bias is 'magic'"):
        train_on_clicks(RANKER, DATA, swapped, position_bias="magic")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="nobody judged"):
        train_on_clicks(RANKER, DATA, swapped, position_bias="people")
    blank = Dataset.from_arrays(X, Y, group=[SIZE] * QUERIES)
    with pytest.raises(DataError, match="no document ids"):
        train_on_clicks(RANKER, blank, swapped)


def test_the_command(swapped: ClickLog, tmp_path: Path) -> None:
    write_parquet(UNLABELED, tmp_path / "features.parquet")
    write_qrels(PEOPLE, tmp_path / "human.qrels")
    command = ("train", tmp_path / "features.parquet", tmp_path / "r.podium", "--clicks",
               swapped.folder, "--scorer", "linear", "--loss", "ListNet()")  # fmt: skip
    report = json.loads(succeed(*command, "--validation", tmp_path / "human.qrels", "--json"))
    bias = report["position_bias"]
    expected = train_on_clicks(RANKER, UNLABELED, swapped, people=PEOPLE)
    assert bias["chosen"] == expected.chosen
    assert [each["way"] for each in bias["ways"] if each["what"] == "chosen"] == [expected.chosen]
    assert report["clicks"]["taken"] == expected.counts["taken"]
    ranker = load_ranker(tmp_path / "r.podium")
    assert np.allclose(ranker.predict(X), expected.ranker.predict(X), rtol=1e-3, atol=1e-3)
    text = podium(*command).stderr.decode()
    assert "trained by" in text
    assert "nothing to choose by" in text
    assert "offsets of ranks" in podium(*command, "--position-bias", "position").stderr.decode()
    assert "--labels" in fail(*command, "--labels", tmp_path / "human.qrels")
    assert "--position-bias is for --clicks" in fail(*command[:3], "--position-bias", "auto")
