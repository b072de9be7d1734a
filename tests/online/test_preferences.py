"""What users preferred online, as pairs of graded rankings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.data import write_qrels, write_run
from podium.data.sources import as_judgments, as_rankings
from podium.errors import DataError
from podium.online.comparison import query_outcomes
from podium.online.planning import online_preferences
from podium.utility import DCGLearn
from tests.cli.run_podium import fail, podium

GAINS, DISCOUNTS = np.array([0, 0.9, 1.0]), np.array([1, 0.9, 0.8, 0.7])


def world(queries: int = 400, searches: int = 12) -> tuple[Any, Any, Any, dict[str, list[Any]]]:
    """Grades, two runs, and interleaved searches of users with a utility of their own."""
    rng = np.random.default_rng(3)
    grades: dict[str, dict[str, int]] = {}
    runs: list[dict[str, dict[str, float]]] = [{}, {}]
    log: dict[str, list[Any]] = {name: [] for name in ("search_id", "query", "team", "clicked")}
    for number in range(queries):
        query, documents = f"q{number}", [f"d{at}" for at in range(8)]
        labels = dict(zip(documents, rng.choice(3, 8, p=(0.5, 0.3, 0.2)).tolist(), strict=True))
        grades[query], values = labels, []
        for run in runs:
            order = rng.permutation(documents).tolist()
            run[query] = {name: float(8 - at) for at, name in enumerate(order)}
            values.append(sum(GAINS[labels[d]] * w for d, w in zip(order, DISCOUNTS, strict=False)))
        for _ in range(searches):
            new_wins = values[1] - values[0] + rng.normal(scale=0.3) > 0
            log["search_id"].append(len(log["search_id"]))
            log["query"].append(query)
            log["team"].append("new" if new_wins else "old")
            log["clicked"].append(True)
    return as_judgments(grades), *(as_rankings(run) for run in runs), log


def test_the_utility_of_users_is_learned_from_their_searches() -> None:
    judgments, old, new, log = world()
    outcomes, left_out = query_outcomes(log, pair=("old", "new"))
    assert left_out == {}
    assert sum(map(sum, outcomes.values())) == len(log["query"])
    pairs, queries, counts = online_preferences(outcomes, judgments, old, new, depth=4)
    assert queries == sorted(outcomes)
    assert counts["queries"] == 400
    assert counts["searches"] == 4800
    assert counts["documents without a grade"] == 0
    learned = DCGLearn(C=1.0).fit(pairs).learned_
    assert learned.gains == pytest.approx(GAINS, abs=0.1)
    assert learned.discounts == pytest.approx(DISCOUNTS, abs=0.1)


def test_searches_that_say_nothing_and_experiments() -> None:
    rows: dict[str, list[Any]] = {
        "search_id": [1, 1, 2, 3, 3, 4, 5], "query": ["a", "a", "a", "b", "b", "b", None],
        "team": ["new", "old", "new", "old", "old", "old", "new"],
        "clicked": [True, True, True, True, False, False, True],
        "policy": ["x"] * 7,
    }  # fmt: skip
    # Search 1 is tied, 4 has no click, 5 no query.
    named: dict[str, Any] = {"pair": ("old", "new")}
    wins, left_out = query_outcomes(rows, **named)
    assert wins == {"a": (0, 1), "b": (1, 0)}
    assert left_out == {
        f"searches left out: {reason}": 1 for reason in ("tied", "no action", "no query")
    }
    rows["policy"] = ["x", "x", "x", "y", "y", "y", "y"]
    with pytest.raises(DataError, match="2 experiments"):
        query_outcomes(rows)
    assert query_outcomes(rows, experiment="y", **named)[0] == {"b": (1, 0)}
    assert query_outcomes(rows, pair=("new", "old"), experiment="y")[0] == {"b": (0, 1)}
    rows["clicked"] = [False] * 7
    with pytest.raises(DataError, match="no query with a search"):
        query_outcomes(rows)


def test_searches_that_cannot_be_read_win_nothing() -> None:
    nan, inf = float("nan"), float("inf")
    rows: dict[str, list[Any]] = {
        "search_id": [1, 2, 3, 4, 4, 4, 5, 5], "query": [*"abcdddef"],
        "credit": [nan, inf, -1.0, 0.1, 0.2, -0.3, 1.0, 1.0], "clicked": [True] * 8,
    }  # fmt: skip
    wins, left_out = query_outcomes(rows)
    assert wins == {"c": (1, 0)}
    assert left_out == {
        "searches left out: credit is not a number": 2,
        "searches left out: several queries": 1,
        "searches left out: tied": 1,  # 0.1 + 0.2 - 0.3 is not 0 in binary
    }
    teams = {"search_id": [1, 1, 2], "query": ["a", "a", "b"], "team": ["new", "x", "old"],
             "clicked": [True] * 3}  # fmt: skip
    wins, left_out = query_outcomes(teams, pair=("old", "new"))
    assert (wins, left_out) == ({"b": (1, 0)}, {"searches left out: other team": 1})


def test_every_search_of_a_log_is_used_or_counted() -> None:
    rows: dict[str, list[Any]] = {
        "search_id": ["1", "2", "3", "4", None], "query": ["a"] * 5,
        "team": ["new", "old", None, "old", "new"], "clicked": [True, False, True, True, True],
        "policy": ["x", "x", "x", "y", "x"],
    }  # fmt: skip
    outcomes, left_out = query_outcomes(rows, experiment="x", pair=("old", "new"))
    assert outcomes == {"a": (0, 1)}
    assert left_out == {
        "searches left out: no action": 1, "searches left out: not interleaved": 1,
        "searches left out: other experiment": 1, "rows without a search id": 1,
    }  # fmt: skip


def test_what_is_left_out_is_counted() -> None:
    grades: Any = as_judgments({"a": {"x": 2, "y": 1}, "c": {"x": 1, "y": 0}})
    old = as_rankings({"a": {"y": 2.0, "z": 1.0}, "b": {"x": 1.0, "y": 0.5}})
    new = as_rankings({"a": {"x": 2.0, "y": 1.0}, "c": {"x": 1.0, "y": 0.5}})
    outcomes = {"a": (1, 2), "b": (1, 0), "c": (3, 0)}
    pairs, queries, counts = online_preferences(outcomes, grades, old, new, depth=2)
    assert queries == ["a"]
    assert counts == {
        "queries": 1, "queries without grades": 1, "queries without both runs": 1, "searches": 3,
        "searches of queries left out": 4, "documents without a grade": 1,
    }  # fmt: skip
    assert pairs.left.tolist() == [[2, 1]] * 2
    assert pairs.right.tolist() == [[1, 0]] * 2
    assert pairs.pair_weights.tolist() == [2.0, 1.0]
    halves: Any = as_judgments({"a": {"x": 0.5}})
    with pytest.raises(DataError, match="not a grade"):
        online_preferences(outcomes, halves, old, new)
    with pytest.raises(DataError, match="no query has"):
        online_preferences({"zz": (1, 1)}, grades, old, new)


def test_the_command(tmp_path: Path) -> None:
    judgments, old, new, log = world(60)
    paths = [tmp_path / name for name in ("judged.qrels", "old.run", "new.run")]
    write_qrels(judgments, paths[0])
    for run, path in zip((old, new), paths[1:], strict=True):
        write_run(run, path)
    table = tmp_path / "log.csv"
    rows = zip(*log.values(), strict=True)
    table.write_text(",".join(log) + "\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))
    out = tmp_path / "pairs.jsonl"
    done = podium("online", "preferences", table, *paths, "-o", out, "--pair", "old,new")
    assert done.returncode == 0, done.stderr
    assert b"720" in done.stderr  # searches
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(line.get("weight", 1.0) for line in lines) == 720
    assert {line["query_id"] for line in lines} <= {f"q{number}" for number in range(60)}
    again = podium("online", "preferences", table, *paths, "-o", out, "--pair", "old,new", "--json")
    assert json.loads(again.stdout)["searches"] == 720
    learned = podium("utility", "learn", out, "--intervals", "0").stdout.decode()
    assert learned.splitlines()[-1].startswith("DCG(gains=")
    assert "has no grades" in fail(
        "online", "preferences", table, _pref(tmp_path), *paths[1:], "-o", out
    )


def _pref(folder: Path) -> Path:
    path = folder / "human.pref"
    path.write_text("q1 x y x\n")
    return path
