"""The API's description: complete, neat, and true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from podium.studio.accounts.service import new_api_token
from podium.studio.app import create_app
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from tests.studio.factories import make_people, make_project
from tests.studio.server import serving


def operations():
    schema = create_app(Settings(database="sqlite://")).openapi()
    return [
        (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_is_described():
    names = []
    for path, _, operation in operations():
        names.append(operation["operationId"])
        assert operation["tags"], path
        assert operation["description"].strip(), path
        if path.startswith("/api/"):
            assert {"401", "403", "404", "422", "503"} <= operation["responses"].keys(), path
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []


def test_pages_are_no_part_of_the_api():
    assert {path.split("/")[1] for path, _, _ in operations()} == {
        "api", "healthz", "metrics", "readyz",
    }  # fmt: skip


@pytest.mark.slow
def test_the_server_does_what_the_description_says(database, engine, tmp_path):
    settings = Settings(database=database, exports=tmp_path / "files")
    people = make_people(engine, 2, admin=True)
    make_project(engine, people)
    token = in_transaction(engine, lambda c: new_api_token(c, people[0], "test", 1))
    with serving(settings) as address:
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"), "run",
                f"{address}/api/v1/openapi.json",
                "-H", f"Authorization: Bearer {token}", "--max-examples", "1", "--seed", "1",
                "--exclude-operation-id", "delete_project",
                "--checks", "not_a_server_error,status_code_conformance,"
                "content_type_conformance,response_schema_conformance",
            ],
            capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
    engine.dispose()
    assert done.returncode == 0, done.stdout[-5000:]
