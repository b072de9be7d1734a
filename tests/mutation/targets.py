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

# The areas, the tests of each, and its modules where not all of them are held to the goal.
_TESTS = {
    "measures": ("tests/measures", "src/podium/measures"),
    "losses": ("tests/losses", "src/podium/losses"),
    "judging": ("tests/judging", "src/podium/judging"),
    "aggregation": ("tests/aggregation", "src/podium/aggregation"),
    "rankers": ("tests/rankers", "src/podium/rankers"),
    "utility": ("tests/utility", "src/podium/utility"),
    "data": ("tests/data", "src/podium/data"),
    "studio": ("tests/studio", "src/podium/studio"),
}
_ONLY = {
    "data": ("labels",),
    "studio": (
        "judging.service",
        "judging.next_task",
        "judging.unit_of_work",
        "accounts.service",
        "accounts.members",
        "web.access",
        "web.actions",
    ),
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
        """The folders of tests and of docstrings' examples that may cover it."""
        return _TESTS[self.name.partition(".")[0]]

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
        asked = [
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
    for area in _TESTS:
        for file in sorted((ROOT / SOURCE / area).rglob("*.py")):
            path = file.relative_to(ROOT)
            name = ".".join(path.with_suffix("").parts[2:])
            wanted = area not in _ONLY or name in {f"{area}.{each}" for each in _ONLY[area]}
            if file.name != "__init__.py" and wanted:
                found.append(Module(name, str(path), file.read_text()))
    return found


@cache
def _equivalent() -> set[tuple[str, str, str, str]]:
    entries = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text())
    return {
        (entry["file"], entry["where"], entry["before"], entry["after"])
        for entry in entries.get("mutant", [])
    }
