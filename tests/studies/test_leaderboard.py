"""The leaderboard on small data sets of its layout: what it runs, resumes and writes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, write_letor
from podium.errors import ArgumentError, PodiumError
from podium.studies.collections import COLLECTIONS, at_hand, graded, load_folds
from podium.studies.entries import ENTRIES
from podium.studies.leaderboard import Plan, Task, read_result, run
from podium.studies.leaderboard_page import page
from podium.studies.leaderboard_plots import draw
from podium.studies.provenance import UNNAMED, code_name
from podium.studies.standings import collect
from tests.cli.run_podium import PODIUM
from tests.data.shared_files import shared
from tests.rankers.made_up import made_up

SOME = ("AdaRank", "ListNet", "FocusedNet", "RankNet", "trees ListNet")
PEERS = ("LightGBM lambdarank", "XGBoost rank:ndcg", "CatBoost YetiRank")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an MQ2008 of eighty queries."""
    found = tmp_path_factory.mktemp("data")
    target = found / "letor" / "MQ2008"
    target.mkdir(parents=True)
    data = made_up(80, 15)
    for part in range(5):
        write_letor(
            data.select(np.arange(part * 16, part * 16 + 16)), target / f"S{part + 1}.txt.gz"
        )
    return found


def small_plan(folder: Path, results: Path) -> Plan:
    return Plan(folder, results, entries=(*SOME, *PEERS), truths=("top-k",), folds=1, quick=True)


def test_results_are_written_once_and_make_a_page(folder: Path, tmp_path: Path) -> None:
    plan = small_plan(folder, tmp_path / "results")
    told: list[int] = []
    tasks = run(plan, lambda done, _total, _task: told.append(done))
    assert len(tasks) == 8
    assert told == list(range(9))
    written = {task: task.file(plan.results).stat().st_mtime_ns for task in tasks}
    gone = tasks[3].file(plan.results)
    gone.unlink()
    told.clear()
    run(plan, lambda done, _total, _task: told.append(done))
    assert told == [7, 8]
    assert gone.exists()
    for task in tasks:
        if task != tasks[3]:
            assert task.file(plan.results).stat().st_mtime_ns == written[task]
    standings = collect(tasks, plan.results)
    text = page(standings, "Measured in a test.")
    for entry in (*SOME, *PEERS):
        assert entry in text
    assert "Measured in a test." in text
    pictures = draw(standings, tmp_path / "images")
    assert [picture.name for picture in pictures] == ["leaderboard-top-k.svg"]


def test_a_task_tells_the_values_of_its_test_queries(folder: Path, tmp_path: Path) -> None:
    plan = Plan(folder, tmp_path, entries=("ListNet",), truths=("top-k",), folds=1, quick=True)
    (task,) = run(plan)
    result = read_result(task, tmp_path)
    fold = load_folds("MQ2008", folder)[0]
    assert result.query_ids == fold.test.query_ids.to_pylist()
    assert all(len(values) == len(fold.test) for values in result.values.values())
    assert 0.5 < np.mean(result.values["kNDCG(k=10)@10"]) <= 1
    assert result.trainings == 1
    (standing,) = collect([task], tmp_path)
    assert standing.rows["ListNet"].mean("kERR(k=10)") == pytest.approx(
        np.mean(result.values["kERR(k=10)"])
    )


def test_results_name_the_code_that_made_them(folder: Path, tmp_path: Path) -> None:
    plan = Plan(folder, tmp_path, entries=("ListNet",), truths=("top-k",), folds=1, quick=True)
    (task,) = run(plan)
    assert read_result(task, tmp_path).code == code_name()
    text = page(collect([task], tmp_path), "Measured in a test.")
    assert f"1 by {code_name()}." in text
    # Results of other code are kept, counted and marked; so are those of before they were named.
    content = json.loads(task.file(tmp_path).read_bytes())
    for fold, code in ((1, "podium 9 (source x)"), (2, None)):
        other = {name: value for name, value in content.items() if name != "code"}
        named = other if code is None else other | {"code": code}
        Task(task.collection, task.truth, task.entry, fold).file(tmp_path).write_text(
            json.dumps(named)
        )
    tasks = [Task(task.collection, task.truth, task.entry, fold) for fold in range(3)]
    text = page(collect(tasks, tmp_path), "Measured in a test.")
    assert f"1 by {code_name()}; 1 by podium 9 (source x) [1]; 1 by {UNNAMED} [2]." in text
    assert "ListNet (model) [1] [2]" in text


def test_folds_share_no_query(folder: Path) -> None:
    for fold in load_folds("MQ2008", folder):
        parts = [
            set(part.query_ids.to_pylist()) for part in (fold.train, fold.validation, fold.test)
        ]
        assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
        assert [len(part) for part in parts] == [48, 16, 16]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="no data set"):
        list(Plan(tmp_path, tmp_path).tasks())
    with pytest.raises(ArgumentError, match="MQ2007"):
        load_folds("MQ2009", tmp_path)


def test_files_of_entries_differ() -> None:
    files = {Task("MQ2007", "top-k", entry, 0).file(Path()) for entry in ENTRIES}
    assert len(files) == len(ENTRIES)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_shared_collections_have_five_folds(name: str) -> None:
    root = shared("README.md").parent
    assert name in at_hand(root)
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
def test_a_killed_leaderboard_goes_on(folder: Path, tmp_path: Path) -> None:
    """What was written before the kill is whole, and is not done again."""
    text = tmp_path / "docs" / "page.md"
    command = [PODIUM, "study", "leaderboard", folder, "--quick"]
    command += ["--results", tmp_path / "results", "--page", text]
    process = subprocess.Popen(command, start_new_session=True)
    results = tmp_path / "results" / "quick"
    deadline = time.monotonic() + 600
    while len(list(results.rglob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.read_bytes() for path in results.rglob("*.json")}
    assert len(before) >= 3
    assert not (tmp_path / "docs").exists()
    for content in before.values():
        json.loads(content)
    subprocess.run(command, check=True, timeout=900)
    assert {path: path.read_bytes() for path in before} == before
    assert "RankSVM" in text.read_text()
    assert (tmp_path / "images" / "leaderboard-graded.svg").exists()
