"""Counterfactual estimates against the formulas of Open Bandit Pipeline, spelled out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.clicks import evaluate_policy, fit_clicks, import_clicks
from podium.clicks.counterfactual import PolicyEvaluation
from podium.data import Rankings, write_run
from podium.errors import DataError
from tests.cli.run_podium import fail, succeed

QUERIES, SIZE, SEARCHES = 30, 3, 40
RANDOM = np.random.default_rng(0)
LIKED = RANDOM.random((QUERIES, SIZE))
EXAMINED = np.array([1.0, 0.6, 0.3])


def rows(
    random: np.random.Generator, *, client: bool = False, known: bool = True
) -> dict[str, Any]:
    """Return searches: half of them show documents in their order, the others in a random one."""
    kept: list[tuple[Any, ...]] = []
    for query in range(QUERIES):
        for search in range(SEARCHES):
            order = np.arange(SIZE) if random.random() < 0.5 else random.permutation(SIZE)
            for rank, document in enumerate(order):
                shown = 0.5 / SIZE + 0.5 * (document == rank)
                clicked = random.random() < EXAMINED[rank] * LIKED[query, document]
                number = query * SEARCHES + search
                kept.append((f"s{number}", f"q{query}", f"d{document}", rank + 1, bool(clicked),
                             shown, f"c{number % 60}"))  # fmt: skip
    names = ("search_id", "query", "document_id", "rank", "clicked", "propensity", "client")
    columns = {name: [row[n] for row in kept] for n, name in enumerate(names)}
    if not client:
        del columns["client"]
    if not known:
        del columns["propensity"]
    return columns


ORDER = RANDOM.permuted(np.tile(np.arange(SIZE), (QUERIES, 1)), axis=1)
TARGET = Rankings.from_columns(
    [f"q{query}" for query in range(QUERIES) for _ in range(SIZE)],
    [f"d{document}" for document in ORDER.ravel()],
    np.tile([3.0, 2.0, 1.0], QUERIES),
)
TRUTH = float(np.mean([(EXAMINED * LIKED[q, ORDER[q]]).sum() for q in range(QUERIES)]))


@pytest.mark.parametrize("known", [True, False])
def test_they_are_open_bandit_pipelines(tmp_path: Path, known: bool) -> None:
    columns = rows(np.random.default_rng(1), known=known)
    log = import_clicks(columns, tmp_path / "log")
    result = evaluate_policy(log, TARGET)
    model = fit_clicks(log, "pbm")
    table = model.labels()
    pairs = zip(table["query"].to_pylist(), table["document_id"].to_pylist(), strict=True)
    label = dict(zip(pairs, table["label"].to_pylist(), strict=True))
    # Rounds of a bandit: context, position, action, reward, pscore; as in obp.ope.estimators.
    count = len(columns["query"])
    reward = np.array(columns["clicked"], float)
    position = np.array(columns["rank"]) - 1
    queries, documents = columns["query"], columns["document_id"]
    numbers = range(count)
    asked = [f"d{ORDER[int(queries[n][1:]), position[n]]}" for n in numbers]
    if known:
        pscore = np.array(columns["propensity"])
    else:
        triples = [(queries[n], documents[n], position[n]) for n in numbers]
        often = {each: triples.count(each) for each in set(triples)}
        pscore = np.array([often[each] / SEARCHES for each in triples])
    iw = np.array([asked[n] == documents[n] for n in numbers]) / pscore
    theta = model.theta[position]
    q_hat = theta * np.array([label[queries[n], documents[n]] for n in numbers])
    q_pi = theta * np.array([label[queries[n], asked[n]] for n in numbers])
    searches = QUERIES * SEARCHES
    expected = {
        "ips": np.mean(reward * iw),
        "self_normalized": np.mean(reward * iw / iw.mean()),
        "doubly_robust": np.mean(q_pi + iw * (reward - q_hat)),
        "logged": reward.mean(),
    }
    for name, each in expected.items():
        estimate = getattr(result, name)
        assert estimate.value == pytest.approx(each * count / searches, rel=1e-9), name
        assert estimate.low < estimate.value < estimate.high
    assert result.overlap == pytest.approx((iw * q_hat).sum() / q_pi.sum())
    assert result.effective == pytest.approx(iw.sum() ** 2 / (iw**2).sum())
    assert (result.searches, result.known, result.clustered_by) == (searches, known, "query")
    # The interval of a mean over independent groups of equal size.
    sums = (reward * iw).reshape(QUERIES, -1).sum(axis=1) / SEARCHES
    half = 2.045230 * sums.std(ddof=1) / np.sqrt(QUERIES)
    assert result.ips.high - result.ips.value == pytest.approx(half, rel=1e-5)


@pytest.mark.slow
def test_they_find_the_truth_and_cover_it(tmp_path: Path) -> None:
    covered = {"ips": 0, "self_normalized": 0, "doubly_robust": 0}
    values: dict[str, list[float]] = {name: [] for name in covered}
    for number in range(24):
        columns = rows(np.random.default_rng(100 + number), client=True)
        log = import_clicks(columns, tmp_path / str(number))
        result = evaluate_policy(log, TARGET)
        assert result.clustered_by == "client"
        for name in covered:
            estimate = getattr(result, name)
            values[name].append(estimate.value)
            covered[name] += estimate.low <= TRUTH <= estimate.high
    for name, each in values.items():
        error = np.std(each, ddof=1) / np.sqrt(len(each))
        assert abs(np.mean(each) - TRUTH) < 4 * error + 0.003, name
        assert covered[name] >= 19, covered  # 95 % of 24 are 22.8: fewer once in 500 runs
    assert np.std(values["doubly_robust"]) < np.std(values["ips"])


def test_no_overlap_is_refused(tmp_path: Path) -> None:
    columns = rows(np.random.default_rng(2), known=False)
    fixed = import_clicks(
        columns | {"document_id": [f"d{rank - 1}" for rank in columns["rank"]]}, tmp_path / "fixed"
    )
    with pytest.raises(
        DataError, match="of the clicks that are expected of this ranking, and 98% are needed"
    ):
        evaluate_policy(fixed, TARGET)
    other = Rankings.from_columns(["x"], ["d0"], [1.0])
    with pytest.raises(DataError, match="for queries that are ranked"):
        evaluate_policy(fixed, other)


def test_names_and_queries_without_a_ranking(tmp_path: Path) -> None:
    log = import_clicks(rows(np.random.default_rng(3)), tmp_path / "log")
    part = TARGET.select(np.arange(20))
    result = evaluate_policy(log, part)
    assert isinstance(result, PolicyEvaluation)
    assert (result.searches, result.left_out) == (20 * SEARCHES, 10 * SEARCHES)
    renamed = Rankings.from_columns(
        ["n" + name for name in part.query_id_of_row().to_pylist()], part.document_ids, part.scores
    )
    names = {f"q{query}": f"nq{query}" for query in range(QUERIES)}
    assert evaluate_policy(log, renamed, names=names) == result


def test_the_command(tmp_path: Path) -> None:
    log = import_clicks(rows(np.random.default_rng(4)), tmp_path / "log")
    write_run(TARGET, tmp_path / "new.run")
    expected = evaluate_policy(log, TARGET)
    report = json.loads(succeed("clicks", "evaluate", log.folder, tmp_path / "new.run", "--json"))
    assert report["ips"]["value"] == pytest.approx(expected.ips.value)
    assert report["overlap"] == pytest.approx(expected.overlap)
    text = succeed("clicks", "evaluate", log.folder, tmp_path / "new.run")
    assert "doubly robust" in text
    assert f"{expected.doubly_robust.value:.4f}" in text
    assert "is not" in fail("clicks", "evaluate", tmp_path, tmp_path / "new.run")
