"""Versions of the site stand beside each other, and the newest is found first."""

import json
import struct
from pathlib import Path

from tests.release.site_versions import add_version

ROOT = Path(__file__).parents[2]


def built(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "index.html").write_text(text)
    return folder


def test_versions_stand_beside_each_other(tmp_path: Path) -> None:
    published = tmp_path / "published"
    for number, version in enumerate(("0.9.0", "0.10.2", "0.10.3", "0.2.0")):
        add_version(built(tmp_path / str(number), version), published, version)
    assert json.loads((published / "versions.json").read_text()) == [
        {"version": "0.10", "title": "0.10.3", "aliases": ["latest"]},
        {"version": "0.9", "title": "0.9.0", "aliases": []},
        {"version": "0.2", "title": "0.2.0", "aliases": []},
    ]
    assert {each.parent.name: each.read_text() for each in published.glob("*/index.html")} == {
        "0.10": "0.10.3", "0.9": "0.9.0", "0.2": "0.2.0",
    }  # fmt: skip
    assert 'content="0; url=0.10/"' in (published / "index.html").read_text()


def test_a_page_that_is_gone_is_gone_in_its_version(tmp_path: Path) -> None:
    first = built(tmp_path / "first", "old")
    (first / "gone.html").write_text("")
    add_version(first, tmp_path / "published", "1.0.0")
    add_version(built(tmp_path / "second", "new"), tmp_path / "published", "1.0.1")
    assert [each.name for each in (tmp_path / "published/1.0").iterdir()] == ["index.html"]


def test_the_social_card_has_the_size_that_sites_ask_for() -> None:
    start = (ROOT / "docs/images/social-card.png").read_bytes()[:24]
    assert struct.unpack(">II", start[16:24]) == (1200, 630)
