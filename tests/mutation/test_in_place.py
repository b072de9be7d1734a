"""Functions that live get the code of a mutant; what is outside of functions is loaded again."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.in_place import changed_functions, functions_of

SOURCE = """LIMIT = 5


def above(values, limit=LIMIT):
    return [value for value in values if value > limit]


def counter(start):
    def count():
        return start + 1

    return count


class Box:
    size = 2

    @property
    def double(self):
        return self.size * 2
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "made_up_boxes.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    loaded = import_module("made_up_boxes")
    monkeypatch.delitem(sys.modules, "made_up_boxes")
    return loaded


def change(module: ModuleType, before: str, after: str) -> bool:
    """Change the functions that live, and return whether that was possible."""
    path = str(module.__file__)
    text = SOURCE.replace(before, after)
    assert text != SOURCE
    changed = changed_functions(path, SOURCE, text, functions_of(path))
    for function, code in changed or []:
        function.__code__ = code
    return changed is not None


def test_functions_methods_and_what_is_inside_them_change(module: ModuleType) -> None:
    above, box = module.above, module.Box()  # as other modules hold them
    assert above([5, 6]) == [6]
    assert change(module, "value > limit", "value >= limit")
    assert above([5, 6]) == [5, 6]
    assert change(module, "start + 1", "start - 1")
    assert module.counter(3)() == 3 - 1
    assert change(module, "return start + 1", "return 1")  # a closure over nothing
    assert module.counter(7)() == 1
    assert change(module, "self.size * 2", "self.size / 4")
    assert box.double == 2 / 4


def test_a_change_that_moves_what_follows_changes_one_function(module: ModuleType) -> None:
    path = str(module.__file__)
    text = SOURCE.replace("        return start + 1\n", "        return (\n 0)\n")
    changed = changed_functions(path, SOURCE, text, functions_of(path))
    assert changed is not None
    assert [function.__name__ for function, _ in changed] == ["counter"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 5", "LIMIT = 6"),
        ("LIMIT = 5", "LIMIT = 5.0"),
        ("limit=LIMIT", "limit=None"),
        ("size = 2", "size = 3"),
    ],
)
def test_what_is_outside_of_functions_is_loaded_again(
    module: ModuleType, before: str, after: str
) -> None:
    assert not change(module, before, after)


def test_a_function_that_no_longer_lives_is_loaded_again(module: ModuleType) -> None:
    del module.above
    assert not change(module, "value > limit", "value >= limit")
