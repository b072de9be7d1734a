"""What runs when modules are loaded is kept apart from what tests run."""

import sys
from pathlib import Path

import pytest

from tests.mutation.coverage_map import MappedFile
from tests.mutation.serving import load_modules


def test_a_test_that_fails_by_itself_is_counted_and_not_run() -> None:
    file = MappedFile("tests/a.py", {"one": 0.1, "two": 0.2}, {"one": {"a": [1, 2]}, "two": {}})
    assert file.reaching("a", 2, 3) == ["one"]
    file.leave_out("one")
    file.leave_out("one")
    assert file.reaching("a", 2, 3) == []
    assert file.left == {"failed": ["one"]}


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
