"""A database that the released 0.1.0 wrote: refused in one sentence, upgraded, and as it was.

``released-0.1.0.zip`` has it with what 0.1.0 exported of its two projects: judgments of two people
and a model, skips, a crowd link, a webhook, tokens and finished jobs.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sqlalchemy import select

from podium.studio.settings import Settings
from podium.studio.store.backup import back_up, restore
from podium.studio.store.database import connect, reading
from podium.studio.store.tables import ModelAssessor
from tests.cli.run_podium import podium
from tests.studio.http_client import ended, program
from tests.studio.server import serving

RELEASED = Path(__file__).with_name("released-0.1.0.zip")
ANN = 1
PAIRS, GRADES = 1, 2

DATABASES = ["sqlite"]


@pytest.fixture
def released(tmp_path):
    """A folder with the file, and its address."""
    shutil.unpack_archive(RELEASED, tmp_path)
    return f"sqlite:///{tmp_path / 'studio.db'}"


def test_servers_refuse_it_in_one_sentence(released):
    refused = podium("studio", "serve", "--database", released)
    assert refused.returncode == 2
    assert refused.stderr.decode().splitlines() == [
        "Error: the database's tables are at revision 0008, not 0010. "
        "Run podium studio migrate first, or add --migrate."
    ]


def test_everything_is_there_after_the_upgrade(released, tmp_path):
    done = podium("studio", "migrate", "--database", released)
    assert done.returncode == 0, done.stderr
    engine = connect(Settings(database=released))
    _is_as_it_was(engine, released, tmp_path)
    engine.dispose()


def test_a_backup_of_it_is_upgraded(released, tmp_path):
    old = connect(Settings(database=released))
    made = back_up(old, Settings(database=released), tmp_path / "b.zip")
    old.dispose()
    address = f"sqlite:///{tmp_path / 'restored.db'}"
    engine = connect(Settings(database=address))
    assert restore(engine, Settings(database=address), tmp_path / "b.zip") == made
    _is_as_it_was(engine, address, tmp_path)
    engine.dispose()


def _is_as_it_was(engine, address, folder):
    """Exports are the same, what the model spent is counted, and judging goes on."""
    settings = Settings(database=address, exports=folder / "files")
    with serving(settings) as server, program(engine, server, ANN) as client:
        for project in (PAIRS, GRADES):
            path = f"/api/v1/projects/{project}"
            job = client.post(f"{path}/exports", json={"content": "log", "format": "jsonl"}).json()
            assert ended(client, project, job)["state"] == "done"
            exported = client.get(f"{path}/jobs/{job['id']}/file").text
            assert _lines(exported) == _lines((folder / f"log{project}.jsonl").read_text())
            task = client.post(f"{path}/next", json={"tab": "new"}).json()["task"]
            choice = "left" if project == PAIRS else "good"
            answer = {"token": task["token"], "choice": choice, "seconds": 1, "tab": "new"}
            assert client.post(f"{path}/answers", json=answer).json()["counts"]
    (spent,) = reading(engine, lambda c: c.scalars(select(ModelAssessor.requests)).all())
    assert spent == 5


def _lines(text):
    return [json.loads(line) for line in text.splitlines()]
