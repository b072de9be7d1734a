"""The Python client against a real server, and training on what it fetches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, read_jsonl, read_qrels, write_letor
from podium.studio.accounts.service import new_api_token
from podium.studio.client import StudioClient, StudioError, project_at
from podium.studio.demo import demo_queries
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from tests.studio.factories import make_people
from tests.studio.server import serving


@pytest.fixture
def address(database, tmp_path):
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


@pytest.fixture
def studio(engine, address, monkeypatch):
    (ann,) = make_people(engine, 1, admin=True)
    secret = in_transaction(engine, lambda c: new_api_token(c, ann, "test", 1))
    monkeypatch.setenv("PODIUM_STUDIO_TOKEN", secret)
    with StudioClient(address) as found:
        yield found


def longer(asked):
    """Prefer the longer text, which is an order."""
    one, other = (len(side[0].text) for side in asked.sides)
    return "left" if one > other else "tie" if one == other else "right"


def test_a_project_from_import_to_labels(studio, tmp_path):
    project = studio.create_project("Demo", k=2)
    assert project.import_candidates(demo_queries())["added"] == 3
    assert [each.id for each in studio.projects()] == [project.id]
    asked = project.next()
    assert asked.query == "keep bread fresh"
    assert project.next().token == asked.token
    following = project.answer(asked, "tie", seconds=3)
    again = project.undo()
    assert {side[0].reference for side in again.sides} == {
        side[0].reference for side in asked.sides
    }
    assert following.token != again.token
    count = project.judge(longer)
    assert count > 10
    assert project.refresh().about["progress"]["share"] == 1
    assert project.next() is None
    labels = project.labels(only_done=True)
    for entry in demo_queries():
        best = max(entry.candidates, key=lambda each: len(each.text))
        found = labels.select([entry.query_id])
        names = dict(zip(found.document_ids.to_pylist(), found.labels.tolist(), strict=True))
        assert names[best.document_id] == 2
    assert project.preferences().rows == count
    target = tmp_path / "labels.jsonl"
    assert project.export(target, "labels", "jsonl")["queries"] == 3
    assert len(list(read_jsonl(target))) == 3
    project.change(paused=True)
    assert studio.project(project.id).about["paused"]
    project.delete()
    with pytest.raises(StudioError, match="project does not exist") as refused:
        project.refresh()
    assert refused.value.status == 404


def test_files_of_every_kind(studio, tmp_path):
    run = tmp_path / "run"
    run.write_text("q1 Q0 a 1 2 bm25\nq1 Q0 b 2 1 bm25\n")
    documents, queries, gold = (tmp_path / name for name in ("documents", "queries", "gold"))
    documents.write_text("a\tText of a\nb\tText of b\n")
    queries.write_text("q1\tred shoes\n")
    gold.write_text(json.dumps({"query_id": "q1", "left": "a", "right": "b", "outcome": 1}))
    project = studio.create_project("Shoes", k=1)
    assert project.import_runs([run], documents, queries, depth=2)["added"] == 1
    assert project.import_gold(gold) == {"gold": 1, "gold_contradicting": 0}
    with pytest.raises(StudioError, match="is not JSON"):
        project.import_candidates(run)
    with pytest.raises(StudioError, match="may not call"):
        project.import_from_engine(url="http://127.0.0.1:1/", queries="q\tx")


def test_grades_and_html(studio, tmp_path):
    project = studio.create_project("Grades", mode="grades")
    entry = {
        "query_id": "q1",
        "query": "fox",
        "candidates": [{"document_id": f"d{n}", "html": f"<p>fox {n}</p>"} for n in range(2)],
    }
    (tmp_path / "c.jsonl").write_text(json.dumps(entry))
    project.import_candidates(tmp_path / "c.jsonl")
    project.judge(lambda asked: "good" if "fox</mark> 1" in asked.sides[0][0].text else "bad")
    assert sorted(project.labels().labels.tolist()) == [0, 2]


def test_refusals_are_worded(studio, address, monkeypatch):
    with pytest.raises(StudioError, match="k: Input should be"):
        studio.create_project("x", k=0)
    with (
        pytest.raises(StudioError, match="not valid or has expired"),
        StudioClient(address, "x") as other,
    ):
        other.projects()
    with pytest.raises(StudioError, match="cannot be reached"):
        StudioClient("http://127.0.0.1:1", "x", timeout=1).create_project("x")
    monkeypatch.delenv("PODIUM_STUDIO_TOKEN")
    with pytest.raises(StudioError, match="PODIUM_STUDIO_TOKEN"):
        StudioClient(address)
    for wrong in ("https://judging.example.org", "#7", "https://judging.example.org#x"):
        with pytest.raises(StudioError, match="does not name a project"):
            project_at(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("database_kind", ["postgresql"])
def test_train_reads_a_projects_labels(studio, address, tmp_path):
    project = studio.create_project("Demo", k=2)
    project.import_candidates(demo_queries())
    project.judge(longer)
    rows = [
        (entry.query_id, each.document_id, len(each.text))
        for entry in demo_queries()
        for each in entry.candidates
    ]
    queries, documents, lengths = zip(*rows, strict=True)
    features = np.array([np.array(lengths) / max(lengths), np.arange(len(rows)) % 5]).T
    data = Dataset.from_arrays(features, np.zeros(len(rows)), qid=queries, document_ids=documents)
    write_letor(data, str(tmp_path / "train.txt"))
    done = subprocess.run(
        [
            Path(sys.executable).with_name("podium"), "train", "train.txt", "ranker.podium",
            "--model", "RankSVM", "--labels", f"studio:{address}#{project.id}",
        ],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "saved            ranker.podium" in done.stderr
    project.export(tmp_path / "labels.qrels")
    assert read_qrels(tmp_path / "labels.qrels").equals(project.labels())


def test_a_program_answers_by_the_projects_own_grades_and_questions(studio):
    questions = [{"name": "why", "text": "Why?", "options": ["long", "short"], "required": True}]
    scale = [{"name": "no"}, {"name": "yes"}]
    project = studio.create_project("Own", mode="grades", scale=scale, questions=questions)
    project.import_candidates(list(demo_queries())[:1])
    task = project.next()
    assert task.choices == ("no", "yes", "skip")
    (question,) = task.questions
    assert (question.name, question.options, question.required) == ("why", ("long", "short"), True)
    with pytest.raises(StudioError, match="is missing"):
        project.answer(task, "yes")
    count = project.judge(lambda _: ("yes", {"why": "long"}))
    labels = project.labels()
    assert labels.labels.tolist() == [1.0] * count
