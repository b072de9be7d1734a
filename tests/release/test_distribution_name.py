"""The distribution is ``podium-rank``: ``podium`` on the index is somebody else's project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import podium

ROOT = Path(__file__).parents[2]
_OLD = re.compile(r"(?<![\w/.-])podium\[|pip install (-\S+ )*podium(?![\w-])|podium-0\.1\.0-py3")
_MAY = {"CHANGELOG.md", Path(__file__).name}


def test_nothing_installs_the_project_of_the_former_name() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    old = []
    for name in tracked:
        path = ROOT / name
        if path.name in _MAY or path.suffix in {".png", ".svg", ".lock"} or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        old += [f"{name}: {match[0]}" for match in _OLD.finditer(text)]
    assert not old


def test_another_package_of_the_same_import_name_is_named(tmp_path: Path) -> None:
    package = tmp_path / "podium"
    package.mkdir()
    shutil.copy(podium.__file__, package)
    (package / "vocab.py").touch()  # a module of podium-nlp
    done = subprocess.run(
        [sys.executable, "-c", "import podium"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "ImportError: the package podium-nlp is installed" in done.stderr
