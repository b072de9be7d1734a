"""A Host header of one's own, and names of nothing."""

from __future__ import annotations

import httpx2
import pytest

from tests.studio.factories import make_people

DATABASES = ["sqlite"]


def test_no_redirect_leads_to_the_host_of_a_request(address):
    for path in ("/projects/new/", "/sign-in/", "/api/v1/projects/"):
        answer = httpx2.get(address + path, headers={"host": "evil.example"}, timeout=60)
        assert "evil.example" not in answer.headers.get("location", ""), path


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\0", " \0"])
def test_a_name_of_nothing_is_refused(engine, api, name):
    (ann,) = make_people(engine, 1, admin=True)
    assert api(ann).post("/api/v1/projects", json={"name": name}).status_code == 422
    assert (
        api(ann).post("/api/v1/projects", json={"name": " A\0 "}).json()["settings"]["name"] == "A"
    )
