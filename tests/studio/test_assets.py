"""Files that pages load: browsers keep what cannot change, and nothing comes from elsewhere."""

from __future__ import annotations

import re

import httpx2
import pytest

from podium.studio.settings import Settings
from podium.studio.web.assets import asset
from tests.studio.server import serving


@pytest.fixture
def client(tmp_path):
    with (
        serving(Settings(database=f"sqlite:///{tmp_path / 'studio.db'}")) as address,
        httpx2.Client(base_url=address, timeout=60) as found,
    ):
        yield found


def test_a_file_by_its_content_is_kept(client):
    answer = client.get(asset("studio.css"))
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "X-Frame-Options" in answer.headers
    assert client.get("/static/studio.css").headers["cache-control"] == "no-store"


def test_what_is_not_there(client):
    assert asset("no/such.css") == "/static/no/such.css"
    assert client.get("/static/no/such.css?1").headers["cache-control"] == "no-store"
    assert client.get("/static/../app.py").status_code == 404


def test_pages_name_no_other_host(client):
    page = client.get("/sign-in", headers={"accept": "text/html"}).text
    assert asset("studio.css") in page
    assert not re.search(r"(src|href)=.(https?:)?//", page)
