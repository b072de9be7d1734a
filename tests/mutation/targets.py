"""The modules that are mutated, and the tests that are to notice."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutation.operators import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
SOURCE = "src/podium"
GOAL = 0.85

# The tests of each area, beside those of its own name and the examples in its docstrings.
_MORE_TESTS = {
    "data": ("tests/front_door",),
    "errors": ("tests/test_errors.py",),
    "http_answers": ("tests/studio/attacks/test_slow_answers.py",),
    "http_limits": ("tests/serving/test_connections.py",),
    "kernels": ("tests/test_kernels.py", "tests/test_plain_kernels.py"),
    "logs": ("tests/test_logs.py",),
    "measures": ("tests/front_door",),
    "registry": ("tests/test_registry.py",),
    "reports": ("tests/measures", "tests/explain", "tests/front_door"),
    "scorers": ("tests/export", "tests/rankers", "tests/serving", "tests/explain"),
    "threads": ("tests/test_threads.py",),
}


@dataclass(frozen=True)
class Module:
    """A source file to mutate.

    Attributes:
        name: Its name under ``podium``, such as ``measures.statistics``.
        file: Its path, relative to the project's root.
        text: Its text when the run began.
    """

    name: str
    file: str
    text: str

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests and the docstrings' examples that may cover it: its area's."""
        of_its_name = f"tests/{self.area}", f"{SOURCE}/{self.area}", f"{SOURCE}/{self.area}.py"
        places = (*of_its_name, *_MORE_TESTS.get(self.area, ()))
        return tuple(place for place in places if (ROOT / place).exists())

    @property
    def area(self) -> str:
        """The package or module of ``podium`` that it is in."""
        return self.name.partition(".")[0]

    @property
    def plain(self) -> bool:
        """Whether it is measured without compiling.

        Compiled loops leave no trace in coverage and would be compiled again for each mutant.
        """
        if self.name.startswith("losses."):  # compiled into loops elsewhere, undecorated
            return True
        return bool(re.search(r"^@(kernel|fast_kernel|inner|measure\b)", self.text, re.MULTILINE))

    def mutants(self) -> list[Mutant]:
        """All its mutants but for those known to change nothing that could be seen."""
        known = _equivalent()
        return [
            mutant
            for mutant in mutants_of(self.file, self.text)
            if (mutant.file, mutant.where, mutant.before, mutant.after) not in known
        ]


def modules(names: list[str]) -> list[Module]:
    """Modules by name: all without one, an area's by its name, one by the last part of its name."""
    known = _all()
    if not names:
        return known
    found = []
    for name in names:
        asked = [module for module in known if module.area == name] or [
            module
            for module in known
            if module.name == name
            or module.name.startswith(f"{name}.")
            or module.name.endswith(f".{name}")
        ]
        if not asked:
            raise SystemExit(f"No module that is mutated is called {name!r}: see {__file__}.")
        found += asked
    return list(dict.fromkeys(found))


def _all() -> list[Module]:
    found = []
    for file in sorted((ROOT / SOURCE).rglob("*.py")):
        path = file.relative_to(ROOT)
        name = ".".join(path.with_suffix("").parts[2:]).removesuffix(".__init__")
        is_history = "migrations" in path.parts
        if not is_history and name not in ("__init__", "__main__"):  # which only import
            found.append(Module(name, str(path), file.read_text()))
    return found


@cache
def _equivalent() -> set[tuple[str, str, str, str]]:
    entries = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text())
    return {
        (entry["file"], entry["where"], entry["before"], entry["after"])
        for entry in entries.get("mutant", [])
    }
