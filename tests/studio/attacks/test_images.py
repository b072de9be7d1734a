"""Pictures from hosts that mean harm: one byte now and then, and few bytes for many pixels."""

from __future__ import annotations

import io
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image
from sqlalchemy import select

from podium.data import Candidate, CandidateList
from podium.studio.projects.service import add_queries, project_row
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.tables import QueryCandidate
from podium.studio.transfer import images
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import program
from tests.studio.server import serving


def picture(width, height, kind="PNG"):
    file = io.BytesIO()
    Image.new("1" if kind == "PNG" else "RGB", (width, height)).save(file, kind)
    return file.getvalue()


PICTURES = {
    "small.png": picture(3, 2),
    "small.jpeg": picture(3, 2, "JPEG"),
    "small.webp": picture(3, 2, "WEBP"),
    "small.avif": picture(3, 2, "AVIF"),
    "small.gif": picture(3, 2, "GIF"),
    "bomb.png": picture(12_000, 12_000),
    "large.png": picture(7_000, 7_000),
    "cut.png": picture(3, 2)[:20],
}


class _Host(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rpartition("/")[2]
        try:
            if name in ("slow-body", "slow-head"):
                begin = b"\r\n" + PICTURES["small.png"][:16] if name == "slow-body" else b"x: "
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" + begin)
                for _ in range(200):
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(0.05)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PICTURES[name])
        except OSError:
            return

    def log_message(self, *_arguments):
        pass


DATABASES = ["sqlite"]


@pytest.fixture
def shown(engine, database, tmp_path):
    """Asks the studio for the picture of a document that a host serves by some name."""
    host = ThreadingHTTPServer(("127.0.0.1", 0), _Host)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{host.server_port}/"
    names = [*PICTURES, "slow-body", "slow-head"]
    (ann,) = make_people(engine, 1)
    display = [{"field": "picture", "role": "image", "label": ""}]
    project = make_project(engine, [ann], queries=0, display=display)
    documents = tuple(Candidate(name, metadata={"picture": base + name}) for name in names)
    entry = CandidateList("q", "words", documents)
    in_transaction(engine, lambda c: add_queries(c, project_row(c, project), [entry]))
    settings = Settings(
        database=database, exports=tmp_path / "files", image_hosts=[base],
        image_networks=["127.0.0.0/8"],
    )  # fmt: skip
    with serving(settings) as address, program(engine, address, ann) as client:
        path = f"/api/v1/projects/{project}"
        query = client.get(f"{path}/results").json()["queries"][0]["id"]
        references = in_transaction(engine, _references)
        yield lambda name: client.get(f"{path}/queries/{query}/documents/{references[name]}/image")
    host.shutdown()
    host.server_close()


def _references(connection):
    return dict(connection.execute(select(QueryCandidate.item, QueryCandidate.reference)).all())


def test_pictures_that_stand_for_too_many_pixels_are_refused(shown):
    assert len(PICTURES["bomb.png"]) < 1 << 16
    for name in ("bomb.png", "large.png"):
        answer = shown(name)
        assert (answer.status_code, "pixels" in answer.json()["detail"]) == (404, True), name
    assert "damaged" in shown("cut.png").json()["detail"]
    for kind in ("png", "jpeg", "webp", "avif", "gif"):
        answer = shown(f"small.{kind}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, f"image/{kind}")


@pytest.mark.parametrize("name", ["slow-body", "slow-head"])
def test_a_byte_now_and_then_keeps_no_connection_open(shown, name, monkeypatch):
    monkeypatch.setattr(images, "SECONDS", 0.5)
    begin = time.monotonic()
    answer = shown(name)
    assert "takes too long" in answer.json()["detail"]
    assert time.monotonic() - begin < 8  # of the 10 s that the host would take
