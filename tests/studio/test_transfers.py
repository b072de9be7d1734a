"""Imports and exports: files of every kind in, files of every kind out, whatever they hold."""

from __future__ import annotations

import gzip
import io
import json
import random

import pytest
from sqlalchemy import select, text

from podium.data import read_jsonl, read_pairs, read_parquet, read_qrels
from podium.data.formats.trec import read_prefs
from podium.data.judged import Judgments
from podium.errors import DataError
from podium.studio.accounts.service import add_user, sign_in
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Gold, ProjectQuery, QueryCandidate, Ranking
from podium.studio.store.tokens import new_token
from podium.studio.transfer import imports as import_jobs
from podium.studio.transfer.readers import Upload, open_upload, read_runs
from podium.studio.web.access import COOKIE
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, ended, program, row_of
from tests.studio.judging_helpers import Judges
from tests.studio.postgres import wait_until
from tests.studio.server import serving

DATABASES = BOTH

QUERY = {
    "query_id": "q1",
    "query": "red shoes",
    "candidates": [{"document_id": name, "text": f"Text of {name}"} for name in "abc"],
}


@pytest.fixture
def files(tmp_path):
    return tmp_path / "files"


@pytest.fixture
def address(database, files):
    with serving(Settings(database=database, exports=files)) as found:
        yield found


def lines(*values) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def send(client, project, source, **files):
    uploads = [(role, (role, content)) for role, content in files.items()]
    answer = client.post(
        f"/api/v1/projects/{project}/imports", data={"source": source}, files=uploads
    )
    assert answer.status_code == 202, answer.text
    return ended(client, project, answer.json())


def names_of(engine, project):
    return reading(
        engine,
        lambda c: c.scalars(
            select(ProjectQuery.name).where(ProjectQuery.project_id == project)
        ).all(),
    )


def counted(job):
    """What an import counts, without what is zero."""
    assert job["result"].keys() == {*import_jobs.COUNTS, "queries"}
    return {what: count for what, count in job["result"].items() if count}


def empty_project(engine, **settings):
    (ann,) = make_people(engine, 1)
    return ann, make_project(engine, [ann], queries=0, **settings)


def test_candidates_from_jsonl_compressed_or_not(engine, address, files):
    ann, project = empty_project(engine)
    with program(engine, address, ann) as client:
        job = send(client, project, "candidates", candidates=lines(QUERY))
        assert job["state"] == "done"
        assert counted(job) == {"added": 1, "documents": 3, "queries": 1}
        more = gzip.compress(lines(QUERY, {**QUERY, "query_id": "q2"}))
        job = send(client, project, "candidates", candidates=more)
        assert counted(job) == {"added": 1, "documents": 3, "skipped": 1, "queries": 2}
    assert names_of(engine, project) == ["q1", "q2"]
    wait_until(lambda: list(files.iterdir()) == [])  # uploads go once they are read


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x00\x01\x02", "is not JSON"),
        (b"", "contains no queries"),
        (lines(QUERY, {"query": "no id"}), "candidates, line 2: a query lacks"),
        (gzip.compress(lines(QUERY))[:-4], "damaged or cut short"),
        (lines(QUERY, {**QUERY, "query_id": "q2", "candidates": []}), "has 0 documents"),
    ],
)
def test_a_wrong_file_changes_nothing_and_says_why(engine, address, content, problem):
    ann, project = empty_project(engine)
    with program(engine, address, ann) as client:
        job = send(client, project, "candidates", candidates=content)
    assert job["state"] == "failed"
    assert problem in job["error"]
    assert names_of(engine, project) == []


def test_a_large_import_renews_the_statistics_of_the_database(engine, address):
    if engine.dialect.name != "postgresql":
        pytest.skip("SQLite keeps none")
    rows = text(
        "SELECT relname, reltuples FROM pg_class WHERE relname IN ('queries', 'candidates')"
    )

    def counted():
        return dict(map(tuple, reading(engine, lambda c: c.execute(rows).all())))

    ann, project = empty_project(engine)
    with program(engine, address, ann) as client:

        def add(begin, end):
            queries = [{**QUERY, "query_id": f"q{n}"} for n in range(begin, end)]
            result = send(client, project, "candidates", candidates=lines(*queries))["result"]
            assert result["added"] == end - begin

        add(0, import_jobs.ANALYZE_FROM - 1)
        assert counted()["queries"] <= 0
        add(import_jobs.ANALYZE_FROM - 1, 2 * import_jobs.ANALYZE_FROM - 1)
        wait_until(lambda: counted() == {"queries": 999, "candidates": 2997})


def test_a_small_file_cannot_stand_for_a_huge_one(tmp_path):
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"x" * 5_000_000))
    with (
        pytest.raises(ValueError, match="bomb"),
        open_upload(Upload(path, "bomb"), most=1000) as stream,
    ):
        stream.read(10_000)


RUN = b"q1 Q0 a 1 3.5 old\nq1 Q0 b 2 2.5 old\nq2 Q0 c 1 9 old\nq2 Q0 a 2 1 old\n"
OTHER = b"q1 Q0 b 1 3.5 new\nq1 Q0 c 2 2.5 new\nq2 Q0 a 1 9 new\nq2 Q0 b 2 1 new\n"
DOCUMENTS = b"a\tText of a\nb\tB\tText of b\n" + lines({"document_id": "c", "html": "<p>c</p>"})


def test_texts_of_documents_may_have_tabs(tmp_path):
    run, documents = Upload(tmp_path / "run", "run"), Upload(tmp_path / "texts", "texts")
    run.path.write_bytes(b"q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq1 Q0 c 3 1 x\n")
    documents.path.write_bytes(b"a\tone\nb\tTitle\ttwo\nc\tthree\tand\ttabs\n")
    (read,) = read_runs([run], documents, None, 10)
    texts = [(each.title, each.text) for each in read.entry.candidates]
    assert texts == [("", "one"), ("Title", "two"), ("", "three\tand\ttabs")]
    documents.path.write_bytes(b"a one\n")
    with pytest.raises(DataError, match="line 1: has no tab"):
        list(read_runs([run], documents, None, 10))


def test_a_run_with_documents(engine, address):
    ann, project = empty_project(engine)
    with program(engine, address, ann) as client:
        job = send(
            client, project, "runs", runs=RUN, documents=DOCUMENTS, queries=b"q1\tred shoes\n"
        )
    assert counted(job) == {
        "added": 2,
        "documents": 4,
        "queries": 2,
        "queries_without_words": 1,
    }
    rows = reading(
        engine,
        lambda c: c.execute(
            select(
                ProjectQuery.text,
                ProjectQuery.ordered,
                QueryCandidate.item,
                QueryCandidate.title,
                QueryCandidate.score,
            )
            .join(QueryCandidate, QueryCandidate.query_id == ProjectQuery.id)
            .order_by(ProjectQuery.id, QueryCandidate.position)
        ).all(),
    )
    assert [tuple(row) for row in rows] == [
        ("red shoes", True, "a", "", 3.5),
        ("red shoes", True, "b", "B", 2.5),
        ("q2", True, "c", "", 9.0),
        ("q2", True, "a", "", 1.0),
    ]


def test_a_run_without_a_text_is_refused(engine, address):
    ann, project = empty_project(engine)
    with program(engine, address, ann) as client:
        job = send(client, project, "runs", runs=RUN, documents=b"a\tText of a\n")
    assert "document 'b' of query 'q1' is missing" in job["error"]
    assert names_of(engine, project) == []


def test_two_runs_side_by_side(engine, address):
    ann, project = empty_project(engine, mode="rankings")
    with program(engine, address, ann) as client:
        alone = client.post(
            f"/api/v1/projects/{project}/imports",
            data={"source": "runs"},
            files=[("runs", ("r", RUN)), ("documents", ("d", DOCUMENTS))],
        )
        assert alone.status_code == 422
        answer = client.post(
            f"/api/v1/projects/{project}/imports",
            data={"source": "runs", "depth": "2"},
            files=[
                ("runs", ("r1", RUN)), ("runs", ("r2", OTHER)), ("documents", ("d", DOCUMENTS)),
            ],
        )  # fmt: skip
        assert ended(client, project, answer.json())["state"] == "done"
    rankings = reading(
        engine,
        lambda c: c.execute(select(Ranking.name, Ranking.items).order_by(Ranking.query_id)).all(),
    )
    assert sorted(rankings[:2]) == [("new", [1, 2]), ("old", [0, 1])]


def test_gold_pairs(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3)
    pair = {"query_id": "q0", "left": "d02", "right": "d00", "outcome": "right"}
    with program(engine, address, ann) as client:
        reversed_pair = {**pair, "left": "d00", "right": "d02"}  # d02 is better
        done = send(client, project, "gold", gold=lines(pair, pair))
        assert done["result"] == {"gold": 1, "gold_contradicting": 0}
        given = lines(reversed_pair, {**reversed_pair, "outcome": "left"}, {**pair, "outcome": 0})
        done = send(client, project, "gold", gold=given)
        assert done["result"] == {"gold": 0, "gold_contradicting": 2}
        with Browser(address) as browser:
            signed = in_transaction(engine, lambda c: sign_in(c, ann, 1))
            browser.cookies.set(COOKIE, signed.secret)
            page = browser.get(f"/projects/{project}/import").text
            assert "1 gold pair added." in page
            assert "2 pairs left out: the project has them with other outcomes." in page
        for wrong in (
            {**pair, "left": "x"},
            {**pair, "query_id": "q\0"},
            {**pair, "outcome": "maybe"},
            {**pair, "outcome": True},
        ):
            assert send(client, project, "gold", gold=lines(wrong))["state"] == "failed"
    rows = reading(engine, lambda c: c.execute(select(Gold.left, Gold.right, Gold.outcome)).all())
    assert [tuple(row) for row in rows] == [(2, 0, -1)]


def judge_all(engine, project, user, choose):
    service = Judges(engine)
    given = service.next(row_of(engine, project), user, "t")
    while isinstance(given, LeasedTask):
        _, given = service.answer(
            row_of(engine, project), user, given.token, choose(given.task), seconds=2, tab="t"
        )


def truth(task):
    return "left" if task.left < task.right else "right"


def export(client, project, **order):
    answer = client.post(f"/api/v1/projects/{project}/exports", json=order)
    assert answer.status_code == 202, answer.text
    job = ended(client, project, answer.json())
    assert job["state"] == "done", job
    got = client.get(f"/api/v1/projects/{project}/jobs/{job['id']}/file")
    assert got.status_code == 200
    return io.BytesIO(got.content), got


def test_exports_of_pairs(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=6, k=2)
    with program(engine, address, ann) as client:
        nothing = client.post(f"/api/v1/projects/{project}/exports", json={}).json()
        assert "nothing has been judged" in ended(client, project, nothing)["error"]
        judge_all(engine, project, ann, truth)
        content, got = export(client, project, content="labels", format="qrels")
        assert 'filename="test-labels-' in got.headers["content-disposition"]
        labels = read_qrels(content)
        wanted = {"d00": 2.0, "d01": 1.0}
        assert [
            wanted.get(name, 0.0) for name in labels.document_ids.to_pylist()
        ] == labels.labels.tolist()
        assert len(labels) == 3
        content, got = export(client, project, content="labels", format="qrels-parquet")
        assert 'filename="test-labels-qrels-' in got.headers["content-disposition"]
        assert read_parquet(content, Judgments).equals(labels)
        content, _ = export(client, project, content="labels", format="prefs")
        assert read_prefs(content).levels.tolist() == labels.labels.tolist()
        content, _ = export(client, project, content="labels", format="jsonl", only_done=True)
        entries = list(read_jsonl(content))
        assert entries[0].candidates[0].label == 2
        assert entries[0].candidates[0].text == "Text of 0 for q0"
        content, _ = export(client, project, content="preferences", format="pairs")
        rows = client.get(f"/api/v1/projects/{project}/results").json()["queries"]
        count = sum(each["judgments"] for each in rows)
        assert read_pairs(content).rows == count
        content, _ = export(client, project, content="log", format="jsonl")
        log = [json.loads(line) for line in content]
        assert len(log) == count
        assert log[0].keys() >= {"query_id", "kind", "left", "right", "outcome", "assessor", "at"}
        for wrong in ({"content": "totals"}, {"content": "labels", "format": "pairs"}):
            answer = client.post(f"/api/v1/projects/{project}/exports", json=wrong)
            assert answer.status_code == 422


def test_what_was_skipped_or_taken_back_is_not_exported_as_judged(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=3, k=2)
    service, row = Judges(engine), row_of(engine, project)
    given = service.next(row, ann, "t")
    undone = given.query.name
    service.answer(row, ann, given.token, "left", seconds=1, tab="t", more=False)
    service.undo(row, ann, new_token(), "t")
    given = service.next(row, ann, "t")
    while given.query.name == undone:  # the pairs of the first query and of the second
        _, given = service.answer(row, ann, given.token, "skip", seconds=1, tab="t")
    skipped = given.query.name
    while given.query.name == skipped:
        _, given = service.answer(row, ann, given.token, "skip", seconds=1, tab="t")
    with program(engine, address, ann) as client:
        for content, form in (("labels", "qrels"), ("labels", "jsonl"), ("preferences", "pairs")):
            order = {"content": content, "format": form}
            job = client.post(f"/api/v1/projects/{project}/exports", json=order).json()
            assert "nothing has been judged" in ended(client, project, job)["error"]
        judged = given.query.name
        service.answer(row, ann, given.token, truth(given.task), seconds=1, tab="t", more=False)
        job = client.post(f"/api/v1/projects/{project}/exports", json={}).json()
        assert ended(client, project, job)["result"]["queries"] == 1
        content, _ = export(client, project, content="labels", format="qrels")
        assert set(read_qrels(content).query_ids.to_pylist()) == {judged}
        content, _ = export(client, project, content="log", format="jsonl")
        assert {json.loads(line)["query_id"] for line in content} == {undone, skipped, judged}


def test_answers_to_checks_alone_are_no_labels(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, k=2, gold_rate=0.5)
    pair = {"query_id": "q0", "left": "d00", "right": "d02", "outcome": "left"}
    with program(engine, address, ann) as client:
        send(client, project, "gold", gold=lines(pair))
        service = Judges(engine, rng=random.Random(1))  # draws a check first
        row = row_of(engine, project)
        given = service.next(row, ann, "t")
        assert given.task.purpose == "gold"
        service.answer(row, ann, given.token, truth(given.task), seconds=1, tab="t", more=False)
        job = client.post(f"/api/v1/projects/{project}/exports", json={}).json()
        assert "nothing has been judged" in ended(client, project, job)["error"]


def test_documents_without_a_grade_have_no_label(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, mode="grades")
    service, row = Judges(engine), row_of(engine, project)
    given = service.next(row, ann, "t")
    service.answer(row, ann, given.token, "bad", seconds=1, tab="t", more=False)
    graded = f"d{given.task.left:02}"
    with program(engine, address, ann) as client:
        content, _ = export(client, project, content="grades", format="qrels")
        labels = read_qrels(content)
        assert labels.document_ids.to_pylist() == [graded]
        assert labels.labels.tolist() == [0.0]
        content, _ = export(client, project, content="grades", format="jsonl")
        (entry,) = read_jsonl(content)
        found = {each.document_id: each.label for each in entry.candidates}
        assert found == {f"d{n:02}": 0.0 if f"d{n:02}" == graded else None for n in range(3)}


def test_exports_of_grades_and_rankings(engine, address):
    (ann,) = make_people(engine, 1)
    grades = make_project(engine, [ann], queries=1, items=3, mode="grades")
    rankings = make_project(engine, [ann], queries=1, items=3, mode="rankings")
    judge_all(engine, grades, ann, lambda task: ("perfect", "good", "bad")[task.left])
    judge_all(engine, rankings, ann, lambda task: "left-much" if task.left else "right-much")
    with program(engine, address, ann) as client:
        content, _ = export(client, grades, content="grades", format="qrels")
        assert read_qrels(content).labels.tolist() == [4.0, 2.0, 0.0]
        content, _ = export(client, grades, content="preferences", format="pairs")
        assert read_pairs(content).rows == 3
        content, _ = export(client, rankings, content="totals", format="jsonl")
        total = json.loads(content.read())
        assert (total["first"], total["second"], total["first_much_better"]) == ("new", "old", 1)


def test_only_managers_of_the_project_fetch_its_files(engine, address):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(engine, [ann, bob], queries=1)
    other = make_project(engine, [cat])
    judge_all(engine, project, ann, truth)
    with program(engine, address, ann) as client:
        _, got = export(client, project, content="labels", format="qrels")
        path = got.request.url.path
    with program(engine, address, bob) as client:
        assert client.get(path).status_code == 403
        assert client.post(f"/api/v1/projects/{project}/exports", json={}).status_code == 403
    with program(engine, address, cat) as client:
        assert client.get(path).status_code == 404
        assert client.get(path.replace(f"/{project}/", f"/{other}/", 1)).status_code == 404


def test_the_pages_import_and_export(engine, address):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    project = make_project(engine, [ann], queries=0, k=1)
    home = f"/projects/{project}"
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        assert "Queries with candidates" in browser.get(f"{home}/import").text
        missing = browser.submit(f"{home}/import", {"source": "candidates"})
        assert missing.status_code == 422
        assert "Choose a file" in missing.text
        sent = browser.submit(
            f"{home}/import", {"source": "candidates"}, {"candidates": ("c.jsonl", lines(QUERY))}
        )
        assert sent.status_code == 303
        (job,) = browser.get(f"/api/v1/projects/{project}/jobs").json()
        ended(browser, project, job)
        assert "1 query with 3 documents added." in browser.get(f"{home}/jobs/import").text
        judge_all(engine, project, ann, truth)
        assert browser.submit(f"{home}/export", {"what": "labels/qrels"}).status_code == 303
        job = browser.get(f"/api/v1/projects/{project}/jobs").json()[0]
        ended(browser, project, job)
        page = browser.get(f"{home}/export").text
        assert f"/jobs/{job['id']}/file" in page
        assert browser.submit(f"{home}/export", {"what": "x/y"}).status_code == 422
        engine_form = {"url": "http://localhost:9200/x", "queries": "q\tx"}
        assert browser.submit(f"{home}/import/engine", engine_form).status_code == 422
        assert browser.submit(f"{home}/import/engine", {}).status_code == 422
