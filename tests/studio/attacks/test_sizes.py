"""Bodies and files that are larger than they look, from people whom nobody knows."""

from __future__ import annotations

import gzip
import os
import re
import socket
import time
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest

from podium.errors import DataError
from podium.studio.accounts.service import sign_in
from podium.studio.jobs import queue
from podium.studio.store.database import in_transaction
from podium.studio.transfer import imports
from podium.studio.transfer.readers import Upload, open_upload, read_candidates, read_queries
from podium.studio.transfer.tables import preview_table, read_table
from podium.studio.web import middleware
from podium.studio.web.access import COOKIE
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/projects/1/next"),
        ("POST", "/api/v1/projects/1/exports"),
        ("POST", "/api/v1/projects/1/imports/x"),
        ("POST", "/sign-in"),
        ("PATCH", "/api/v1/projects/1"),
    ],
)
def test_large_bodies_are_refused_before_they_are_read(server, method, path):
    answer = httpx2.request(
        method, server + path, content=b"[" + b"0," * (MEBIBYTE // 2) + b"0]",
        headers={"content-type": "application/json"}, timeout=60,
    )  # fmt: skip
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/api/v1/projects/1/next", "/sign-in"])
def test_bodies_that_do_not_end_are_refused_in_time(server, path, monkeypatch):
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.5)
    kind = "application/json" if "api" in path else "application/x-www-form-urlencoded"
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n"
            "content-length: 100000\r\n\r\nx".encode()
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/projects/1/imports",
        "/api/v1/projects/1/imports/engine",
        "/projects/1/import",
        "/projects/1/import/engine",
    ],
)
def test_imports_know_who_asks_before_they_read(engine, server, path):
    people = make_people(engine, 2)
    make_project(engine, people, queries=0)
    assert _first_line(server, path, "") == 401
    assert _first_line(server, path, "authorization: Bearer nonsense\r\n") == 401
    with program(engine, server, people[1]) as assessor:
        word = assessor.headers["authorization"]
        assert _first_line(server, path, f"authorization: {word}\r\n") == 403


def _first_line(address: str, path: str, headers: str) -> int:
    """The status of the answer to a request that announces 60 MB and sends ten bytes of them."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\n"
            f"content-length: 60000000\r\n{headers}\r\n--b\r\nconte".encode()
        )
        answer = connection.recv(4096).decode()
    return int(re.match(r"HTTP/1.1 (\d+)", answer).group(1))


def test_a_page_of_another_site_cannot_import(engine, server):
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=0)
    with Browser(server) as browser:
        signed = in_transaction(engine, lambda c: sign_in(c, people[0], 1))
        browser.cookies.set(COOKIE, signed.secret)
        files = {"candidates": ("c.jsonl", b"{}")}
        forged = browser.post(
            f"/projects/{project}/import", data={"source": "candidates"}, files=files
        )
        assert forged.status_code == 403
        sent = browser.post(
            f"/projects/{project}/import",
            data={"source": "candidates", "csrf": signed.csrf},
            files=files,
        )
        assert sent.status_code == 303


@pytest.mark.parametrize("inner", ["gzip", "zstd"])
@pytest.mark.parametrize("outer", ["gzip", "zstd"])
def test_what_is_compressed_twice_is_refused(tmp_path, inner, outer):
    line = b'{"query_id": "q", "query": "' + b"a" * (8 << 20)
    twice = pa.compress(pa.compress(line, inner, asbytes=True), outer, asbytes=True)
    if outer == "gzip":
        assert gzip.decompress(twice) == pa.compress(line, inner, asbytes=True)
    path = tmp_path / "bomb"
    path.write_bytes(twice)
    for read in (read_candidates, read_queries):
        with pytest.raises(DataError, match="compressed twice"):
            next(read(Upload(path, "bomb")))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"," * (9 * MEBIBYTE), "a row of more than 8 MiB"),
        (b'"\n",' * (3 * MEBIBYTE), "a row of more than 8 MiB"),
        (b"query,docid\n" + b'"\n",' * (3 * MEBIBYTE), "a row of more than 8 MiB"),
        (b'[{"query": [' + b"{}," * (6 * MEBIBYTE), "a row of more than 8 MiB"),
        (b"[{" + b",".join(b'"%d":0' % n for n in range(201)) + b"}]", "201 columns"),
        (b",".join(b"%d" % n for n in range(201)) + b"\n", "201 columns"),
    ],
    ids=["commas", "lines", "row", "objects", "keys", "names"],
)
def test_a_row_of_a_table_is_limited(tmp_path, content, problem):
    """Compressed, each is some kilobytes; read as a whole, up to gigabytes."""
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(DataError, match=problem):
        preview_table(Upload(path, "table.csv"))


def test_a_preview_reads_the_beginning_of_a_table(tmp_path):
    path = tmp_path / "table"
    row = b'{"query": "q", "docid": "d"}, '
    path.write_bytes(b"[" + row * 5000 + b"nonsense")
    assert len(preview_table(Upload(path, "table.json")).rows) == 5
    with pytest.raises(DataError, match="listed twice"):
        next(read_table(Upload(path, "table.json")))
    path.write_bytes(b"[" + row + b"nonsense")
    with pytest.raises(DataError, match="not a JSON array"):
        preview_table(Upload(path, "table.json"))


def test_an_import_that_is_refused_leaves_no_file(engine, server, monkeypatch):
    monkeypatch.setattr(queue, "MOST_UNDER_WAY", 0)
    (ann,) = make_people(engine, 1)
    path = f"/api/v1/projects/{make_project(engine, [ann])}"
    with program(engine, server, ann) as client:
        for status in (429, 409):
            files = {"candidates": ("c.jsonl", b"x" * 5000)}
            sent = client.post(f"{path}/imports", data={"source": "candidates"}, files=files)
            assert sent.status_code == status
            assert kept_files() == []
            assert client.patch(path, json={"archived": True}).status_code == 200


def test_a_project_keeps_few_tables_for_previews(engine, server, monkeypatch):
    monkeypatch.setattr(imports, "MOST_PREVIEWS", 2)
    (ann,) = make_people(engine, 1)
    one, other = (f"/api/v1/projects/{make_project(engine, [ann])}" for _ in range(2))
    with program(engine, server, ann) as client:
        shown = []
        for path in (other, one, one, one):
            files = {"table": ("t.csv", f"query,docid\nq,{len(shown)}\n")}
            shown.append(client.post(f"{path}/imports/preview", files=files).json())
        assert len(kept_files()) == 3
        for preview, path, status in ((0, other, 202), (1, one, 404), (2, one, 202), (3, one, 202)):
            body = {"upload": shown[preview]["upload"], "columns": shown[preview]["guess"]}
            assert client.post(f"{path}/imports/table", json=body).status_code == status


def kept_files():
    folder = Path(os.environ["PODIUM_STUDIO_EXPORTS"])
    return list(folder.iterdir()) if folder.exists() else []


EXAMPLE = b'{"query_id": "q0", "document": "d00", "grade": "good", "explanation": "It is."}\n'
HEADER = b"query_id,document,grade,explanation\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (EXAMPLE + b"\n" * (17 * MEBIBYTE), "more than 16 MiB"),
        (b'{"a": [' + b"{}," * MEBIBYTE, "longer than 1 MiB"),
        (HEADER + b'"' + b'","\n' * MEBIBYTE, "longer than 1 MiB"),
        (b"," * (2 * MEBIBYTE), "longer than 1 MiB"),
    ],
    ids=["blanks", "objects", "row", "commas"],
)
def test_a_file_of_examples_is_limited(engine, server, content, problem):
    """Compressed, it is some kilobytes; the server itself reads it."""
    (ann,) = make_people(engine, 1)
    path = f"/api/v1/projects/{make_project(engine, [ann], mode='grades')}/training"
    with program(engine, server, ann) as client:
        for sent, status in ((content, 422), (EXAMPLE + b"\n" * MEBIBYTE, 201)):
            files = {"examples": ("examples.csv", gzip.compress(sent, 1))}
            answer = client.post(path, files=files)
            assert answer.status_code == status, answer.text
            assert status == 201 or problem in answer.json()["detail"]


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"a" * 1000))
    with open_upload(Upload(path, "file"), most=1000) as stream:
        assert stream.read() == b"a" * 1000
    with (
        pytest.raises(DataError, match="MiB"),
        open_upload(Upload(path, "file"), most=999) as stream,
    ):
        stream.read()
    started = time.monotonic()
    path.write_bytes(gzip.compress(b"\0" * (64 << 20)))
    with pytest.raises(DataError), open_upload(Upload(path, "file"), most=MEBIBYTE) as stream:
        stream.read()
    assert time.monotonic() - started < 10
