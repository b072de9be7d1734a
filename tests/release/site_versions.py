"""``python -m tests.release.site_versions SITE FOLDER``: the site as one of several versions.

The built site becomes FOLDER/0.1; FOLDER/versions.json lists all versions there, newest first, for
the menu that the theme shows, and FOLDER/index.html leads to the newest.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from packaging.version import Version

import podium

_LEAD = """<!doctype html>
<meta charset="utf-8">
<title>Podium</title>
<meta http-equiv="refresh" content="0; url={newest}/">
<link rel="canonical" href="{newest}/">
<p><a href="{newest}/">Podium {newest}</a></p>
"""


def add_version(site: Path, folder: Path, version: str) -> None:
    """Copy a site into the folder of its version, in place of what was there."""
    short = ".".join(version.split(".")[:2])
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / short, ignore_errors=True)
    shutil.copytree(site, folder / short)
    file = folder / "versions.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    titles = {each["version"]: each["title"] for each in known} | {short: version}
    newest, *_ = order = sorted(titles, key=Version, reverse=True)
    versions = [
        {"version": each, "title": titles[each], "aliases": ["latest"] if each == newest else []}
        for each in order
    ]
    file.write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(_LEAD.format(newest=newest), encoding="utf-8")


if __name__ == "__main__":
    add_version(Path(sys.argv[1]), Path(sys.argv[2]), podium.__version__)
