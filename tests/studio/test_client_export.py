"""Exports into files that are there already, and into pipes, by the client."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from podium.data import read_qrels
from podium.studio.accounts.service import new_api_token
from podium.studio.client import StudioClient, StudioError
from podium.studio.demo import demo_queries
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from tests.studio.factories import make_people
from tests.studio.server import serving


@pytest.fixture
def project(engine, database, tmp_path, monkeypatch):
    """A project of which one pair was judged."""
    (ann,) = make_people(engine, 1, admin=True)
    secret = in_transaction(engine, lambda c: new_api_token(c, ann, "test", 1))
    monkeypatch.setenv("PODIUM_STUDIO_TOKEN", secret)
    settings = Settings(database=database, exports=tmp_path / "files")
    with serving(settings) as address, StudioClient(address) as studio:
        found = studio.create_project("Demo", k=2)
        found.import_candidates(demo_queries())
        found.answer(found.next(), "left", seconds=1)
        yield found


def test_an_export_replaces_a_file_and_keeps_its_mode(project, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "real.qrels").write_text("old")
    (folder / "real.qrels").chmod(0o640)
    (folder / "link").symlink_to("real.qrels")
    result = project.export(folder / "link", "labels", "qrels")
    assert read_qrels(folder / "real.qrels").rows == result["rows"]
    assert (folder / "link").is_symlink()
    assert stat.S_IMODE((folder / "real.qrels").stat().st_mode) == 0o640
    with pytest.raises(StudioError):
        project.export(folder / "link", "labels", "no format")
    assert sorted(path.name for path in folder.iterdir()) == ["link", "real.qrels"]


def test_an_export_is_written_to_a_pipe(project, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    result = project.export(pipe, "labels", "qrels")
    reader.join(timeout=60)
    assert len(found[0].splitlines()) == result["rows"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
