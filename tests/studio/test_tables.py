"""Tables are imported with chosen columns: CSV, TSV, Quepid's and Label Studio's exports."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from podium.errors import DataError
from podium.studio.accounts.service import add_user
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.transfer import tables
from podium.studio.transfer.readers import Upload, without_empty
from podium.studio.transfer.tables import TableColumns, guess_columns, preview_table, read_table
from tests.studio.databases import sqlite_with_tables
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, ended, program
from tests.studio.judging_helpers import items_of
from tests.studio.postgres import wait_until
from tests.studio.server import serving

SHOES = b"""qid,query,docid,title,body,score
1,"red, shoes",a,Red shoes,"Quoted ""text""
on two lines",2.5
2,boots,b,Boots,,1
1,"red, shoes",c,,Blue,0.5
2,boots,d,,,3
"""


@pytest.fixture
def upload(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return Upload(path, name)

    return write


def content_of(upload, columns=None):
    return {
        read.entry.query_id: (
            read.entry.query,
            [(doc.document_id, doc.title, doc.text, doc.score) for doc in read.entry.candidates],
        )
        for read in read_table(upload, columns)
    }


SHOES_READ = {
    "1": (
        "red, shoes",
        [("a", "Red shoes", 'Quoted "text"\non two lines', 2.5), ("c", "", "Blue", 0.5)],
    ),
    "2": ("boots", [("b", "Boots", "", 1.0), ("d", "", "", 3.0)]),
}


def test_columns_are_guessed_and_rows_of_a_query_need_not_be_together(upload):
    assert content_of(upload(SHOES)) == SHOES_READ


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\xef\xbb\xbf" + SHOES, "bom.csv"),
        (gzip.compress(SHOES), "shoes.csv.gz"),
        (SHOES.replace(b"\n", b"\r\n").replace(b'text""\r\n', b'text""\n'), "crlf.csv"),
    ],
)
def test_variants_of_csv(upload, content, name):
    assert content_of(upload(content, name)) == SHOES_READ


@pytest.mark.parametrize(("name", "separator"), [("t.tsv", "\t"), ("t.csv", ";"), ("t.txt", "\t")])
def test_separators(upload, name, separator):
    lines = [["query", "document_id", "text"], ["a", "x", "1"], ["a", "y", "2"]]
    content = "\n".join(separator.join(line) for line in lines)
    assert content_of(upload(content.encode(), name)) == {
        "a": ("a", [("x", "", "1", None), ("y", "", "2", None)])
    }


def test_chosen_columns_win(upload):
    columns = TableColumns(query="title", document_id="docid", text="query")
    read = content_of(upload(b"query,docid,title\nx,1,T\ny,2,T\n"), columns)
    assert read == {"T": ("T", [("1", "", "x", None), ("2", "", "y", None)])}


@pytest.mark.parametrize(
    "content",
    [
        b'[{"query": "a", "id": "1"}, {"query": "a", "id": "2", "title": "x"}]',
        b"query,id,title\na,1\na,2,x\n",
    ],
)
def test_columns_that_the_first_row_lacks(upload, content):
    table = upload(content)
    read = {"a": ("a", [("1", "", "", None), ("2", "x", "", None)])}
    assert preview_table(table).columns == ["query", "id", "title"]
    assert content_of(table) == content_of(table, preview_table(table).guess) == read


def test_columns_are_those_of_the_first_line_however_short_the_rows_are(upload):
    rows = b"".join(b"a,%d\n" % number for number in range(9))
    table = upload(b"query,id,title\n" + rows + b"a,9,x\n")
    assert preview_table(table).columns == ["query", "id", "title"]
    assert preview_table(table).rows[0] == ["a", "0", ""]
    assert content_of(table)["a"][1][9] == ("9", "x", "", None)


@pytest.mark.parametrize(
    ("rows", "guess"),
    [
        # A catalogue: what is called a description is of the documents.
        ("tea,1,<p>Green</p>\ntea,2,<p>Black</p>\n", {"html": "description"}),
        ("tea,1,Green\ntea,2,Black\n", {"text": "description"}),
        ("tea,1,Green\ncake,2,Sweet\n", {"text": "description"}),
        ("tea,1,To drink\ntea,2,To drink\ncake,3,To eat\n", {"description": "description"}),
        ("tea,1,To drink\ntea,2,\ncake,3,To eat\n", {"text": "description"}),
        ("tea,1,a < b\ntea,2,<3\n", {"text": "description"}),
    ],
)
def test_columns_are_guessed_by_what_they_hold(upload, rows, guess):
    table = upload(f"query,id,description\n{rows}".encode())
    expected = {"query": "query", "document_id": "id", **guess}
    assert preview_table(table).guess == TableColumns(**expected)
    shown = preview_table(table).example
    assert shown is not None
    assert shown.candidates == next(iter(read_table(table))).entry.candidates


def test_a_description_beside_a_text_is_of_the_query_unless_it_differs(upload):
    columns = "query,id,description,body\n"
    one = upload(f"{columns}tea,1,To drink,Green\ncake,2,To eat,Sweet\n".encode())
    assert preview_table(one).guess.description == "description"
    other = upload(f"{columns}tea,1,Leaves,Green\ntea,2,Bags,Black\n".encode())
    assert preview_table(other).guess.description == ""
    assert preview_table(other).guess.text == "body"


def test_quepid(upload):
    """Ratings, and a snapshot with its position and fields."""
    ratings = upload(b"query,docid,rating\nrocky,1366,3\nrocky,1367,2\n", "ratings.csv")
    assert content_of(ratings) == {
        "rocky": ("rocky", [("1366", "", "", None), ("1367", "", "", None)])
    }
    header = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position,title"
    rows = "(3/5) Weekly,2026-03-05,8,dog,d2,2,Great\n(3/5) Weekly,2026-03-05,8,dog,d1,1,Good"
    assert content_of(upload(f"{header}\n{rows}\n".encode(), "snapshot.csv")) == {
        "dog": ("dog", [("d2", "Great", "", -2.0), ("d1", "Good", "", -1.0)])
    }


def test_label_studio(upload):
    """Tasks with one document each, and tasks with a list of items."""
    single = [
        {"id": 7, "data": {"query": "q", "doc_id": item, "text": item * 2}, "annotations": []}
        for item in ("a", "b")
    ]
    assert content_of(upload(json.dumps(single).encode(), "export.json")) == {
        "q": ("q", [("a", "", "aa", None), ("b", "", "bb", None)])
    }
    items = [{"id": "x", "title": "X", "body": "1"}, {"id": "y", "title": "Y", "body": "2"}]
    lists = [{"id": 1, "data": {"query": "arrow", "id": 5, "items": items}}]
    assert content_of(upload(json.dumps(lists).encode(), "export.json")) == {
        "arrow": ("arrow", [("x", "X", "1", None), ("y", "Y", "2", None)])
    }


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 16])
def test_json_is_read_in_pieces(upload, monkeypatch, chunk):
    monkeypatch.setattr(tables, "_CHUNK", chunk)
    rows = [
        {"query": "ö ]", "docid": f"[{n}]", "text": ["}", {}][n % 2], "score": -1.5e3}
        for n in range(9)
    ]
    for content in (json.dumps(rows), json.dumps(rows, indent=2), f" \n{json.dumps(rows)}\n"):
        (read,) = read_table(upload(content.encode()))
        documents = [(each.document_id, each.text, each.score) for each in read.entry.candidates]
        assert documents == [(row["docid"], row["text"] or "", row["score"]) for row in rows]
    for wrong in (
        "",
        "[",
        '[{"a": 1}',
        '[{"a": 1}{}]',
        '[{"a": 1}]]',
        "[]",
        "[,]",
        '[{"a": 1}, 2]',
    ):
        with pytest.raises(DataError):
            list(read_table(upload(wrong.encode())))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has no rows"),
        (b"query,query\na,b\n", "same name"),
        (b"a,b\n1,2\n", "no column has the query"),
        (b"query,b\n1,2\n", "no column has the document"),
        (b"query,docid\n1,2,3\n", "3 cells"),
        (b"query,docid\n1,\n", "has no document"),
        (b"query,docid\n,1\n", "has no query"),
        (b"query,docid\nq,1\nq,1\n", "listed twice"),
        (b"query,docid,score\nq,1,good\n", "not a number"),
        (b"query,docid,score\nq,1,nan\n", "not a finite"),
        (b"query,docid\nq,\xff\n", "not UTF-8 text. In a spreadsheet, save it as CSV UTF-8"),
        (b"PK\x03\x04\x14\x00\x06\x00", "a workbook or an archive, not a table"),
        (b'query,docid\nq,"a\n', "not a valid table"),
        (b'{"query": 1}', "array of objects"),
        (b"[1]", "array of objects"),
        (b"[" * 100_000, "not a JSON array of objects"),
        (gzip.compress(gzip.compress(SHOES)), "compressed twice"),
    ],
)
def test_wrong_tables_are_refused_in_words(upload, content, problem):
    with pytest.raises(DataError, match=problem):
        content_of(upload(content))


def test_broken_rows_are_listed_together(upload):
    table = upload(b"query,docid\n1,a\n1,\n1,b\n,c\n1,a\n")
    with pytest.raises(DataError) as caught:
        content_of(table)
    assert [part.split(" (")[0] for part in caught.value.problem.split("; ")] == [
        "row 2: has no document", "row 4: has no query",
        "row 5: document 'a' of query '1' is listed twice",
    ]  # fmt: skip
    many = upload(b"query,docid\n" + b"1,\n" * 9)
    with pytest.raises(DataError, match=r"row 5: .*; later rows were not read"):
        content_of(many)


def test_the_preview_is_short(upload):
    rows = [b"q,%d,%s" % (number, b"x" * 999) for number in range(9)]
    wide = upload(b"\n".join([b"query,docid,text", *rows]))
    shown = preview_table(wide)
    assert (shown.columns, len(shown.rows)) == (["query", "docid", "text"], 5)
    assert shown.rows[0] == ["q", "0", "x" * 200]
    assert shown.guess == guess_columns(["query", "docid", "text"])


def test_documents_without_text_are_passed_over(upload):
    read = {each.entry.query_id: each for each in without_empty(read_table(upload(SHOES)))}
    assert [each.document_id for each in read["1"].entry.candidates] == ["a", "c"]
    assert [len(each.entry.candidates) for each in read.values()] == [2, 1]
    assert [each.left_out for each in read.values()] == [0, 1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    database = sqlite_with_tables(folder / "studio.db")
    settings = Settings(database=database, exports=folder / "files")
    engine = connect(settings)
    with serving(settings) as address:
        yield engine, address, make_people(engine, 1)[0]
    engine.dispose()


def test_the_api(server):
    engine, address, ann = server
    project = make_project(engine, [ann], queries=0)
    rankings = make_project(engine, [ann], queries=0, mode="rankings")
    path = f"/api/v1/projects/{project}/imports"
    with program(engine, address, ann) as client:
        files = {"table": ("shoes.csv", SHOES)}
        shown = client.post(f"{path}/preview", files=files).json()
        assert shown["columns"] == ["qid", "query", "docid", "title", "body", "score"]
        assert shown["guess"]["text"] == "body"
        stored = {"upload": shown["upload"], "name": "shoes.csv"}
        task = client.get(f"{path}/preview/task", params=stored).json()
        assert (task["state"], task["task"]["query"]) == ("task", "red, shoes")
        assert [(each["title"], each["text"]) for each in task["documents"]] == [
            ("Red shoes", 'Quoted "text"\non two lines'),
            ("", "Blue"),
        ]
        for params in (stored | {"query": "query"}, stored | {"query": "query", "url": "docid"}):
            task = client.get(f"{path}/preview/task", params=params).json()
            assert (task["state"], len(task["problems"])) == ("blocked", 1)
        gone = client.get(f"{path}/preview/task", params=stored | {"upload": "x"})
        assert gone.status_code == 404
        body = {"upload": shown["upload"], "columns": shown["guess"], "skip_empty": True}
        wrong = body | {"columns": {"query": "nope", "document_id": "docid"}}
        assert client.post(f"{path}/table", json=wrong).status_code == 422
        for name in ("../studio.db", "studio.db", "x" * 43 + ".upload", ""):
            assert client.post(f"{path}/table", json=body | {"upload": name}).status_code == 404
        # Nobody imports it into another project, and it can be imported once.
        other = f"/api/v1/projects/{make_project(engine, [ann], queries=0)}/imports/table"
        assert client.post(other, json=body).status_code == 404
        sent = [client.post(f"{path}/table", json=body) for _ in range(2)]
        assert [each.status_code for each in sent] == [202, 404]
        assert "upload it again" in sent[1].text
        job = ended(client, project, sent[0].json())
        counts = {what: count for what, count in job["result"].items() if count}
        assert counts == {
            "added": 1,
            "documents": 2,
            "queries": 1,
            "left_out": 1,
            "documents_left_out": 2,
        }
        assert (job["by"], job["options"]) == (
            "Person 0",
            {"source": "table", "files": ["table"]},
        )
        assert items_of(engine, project) == [("1", "a"), ("1", "c")]
        job = client.post(path, data={"source": "table"}, files=files).json()
        counts = {
            what: count for what, count in ended(client, project, job)["result"].items() if count
        }
        assert counts == {
            "added": 1,
            "documents": 2,
            "skipped": 1,
            "queries": 2,
            "documents_without_text": 1,
        }
        assert items_of(engine, project)[2:] == [("2", "d"), ("2", "b")]  # by score
        large = b"query,docid,text\n" + b"q,1,x\n" * 300_000  # more than other requests may hold
        assert client.post(f"{path}/preview", files={"table": ("l.csv", large)}).status_code == 200
        refused = client.post(f"/api/v1/projects/{rankings}/imports/preview", files=files)
        assert refused.status_code == 409


def test_runs_with_documents_that_are_missing(server):
    engine, address, ann = server
    project = make_project(engine, [ann], queries=0)
    files = {
        "runs": ("a.run", b"".join(b"q Q0 d%d %d %d x\n" % (n, n, -n) for n in range(4))),
        "documents": ("d.tsv", b"d0\tzero\nd2\ttwo\nd3\t\n"),
    }
    with program(engine, address, ann) as client:
        path, data = f"/api/v1/projects/{project}/imports", {"source": "runs"}
        job = ended(client, project, client.post(path, data=data, files=files).json())
        assert (job["state"], "'d1'" in job["error"]) == ("failed", True)
        data["skip_empty"] = "true"
        job = ended(client, project, client.post(path, data=data, files=files).json())
        assert job["result"]["added"] == 1
    assert items_of(engine, project) == [("q", "d0"), ("q", "d2")]


def test_the_pages(server):
    engine, address, _ = server
    bob = in_transaction(engine, lambda c: add_user(c, "bob@example.org", "Bob", PASSWORD))
    project = make_project(engine, [bob], queries=0)
    base = f"/projects/{project}/import"
    with Browser(address) as browser:
        browser.sign_in("bob@example.org")
        hostile = SHOES.replace(b"Boots", b"<script>alert(1)</script>")
        sent = browser.submit(f"{base}/files", files={"files": ("s & {x}.csv", hostile)})
        assert sent.status_code == 303
        address_of_table = sent.headers["location"]
        page = browser.get(address_of_table).text
        assert "&lt;script&gt;" in page
        assert '<option value="body" selected>' in page
        values = {
            name: re.search(rf'name="{name}" value="([^"]*)"', page).group(1)
            for name in ("upload", "name")
        }
        assert values["name"] == "s &amp; {x}.csv"
        values |= {"query_id": "qid", "query": "query", "document_id": "docid", "title": "title"}
        document = f"/api/v1/projects/{project}/imports/preview/document"
        chosen = values | {"html": "body", "title": "title", "position": "0"}
        framed = browser.get(document, params=chosen)
        assert "Quoted" in framed.text
        assert "sandbox" in framed.headers["content-security-policy"]
        assert browser.get(document, params=chosen | {"document_id": ""}).status_code == 404
        frame = browser.get(f"/projects/{project}/preview", params={"embedded": "yes"})
        assert frame.headers["x-frame-options"] == "SAMEORIGIN"
        alone = browser.get(f"/projects/{project}/preview")
        assert alone.headers["x-frame-options"] == "DENY"
        refused = browser.submit(f"{base}/table", values | {"title": "x"})
        assert refused.status_code == 422
        assert '<option value="docid" selected>' in refused.text  # what was chosen is still there
        ticked = 'name="skip_empty" value="true" checked'
        assert ticked not in page
        assert ticked not in refused.text
        skipping = browser.submit(
            f"{base}/files", {"skip_empty": "true"}, files={"files": ("a.csv", SHOES)}
        )
        assert ticked in browser.get(skipping.headers["location"]).text
        again = browser.submit(f"{base}/table", values | {"title": "x", "skip_empty": "true"})
        assert ticked in again.text
        assert browser.get(f"{base}/preview?upload=x").status_code == 404
        assert browser.submit(f"{base}/table", values).status_code == 303
        wait_until(lambda: len(items_of(engine, project)) == 4)
        shown = browser.get(base).text
        assert "2 queries with 4 documents added." in shown
        assert "s &amp;amp; {x}.csv" in shown
        refused = browser.submit(f"{base}/files", files={"files": ("s.csv", b"[1]")})
        assert refused.status_code == 422
        assert "array of objects" in refused.text
