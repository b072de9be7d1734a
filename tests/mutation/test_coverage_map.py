"""What runs when modules are loaded is kept apart from what tests run."""

import sys
from pathlib import Path

import pytest

from tests.mutation.coverage_map import area_of, load_modules


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("tests/studio/attacks/test_members.py", "studio"),
        ("tests/measures/test_evaluate.py", "measures"),
        ("src/podium/studio", "studio"),
    ],
)
def test_files_and_folders_are_about_a_package(path: str, area: str) -> None:
    assert area_of(path) == area


def test_all_modules_are_loaded_but_for_those_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "made_up" / "inner"
    inner.mkdir(parents=True)
    for file, text in {
        "__init__.py": "",
        "broken.py": "raise ValueError",
        "inner/__init__.py": "",
        "inner/last.py": "",
    }.items():
        (tmp_path / "made_up" / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    load_modules("made_up")
    loaded = {name for name in sys.modules if name.startswith("made_up")}
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    assert loaded == {"made_up", "made_up.inner", "made_up.inner.last"}
