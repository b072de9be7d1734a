"""Every exported file is read by the commands it is meant for, as it was downloaded."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from sqlalchemy import event

from podium.data import Candidate, CandidateList
from podium.errors import DataError
from podium.studio.accounts.identity import Member, Person
from podium.studio.judging import corrections
from podium.studio.judging.judged import judged_queries
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.service import add_queries
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.store.enums import Mode, Role
from podium.studio.transfer.exports import ExportOptions
from podium.studio.transfer.writers import DESCRIPTIONS, EXPORT_CONTENTS, EXPORT_FORMATS
from tests.cli.run_podium import succeed
from tests.studio.databases import sqlite_with_tables
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges, queries_of

ITEMS = 5
TRAINING = [
    (mode, content, form)
    for mode, content in [("pairs", "labels"), ("pairs", "preferences"), ("grades", "grades")]
    for form in EXPORT_FORMATS[content]
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """One kind of database: what is exported does not depend on it."""
    path = tmp_path_factory.mktemp("exports") / "studio.db"
    engine = connect(Settings(database=sqlite_with_tables(path)))
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def people(engine):
    return make_people(engine, 2)


@pytest.fixture(scope="module")
def projects(engine, people):
    """A judged project of each mode."""
    return {mode: judged_project(engine, people, mode) for mode in ("pairs", "grades")}


def judged_project(engine, people, mode):
    """Two queries that Ann and Bob judged to the end; Bob comments."""
    ann, bob = people
    overlap = {"overlap_share": 1.0, "overlap_assessors": 2}
    project = make_project(engine, [ann, bob], queries=2, items=ITEMS, k=3, mode=mode, **overlap)
    service, row = Judges(engine), row_of(engine, project)
    for who in (ann, bob) * 8:  # each waits for the other's answers
        given = service.next(row, who, f"t{who}")
        while isinstance(given, LeasedTask):
            task = given.task
            choice = "left" if task.left < task.right else "right"
            if mode == "grades":
                choice = ("perfect", "excellent", "good", "fair", "bad")[task.left]
                if who == bob and task.left == 1:
                    choice = "good"
            _, given = service.answer(
                row, who, given.token, choice, seconds=1, tab=f"t{who}",
                reason="=1+1" if who == bob else None,
            )  # fmt: skip
    return project


def exported(engine, project, content, form, tmp_path):
    entry = EXPORT_FORMATS[content][form]
    path = tmp_path / f"export{entry.suffix}"
    with path.open("wb") as stream:
        queries = judged_queries(engine, row_of(engine, project), only_done=False)
        entry.write(stream, engine, queries, False)
    return path


@pytest.mark.filterwarnings("ignore:nothing separates 4 documents")  # ties of the judgments
@pytest.mark.parametrize(("mode", "content", "form"), TRAINING)
def test_evaluate_and_train_read_it(engine, projects, tmp_path, mode, content, form):
    path = exported(engine, projects[mode], content, form, tmp_path)
    runs = {"best": -1, "worst": 1}
    rows = [(query, item) for query in ("q0", "q1") for item in range(ITEMS)]
    means = {}
    for name, sign in runs.items():
        run = tmp_path / f"{name}.run"
        lines = [f"{query} Q0 d{item:02} 1 {sign * item} x\n" for query, item in rows]
        run.write_text("".join(lines))
        (means[name],) = json.loads(succeed("evaluate", path, run, "--json")).values()
    # The measure is that of the content: nDCG@10 of labels, ppref and rpref of preferences.
    for measure, mean in means["best"]["means"].items():
        assert mean == 1.0, measure
        assert means["worst"]["means"][measure] < 1.0
    assert means["best"]["queries"] == 2
    features = tmp_path / "features.csv"
    lines = [f"{query},d{item:02},{-item}" for query, item in rows]
    features.write_text("\n".join(["query_id,document_id,f1", *lines]) + "\n")
    ranker = tmp_path / "ranker.podium"
    report = json.loads(
        succeed("train", features, ranker, "--model", "RankSVM", "--labels", path, "--json")
    )
    assert report["training_labels"]["documents_labeled"] == 2 * ITEMS


def spaced_project(engine, people, *names):
    """Queries and documents whose IDs are words, as those of a table without a column of IDs."""
    ann, _ = people
    project = make_project(engine, [ann], queries=0, k=1)
    service, row = Judges(engine), row_of(engine, project)
    documents = (Candidate("sku 1", text="one"), Candidate("sku 2", text="two"))
    queries = [CandidateList(name, name, documents) for name in names]
    in_transaction(engine, lambda c: add_queries(c, row, queries))
    given = service.next(row, ann, "t")
    while isinstance(given, LeasedTask):
        choice = "left" if given.task.left < given.task.right else "right"
        _, given = service.answer(row, ann, given.token, choice, seconds=1, tab="t")
    return project


def written(engine, project, **options):
    """The lines of an export."""
    stream = io.BytesIO()
    queries = judged_queries(engine, row_of(engine, project), only_done=False)
    ExportOptions(**options).writer.write(stream, engine, queries, False)
    return stream.getvalue().decode().splitlines()


@pytest.mark.parametrize("content", ["log", "preferences", "labels"])
def test_queries_are_read_together_and_logs_are_not_replayed(engine, people, content):
    project = row_of(engine, spaced_project(engine, people, *"abcdef"))
    statements = []

    def count(_connection, _cursor, statement, *_more):
        statements.append(statement)

    fresh = connect(Settings(database=engine.url.render_as_string(hide_password=False)))
    event.listen(fresh, "before_cursor_execute", count)
    queries = list(judged_queries(fresh, project, only_done=False))
    first: Any = next(iter(EXPORT_FORMATS[content]))
    options = ExportOptions(content=content, format=first, underscores=content != "log")
    options.writer.write(io.BytesIO(), fresh, queries, False)
    fresh.dispose()
    # A page of queries, their documents, rankings and logs, and that there is no more.
    assert (len(queries), len([each for each in statements if each.startswith("SELECT")])) == (6, 5)
    assert all(("state" in vars(each)) == (content != "log") for each in queries)


def test_spaces_in_ids_are_underscores_where_trec_has_none(engine, people):
    project = spaced_project(engine, people, "red tent")
    for content, form in (("labels", "qrels"), ("labels", "prefs"), ("preferences", "pairs")):
        with pytest.raises(DataError, match="the ID 'red tent' contains white space") as error:
            written(engine, project, content=content, format=form)
        assert "Choose CSV, JSONL or Parquet" in str(error.value)
    assert written(engine, project, format="qrels", underscores=True) == [
        "red_tent 0 sku_1 1",
        "red_tent 0 sku_2 0",
    ]
    (pair,) = written(engine, project, content="preferences", format="pairs", underscores=True)
    assert sorted(pair.split()[:3]) == ["red_tent", "sku_1", "sku_2"]
    table = written(engine, project, format="csv", underscores=True)
    assert table[1].startswith("red tent,red tent,sku 1")  # which has no need of it


def test_ids_that_would_become_the_same_are_refused(engine, people):
    project = spaced_project(engine, people, "red tent", "red_tent")
    with pytest.raises(DataError, match="'red tent' and 'red_tent' would both be 'red_tent'"):
        written(engine, project, format="qrels", underscores=True)


@pytest.mark.parametrize("mode", list(Mode))
def test_every_export_has_a_line_that_tells_what_it_is(mode):
    for content in EXPORT_CONTENTS[mode]:
        for form in EXPORT_FORMATS[content]:
            assert DESCRIPTIONS[content, form].endswith(".")


def test_grades_are_integers_where_trec_expects_them(engine, projects, tmp_path):
    project = projects["grades"]
    lines = exported(engine, project, "grades", "qrels", tmp_path).read_text().splitlines()
    # Ann gave 3 and Bob 2 to the second: the mean 2.5 is rounded up.
    assert lines[:ITEMS] == [
        f"q0 0 d{item:02} {grade}" for item, grade in enumerate([4, 3, 2, 1, 0])
    ]
    table = exported(engine, project, "grades", "csv", tmp_path).read_text()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["label"] for row in rows[:ITEMS]] == ["4", "2.5", "2", "1", "0"]
    assert rows[0]["query"] == "the words of q0"


def test_the_table_of_all_judgments_tells_what_is_withdrawn(engine, people, tmp_path):
    project = make_project(engine, people, queries=1, items=4)
    who = Member(Person(people[0], "", "", False), Role.OWNER, row_of(engine, project))
    (query,) = queries_of(engine, project)
    for document in (1, 2):
        in_transaction(engine, lambda c, d=document: corrections.withdraw(c, who, query.id, d))
    in_transaction(engine, lambda c: corrections.readmit(c, who, query.id, 1))
    table = exported(engine, project, "log", "csv", tmp_path).read_text()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["left"], row["stands"]) for row in rows] == [("d01", "False"), ("d02", "True")]


def test_the_table_of_all_judgments_has_comments_and_no_formulas(engine, projects, tmp_path):
    project = projects["pairs"]
    table = exported(engine, project, "log", "csv", tmp_path).read_text()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert {row["reason"] for row in rows} == {"", "'=1+1"}
    assert {row["stands"] for row in rows} == {"True"}
    better = [row["left"] if row["value"] == "1" else row["right"] for row in rows]
    worse = [row["right"] if row["value"] == "1" else row["left"] for row in rows]
    assert all(one < other for one, other in zip(better, worse, strict=True))
