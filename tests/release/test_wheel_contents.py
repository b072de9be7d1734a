"""What belongs in a wheel."""

import zipfile
from pathlib import Path

from tests.release.wheel_contents import problems

GOOD = (
    "podium/__init__.py",
    "podium/__init__.pyi",
    "podium/py.typed",
    "podium/studio/locale/de/LC_MESSAGES/podium.po",
    "podium/studio/web/static/built/judge.js",
    "podium_rank-0.2.0.dist-info/METADATA",
)


def wheel(folder: Path, *names: str) -> Path:
    path = folder / "podium_rank-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_only_the_package_belongs_in_it(tmp_path: Path) -> None:
    assert problems(wheel(tmp_path, *GOOD)) == []
    others = (
        "tests/test_words.py",
        "studies/__main__.py",
        "podium/a.pyc",
        "podium-0.2.dist-info/x",
    )
    assert problems(wheel(tmp_path, *GOOD, *others)) == [
        f"{name} does not belong in the wheel" for name in others
    ]


def test_it_has_the_pages_the_languages_and_the_types(tmp_path: Path) -> None:
    assert problems(wheel(tmp_path, GOOD[0], GOOD[-1])) == [
        "podium/__init__.pyi is missing",
        "podium/py.typed is missing",
        "podium/studio/locale/de/LC_MESSAGES/podium.po is missing",
        "podium/studio/web/static/built/judge.js is missing",
    ]
