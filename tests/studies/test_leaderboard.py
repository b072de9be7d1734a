"""The leaderboard on small data sets of its layout: what it runs, resumes and writes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, write_letor
from podium.errors import ArgumentError, PodiumError
from studies.collections import COLLECTIONS, available, graded, load_folds
from studies.leaderboard import (
    CHOSEN_BY,
    LeaderboardPlan,
    LeaderboardTask,
    read_leaderboard,
    results_file,
    run,
)
from studies.leaderboard_models import ENTRIES, Truth
from studies.leaderboard_page import leaderboard_page, leaderboard_tables
from studies.leaderboard_plots import draw_leaderboard
from studies.provenance import leaderboard_code
from studies.standings import collect
from tests.data.shared_files import shared
from tests.rankers.made_up import made_up

ROOT = Path(__file__).parents[2]
SOME = ("AdaRank", "ListNet", "FocusedNet", "RankNet", "trees ListNet")
PEERS = ("LightGBM lambdarank", "XGBoost rank:ndcg", "CatBoost YetiRank")


def write_folds(data: Dataset, root: Path) -> Path:
    """A data folder that has a data set as MQ2008."""
    target = root / "letor" / "MQ2008"
    target.mkdir(parents=True)
    for part, queries in enumerate(np.split(np.arange(len(data)), 5), 1):
        write_letor(data.select(queries), target / f"S{part}.txt.gz")
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an MQ2008 of eighty queries."""
    return write_folds(made_up(80, 15), tmp_path_factory.mktemp("data"))


def small_plan(folder: Path, results: Path, *entries: str) -> LeaderboardPlan:
    return LeaderboardPlan(
        folder, results, entries=entries, ground_truths=("top-k",), folds=1, quick=True
    )


def test_results_are_computed_once_and_make_a_page(folder: Path, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    results = tmp_path / "results"
    run(small_plan(folder, results, *SOME), lambda *state: reported.append(state))
    assert reported == [(done, 5) for done in range(6)]
    first = read_leaderboard(results, "MQ2008", "top-k")
    reported.clear()
    # Seconds differ with every run: those of the first run are still there.
    tasks = run(small_plan(folder, results, *SOME, *PEERS), lambda *state: reported.append(state))
    assert reported == [(done, 8) for done in range(5, 9)]
    second = read_leaderboard(results, "MQ2008", "top-k")
    assert set(second) == set(tasks)
    assert {task: second[task] for task in first} == first
    standings = collect(tasks, results)
    tables = leaderboard_tables(standings)
    text = leaderboard_page(standings, tables, "Measured in a test.")
    assert "[MQ2008-top-k](leaderboard/MQ2008-top-k.csv)" in text
    lines = tables["MQ2008-top-k"].csv().splitlines()
    assert lines[0].startswith("entry,family,kNDCG@1,")
    assert {line.split(",")[0] for line in lines[1:]} == {*SOME, *PEERS}
    ranked = [row[5] for row in tables["MQ2008-top-k"].rows]
    assert ranked == sorted(ranked, reverse=True)
    assert f"{tables['MQ2008-top-k'].rows[0][0]} {ranked[0]}" in text
    assert "Measured in a test." in text
    pictures = draw_leaderboard(standings, tmp_path / "images")
    assert [picture.name for picture in pictures] == ["leaderboard-top-k.svg"]
    # A page of some data sets says how it was made, and has pictures of its own.
    text = leaderboard_page(standings, tables, "Measured in a test.", "small")
    assert text.startswith("# Leaderboard: MQ2008\n")
    assert "studies leaderboard DATA --only MQ2008 --page docs/studies/small.md\n" in text
    assert "(../images/small-top-k.svg)" in text
    pictures = draw_leaderboard(standings, tmp_path / "images", "small")
    assert [picture.name for picture in pictures] == ["small-top-k.svg"]


def test_a_result_has_the_values_of_its_test_queries(folder: Path, tmp_path: Path) -> None:
    (task,) = run(small_plan(folder, tmp_path, "ListNet"))
    result = read_leaderboard(tmp_path, "MQ2008", "top-k")[task]
    fold = load_folds("MQ2008", folder)[0]
    assert result.query_ids == fold.test.query_ids.to_pylist()
    assert all(len(values) == len(fold.test) for values in result.values.values())
    assert 0.5 < np.mean(result.values["kNDCG(k=10)@10"]) <= 1
    assert result.trainings == 1
    assert set(result.parameters) == set(ENTRIES["ListNet"].grid("top-k"))
    (standing,) = collect([task], tmp_path)
    assert standing.rows["ListNet"].mean("kERR(k=10)") == pytest.approx(
        np.mean(result.values["kERR(k=10)"])
    )


@pytest.mark.parametrize("truth", ["graded", "top-k"])
def test_points_of_the_curves_over_beta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truth: Truth
) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "1")  # in this process, where the data set can be named
    monkeypatch.setattr("studies.leaderboard.CURVES_ON", ("MQ2008",))
    # More relevant documents than a top k has: FocusedNet wants these in an order.
    folder = write_folds(made_up(20, 50), tmp_path)
    plan = small_plan(folder, tmp_path, "FocusedNet beta 0.5")
    (task,) = run(replace(plan, ground_truths=(truth,), quick=False))
    result = read_leaderboard(tmp_path, "MQ2008", truth)[task]
    assert set(result.parameters) == {"alpha"}
    assert 0.5 < np.mean(result.values[CHOSEN_BY[truth]]) < 1


def written(tasks: Iterable[LeaderboardTask], folder: Path) -> str:
    """Return the page and all its tables."""
    standings = collect(tasks, folder)
    tables = leaderboard_tables(standings)
    page = leaderboard_page(standings, tables, "Measured in a test.")
    return "\n".join([page, *(table.csv() for table in tables.values())])


def test_results_name_the_code_that_computed_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "1")  # in this process, where the name can be changed
    (task,) = run(small_plan(folder, tmp_path, "ListNet"))
    assert read_leaderboard(tmp_path, "MQ2008", "top-k")[task].code == leaderboard_code()
    text = written([task], tmp_path)
    assert f"1 by {leaderboard_code()}." in text
    # Results of other code are kept, counted and marked.
    monkeypatch.setattr("studies.leaderboard.leaderboard_code", lambda: "podium 9 (source x)")
    tasks = run(replace(small_plan(folder, tmp_path, "ListNet"), folds=3))
    text = written(tasks, tmp_path)
    assert f"2 by podium 9 (source x); 1 by {leaderboard_code()} [1]." in text
    assert "ListNet [1],model," in text


def test_an_entry_counts_when_all_its_folds_have_results(folder: Path, tmp_path: Path) -> None:
    (task,) = run(small_plan(folder, tmp_path, "ListNet"))
    assert collect([task, replace(task, fold=1)], tmp_path) == []


def test_folds_share_no_query(folder: Path) -> None:
    for fold in load_folds("MQ2008", folder):
        parts = [
            set(part.query_ids.to_pylist()) for part in (fold.train, fold.validation, fold.test)
        ]
        assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
        assert [len(part) for part in parts] == [48, 16, 16]


def test_missing_data_sets_are_reported(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="no data set"):
        list(LeaderboardPlan(tmp_path, tmp_path).tasks())
    with pytest.raises(ArgumentError, match="MQ2007"):
        load_folds("MQ2009", tmp_path)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_shared_collections_have_five_folds(name: str) -> None:
    root = shared("README.md").parent
    assert name in available(root)
    folds = load_folds(name, root)
    tests = [set(fold.test.query_ids.to_pylist()) for fold in folds]
    assert len(folds) == 5
    assert len(set.union(*tests)) == sum(map(len, tests))  # every query is tested once
    for fold in folds:
        seen = set(fold.train.query_ids.to_pylist()) | set(fold.validation.query_ids.to_pylist())
        assert not seen & set(fold.test.query_ids.to_pylist())
    labels = graded(name, folds[0].test).labels
    assert set(np.unique(labels)) <= {0, 1, 2, 3, 4}


def test_yandex_grades_are_the_nearest() -> None:
    data = Dataset.from_arrays(np.zeros((4, 1)), labels=[0.0, 0.09, 0.3, 0.61], group=[4])
    assert graded("Yandex", data).labels.tolist() == [0, 1, 3, 4]


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_leaderboard_continues(folder: Path, tmp_path: Path) -> None:
    """Results that were written before the kill are not computed again."""
    text = tmp_path / "docs" / "page.md"
    command = [sys.executable, "-m", "studies", "leaderboard", folder, "--quick"]
    command += ["--results", tmp_path, "--page", text]
    process = subprocess.Popen(command, start_new_session=True, cwd=ROOT)
    results = tmp_path / "leaderboard" / "quick"
    deadline = time.monotonic() + 600
    while len(finished := read_leaderboard(results, "MQ2008", "graded")) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "docs").exists()
    subprocess.run(command, check=True, timeout=900, cwd=ROOT)
    after = read_leaderboard(results, "MQ2008", "graded")
    assert {task: after[task] for task in finished} == finished
    assert results_file(results, "MQ2008", "top-k").exists()
    assert "RankSVM" in text.read_text()
    assert (tmp_path / "images" / "page-graded.svg").exists()
