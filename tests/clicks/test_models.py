"""Click models against brute force, formulas and the users that they describe."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from podium.clicks import ClickLog, SimulatedUser, fit_clicks, import_clicks, simulate_clicks
from podium.data import Dataset
from podium.errors import ArgumentError, DataError


def log_of(folder: Path, searches: list[tuple[str, str, list[int]]]) -> ClickLog:
    """A log of searches: the query, the documents as letters, and the clicks."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("search_id", "query", "document_id", "rank", "clicked")
    }
    for number, (query, documents, clicks) in enumerate(searches):
        for rank, (document, clicked) in enumerate(zip(documents, clicks, strict=True), 1):
            for name, value in zip(
                rows, (f"s{number}", query, document, rank, clicked), strict=True
            ):
                rows[name].append(value)
    return import_clicks(rows, folder / "log")


def labels(model: Any) -> dict[tuple[str, str], dict[str, float]]:
    return {(row["query"], row["document_id"]): row for row in model.labels().to_pylist()}


SEARCHES = [
    ("q", "abc", [0, 1, 0]), ("q", "bac", [1, 0, 1]), ("q", "abc", [1, 0, 0]),
    ("q", "cab", [0, 0, 0]), ("r", "ab", [1, 1]), ("r", "ba", [0, 1]), ("r", "ab", [1, 0]),
]  # fmt: skip


def beta_interval(clicks: int, shown: int, prior: tuple[float, float]) -> tuple[float, ...]:
    posterior = stats.beta(prior[0] + clicks, prior[1] + shown - clicks)
    return float(posterior.mean()), float(posterior.ppf(0.025)), float(posterior.ppf(0.975))


# How often each pair is examined and clicked, counted by hand from SEARCHES.
PAIRS = [("q", "a"), ("q", "b"), ("q", "c"), ("r", "a"), ("r", "b")]
EXAMINED = {
    "ctr": [(1, 4), (2, 4), (1, 4), (3, 3), (1, 3)],
    "cascade": [(1, 3), (2, 3), (0, 1), (3, 3), (0, 1)],  # to the first click, or all without one
    "dcm": [(1, 4), (2, 3), (1, 2), (3, 3), (1, 2)],  # to the last click, or all without one
}


@pytest.mark.parametrize("name", ["ctr", "cascade", "dcm"])
def test_closed_forms_are_posteriors_of_what_was_examined(tmp_path: Path, name: Any) -> None:
    model = fit_clicks(log_of(tmp_path, SEARCHES), name)
    result = labels(model)
    for pair, (clicks, shown) in zip(PAIRS, EXAMINED[name], strict=True):
        row = result[pair]
        expected = beta_interval(clicks, shown, model.prior)
        assert (row["label"], row["low"], row["high"]) == pytest.approx(expected, abs=1e-2)
    assert sum(row["shown"] for row in result.values()) == 4 * 3 + 3 * 2


def test_sdbn_multiplies_attraction_and_satisfaction(tmp_path: Path) -> None:
    model = fit_clicks(log_of(tmp_path, SEARCHES), "sdbn")
    a, b = model.parameters["satisfaction_prior"]
    # b was clicked twice for q, and once of these it was the last click.
    attracted = (model.prior[0] + 2) / (sum(model.prior) + 3)
    satisfied = (a + 1) / (a + b + 2)
    row = labels(model)["q", "b"]
    assert row["label"] == pytest.approx(attracted * satisfied, abs=5e-3)
    assert row["low"] < row["label"] < row["high"] <= 1


def test_dcm_goes_on_after_clicks_that_are_not_the_last(tmp_path: Path) -> None:
    model = fit_clicks(log_of(tmp_path, SEARCHES), "dcm")
    # Clicks at ranks 1, 2, 3: 4, 3, 1; last clicks: 2, 3, 1.
    assert model.parameters["continuation"][:3] == pytest.approx([1 - 2 / 4, 1 - 3 / 3, 1 - 1 / 1])


def test_coec_counts_all_impressions_at_the_best_rank(tmp_path: Path) -> None:
    model = fit_clicks(log_of(tmp_path, SEARCHES), "coec")
    ctr = {1: 4 / 7, 2: 3 / 7, 3: 1 / 4}
    result = labels(model)
    assert result["q", "b"]["label"] == pytest.approx(2 / (4 * ctr[1]))
    assert result["q", "c"]["label"] == pytest.approx(1 / (4 * ctr[1]))
    assert result["r", "b"]["label"] == pytest.approx(1 / (3 * ctr[1]))


def test_the_likelihood_is_the_sum_over_all_that_was_not_seen(tmp_path: Path) -> None:
    """By brute force: each pattern of examination, integrated over attractiveness."""
    log = log_of(tmp_path, SEARCHES)
    model = fit_clicks(log, "pbm-em")
    assert model.examination is not None
    theta = model.examination.values
    prior = stats.beta(*model.prior)
    total = 0.0
    for query, document in PAIRS:
        seen = [
            (documents.index(document), clicks[documents.index(document)])
            for each, documents, clicks in SEARCHES
            if each == query
        ]

        def likelihood(alpha: float, seen: Any = seen) -> float:
            result = 0.0
            for examined in product([0, 1], repeat=len(seen)):
                term = 1.0
                for looked, (rank, clicked) in zip(examined, seen, strict=True):
                    term *= theta[rank] if looked else 1 - theta[rank]
                    term *= (alpha if clicked else 1 - alpha) if looked else 1 - clicked
                result += term
            return result

        value, _ = integrate.quad(lambda x: likelihood(x) * prior.pdf(x), 0, 1)
        total += np.log(value)
    assert model.log_likelihood == pytest.approx(total, abs=0.02)


def test_moved_documents_give_the_ratio_of_their_clicks(tmp_path: Path) -> None:
    """Examination of two ranks shown equally often is the ratio of clicks on what moved."""
    searches = [("q", "ab", [1, 0])] * 30 + [("q", "ba", [0, 1])] * 12 + [("q", "ba", [0, 0])] * 18
    searches += [("stays", "xy", [1, 0])] * 50
    model = fit_clicks(log_of(tmp_path, searches), "pbm")
    assert model.examination is not None
    assert model.examination.values[1] == pytest.approx(12 / 30, rel=0.02)
    low, high = model.examination.low[1], model.examination.high[1]
    assert low < 12 / 30 < high


def judged(queries: int, documents: int, seed: int = 0) -> Dataset:
    random = np.random.default_rng(seed)
    rows = queries * documents
    grades = random.choice(4, rows, p=[0.5, 0.25, 0.15, 0.1])
    features = np.column_stack([grades + random.normal(0, 1, rows), random.random(rows)])
    return Dataset.from_arrays(features, grades, group=[documents] * queries)


@pytest.mark.parametrize("name", ["pbm", "pbm-em"])
def test_examination_and_labels_are_recovered(tmp_path: Path, name: Any) -> None:
    user = SimulatedUser("pbm", eta=1, noise=0)
    random = np.random.default_rng(0)
    attractive = random.beta(1, 4, 1200)
    attractive[0] = 1.0
    labels = np.log2(1 + attractive)  # whose gain is the attractiveness
    order = attractive + random.normal(0, 0.1, 1200)
    data = Dataset.from_arrays(order[:, None], labels, group=[12] * 100)
    log = simulate_clicks(
        data, tmp_path / "log", user=user, policy="1", searches=60, depth=6, shuffled=0.3
    )
    model = fit_clicks(log, name)
    examination = model.examination
    assert examination is not None
    assert examination.values == pytest.approx(user.examination(6), rel=0.15)
    assert (examination.low <= user.examination(6)).sum() >= 5
    assert (examination.high >= user.examination(6)).sum() >= 5
    table = model.labels()
    truth = {
        (query, str(number)): value
        for query, each in zip(data.query_ids.to_pylist(), data, strict=True)
        for number, value in enumerate(user.attractiveness(each.labels, 1))
    }
    inside = [
        row["low"] <= truth[row["query"], row["document_id"]] <= row["high"]
        for row in table.to_pylist()
    ]
    assert 0.92 < np.mean(inside) < 0.98


def test_ubm_knows_ranks_and_the_click_before(tmp_path: Path) -> None:
    data = judged(60, 6)
    log = simulate_clicks(data, tmp_path / "log", searches=60, depth=4)
    model = fit_clicks(log, "ubm", depth=4)
    table = model.parameters["examination"]
    assert table.shape == (4, 5)
    assert table[0, 0] == 1
    # Users of a position-based model do not care about the click before.
    user = SimulatedUser()
    assert table[1, :2] == pytest.approx(user.examination(4)[1], rel=0.2)
    assert table[3, :4] == pytest.approx(user.examination(4)[3], rel=0.35)


def test_sums_over_files_are_those_of_one_file(tmp_path: Path, monkeypatch: Any) -> None:
    data = judged(30, 6)
    one = simulate_clicks(data, tmp_path / "one", searches=20)
    monkeypatch.setattr("podium.clicks.importing._SHARD_ROWS", 300)
    many = simulate_clicks(data, tmp_path / "many", searches=20)
    assert len(many.files) > 5 > len(one.files)
    for name in ("pbm", "pbm-em", "sdbn"):
        left, right = fit_clicks(one, name), fit_clicks(many, name)
        assert left.log_likelihood == pytest.approx(right.log_likelihood, rel=1e-6)
        order = [("query", "ascending"), ("document_id", "ascending")]
        first, second = (each.labels().sort_by(order) for each in (left, right))
        assert np.allclose(first["label"], second["label"], atol=1e-4)


@pytest.mark.parametrize("user", ["cascade", "dbn"])
def test_simulated_users_stop(tmp_path: Path, user: Any) -> None:
    log = simulate_clicks(judged(20, 8), tmp_path / "log", user=user, searches=50)
    with log.sql() as connection:
        (most,) = connection.sql(
            "SELECT max(n) FROM (SELECT sum(clicked::int) AS n FROM clicks GROUP BY search_id)"
        ).fetchall()[0]
    assert most == 1 if user == "cascade" else most > 1


def test_a_simulation_is_the_same_again(tmp_path: Path) -> None:
    data = judged(5, 5)
    logs = [
        simulate_clicks(data, tmp_path / name, searches=5, random_state=seed, policy="1", depth=3)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    rows = []
    for log in logs:
        with log.sql() as connection:
            rows.append(connection.sql("SELECT * FROM clicks ORDER BY ALL").fetchall())
    assert rows[0] == rows[1] != rows[2]
    with logs[0].sql() as connection:
        shown = connection.sql(
            "SELECT document_id FROM clicks WHERE query = '0' AND rank = 1"
        ).fetchall()
    assert {int(document) for (document,) in shown} == {int(np.argmax(data.features[:5, 0]))}


def test_what_cannot_be_fitted_is_refused(tmp_path: Path) -> None:
    log = log_of(tmp_path, [("q", "ab", [0, 0])])
    with pytest.raises(DataError, match="has no click"):
        fit_clicks(log)
    with pytest.raises(ArgumentError, match="no click model 'x'"):
        fit_clicks(log, "x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no user 'x'"):
        SimulatedUser("x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="trust is 2"):
        SimulatedUser(trust=2)
    with pytest.raises(ArgumentError, match="out of range"):
        simulate_clicks(judged(1, 2), tmp_path / "s", searches=0)
    with pytest.raises(ArgumentError, match="scores for 2 rows"):
        simulate_clicks(judged(1, 2), tmp_path / "s", policy=[1.0])
