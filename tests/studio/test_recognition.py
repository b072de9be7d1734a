"""Files are imported by what they hold: nobody says it."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from podium.errors import DataError
from podium.studio.errors import RefusedError
from podium.studio.settings import Settings
from podium.studio.store.enums import Mode
from podium.studio.transfer.recognition import recognized
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import ended, program
from tests.studio.judging_helpers import items_of
from tests.studio.server import serving

RUN = b"q1 Q0 d1 1 9.5 bm25\nq1 Q0 d2 2 8 bm25\n"
DOCUMENTS = b"d1\tOne\nd2\tTwo\n"
QUERIES = b"q1\tred shoes\n"
TABLE = b"query,sku,title\nshoes,a,Red\nshoes,b,Blue\n"
GOLD = b"query_id,left,right,outcome\nq1,d1,d2,left\n"
LIST = json.dumps(
    {"query_id": "q1", "query": "shoes", "candidates": [{"document_id": "a"}, {"document_id": "b"}]}
).encode()


def roles(*contents, mode=Mode.PAIRS):
    files = [(io.BytesIO(content), f"file{n}") for n, content in enumerate(contents)]
    found = recognized(files, mode)
    assert all(file.tell() == 0 for file, _ in files)
    return found


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (TABLE, "table"),
        (b"\xef\xbb\xbf" + TABLE, "table"),
        (gzip.compress(TABLE), "table"),
        (b"what,who\n1,2\n", "table"),  # whose columns people choose
        (b"Searched for\tArticle\nshoes\ta\n", "table"),
        (b'[{"query": "shoes"}]', "table"),
        (GOLD, "gold"),
        (b'{"query_id": "q", "left": "a", "right": "b", "outcome": "tie"}', "gold"),
        (LIST, "candidates"),
        (b"{broken", "candidates"),  # its reader says what is wrong
    ],
)
def test_one_file(content, source):
    assert roles(content) == (source, {source: [0]})


def test_a_run_with_its_files_in_any_order():
    assert roles(QUERIES, RUN, DOCUMENTS) == (
        "runs",
        {"queries": [0], "runs": [1], "documents": [2]},
    )
    jsonl = b'{"document_id": "d1", "text": "One"}\n'
    spoken = b'{"query_id": "q1", "query": "shoes"}\n'
    assert roles(jsonl, spoken, RUN)[1] == {"documents": [0], "queries": [1], "runs": [2]}
    assert roles(RUN, DOCUMENTS, RUN, mode=Mode.RANKINGS)[1]["runs"] == [0, 2]


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ([], "Choose a file"),
        ([RUN], "has no texts"),
        ([RUN, QUERIES], "has no texts"),
        ([RUN, RUN, DOCUMENTS], "Give one TREC run"),
        ([TABLE, TABLE], "file0 holds a table, and file1 holds a table"),
        ([TABLE, LIST], "queries with candidates"),
        ([b'{"document_id": "d1", "text": "One"}'], "file0 holds documents: choose a TREC run"),
    ],
)
def test_what_does_not_fit_is_named(contents, problem):
    with pytest.raises(RefusedError, match=problem):
        roles(*contents)


def test_damaged_and_empty_files():
    with pytest.raises(DataError, match="is empty"):
        roles(b" \n")
    with pytest.raises(DataError, match="damaged"):
        roles(gzip.compress(TABLE * 9)[:-12])
    assert roles(b"PK\x03\x04 a workbook")[0] == "table"  # whose reader says what to do


def test_a_run_is_imported(engine, database):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0)
    path = f"/api/v1/projects/{project}/imports/files"
    with serving(Settings(database=database)) as address, program(engine, address, ann) as client:
        files = [("files", ("d.tsv", DOCUMENTS)), ("files", ("a.run", RUN))]
        sent = client.post(path, files=files)
        assert sent.status_code == 202
        assert ended(client, project, sent.json())["state"] == "done"
        assert items_of(engine, project) == [("q1", "d1"), ("q1", "d2")]
        stored = client.post(path, files=[("files", ("t.csv", TABLE))]).json()
        assert (stored["name"], stored["guess"]["document_id"]) == ("t.csv", "sku")
        assert client.post(path, files=[("files", ("a.run", RUN))]).status_code == 422
