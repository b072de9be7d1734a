"""Which tests reach which lines, and how long each takes: measured once per test file and tree."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

from tests.mutation.forks import BUILD, Fork, Tree, forked
from tests.mutation.targets import ROOT, SOURCE

_LONGEST = 900.0


@dataclass
class TestFile:
    """The tests of a file that pass.

    Attributes:
        path: The file, or a folder of the package whose docstrings have examples.
        seconds: How long each test takes.
        lines: The lines of source files that each test reaches.
        read: The files that were loaded, of the package and of the tests, with their digests.
    """

    path: str
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)

    def reaching(self, file: str, first: int, last: int) -> list[str]:
        """The tests that reach one of the lines of a source file."""
        return [
            test
            for test, files in self.lines.items()
            if any(first <= line <= last for line in files.get(file, ()))
        ]

    def touching(self, file: str) -> list[str]:
        """The tests that reach any line of a source file."""
        return [test for test, files in self.lines.items() if files.get(file)]


def test_files(folders: Iterable[str]) -> list[str]:
    """The files of tests, and the folders whose docstrings have examples, relative to the root."""
    found = []
    for folder in folders:
        files = sorted((ROOT / folder).rglob("test_*.py"))
        files = [file for file in files if "browser" not in file.parts]  # which start slowly
        found += [str(file.relative_to(ROOT)) for file in files] or [folder]
    return found


def measured(files: list[str], plain: bool, slow: bool, trees: list[Tree]) -> Iterator[TestFile]:
    """The map of each test file, from the disk where it was measured before."""
    waiting = []
    for file in files:
        kept = _still_true(_kept(file, plain, slow))
        if kept is None:
            waiting.append(file)
        else:
            yield kept
    running: dict[str, tuple[Fork, Tree]] = {}
    free = list(trees)
    try:
        while waiting or running:
            while waiting and free:
                file, tree = waiting.pop(0), free.pop()
                work = _Work(file, slow, tree)
                running[file] = forked(tree, plain, _LONGEST, work), tree
            time.sleep(0.05)
            for file, (fork, tree) in list(running.items()):
                ended = fork.finished()
                if ended is None:
                    continue
                del running[file]
                free.append(tree)
                print(
                    f"  mapped {file}: {time.monotonic() - fork.started:.0f} s, {ended[0]}",
                    flush=True,
                )
                if ended[0] == "died":
                    raise SystemExit(
                        f"The tests of {file} ended their process: see {tree.root}/log.txt"
                    )
                found = TestFile(file, **(ended[1] or {}))  # nothing of tests that take too long
                if not found.read:
                    found.read = _digests([file])
                path = _kept(file, plain, slow)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(vars(found)))
                yield found
    finally:
        for fork, _ in running.values():
            fork.kill()


@dataclass
class _Work:
    file: str
    slow: bool
    tree: Tree

    def __call__(self) -> dict[str, Any]:
        import coverage
        import pytest

        package = self.tree.root / SOURCE
        measuring = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{package}/*"], messages=False
        )
        plugin = _Plugin(measuring, area_of(self.file))
        measuring.start()
        pytest.main([self.file, *options(self.tree, self.slow)], plugins=[plugin])
        measuring.stop()
        data = measuring.get_data()
        lines: dict[str, dict[str, list[int]]] = {test: {} for test in plugin.seconds}
        for measured_file in data.measured_files():
            name = str(Path(measured_file).relative_to(self.tree.root))
            for line, contexts in data.contexts_by_lineno(measured_file).items():
                for test in contexts:
                    if test in lines:
                        lines[test].setdefault(name, []).append(line)
        loaded = sorted(filter(None, map(_place_in(self.tree), list(sys.modules.values()))))
        return {"seconds": plugin.seconds, "lines": lines, "read": self._digests(loaded)}

    def _digests(self, files: Iterable[str]) -> dict[str, str]:
        # The copy's, which was read: the project may have changed since.
        return {
            file: hashlib.sha256((self.tree.root / file).read_bytes()).hexdigest()[:16]
            for file in files
        }


def _place_in(tree: Tree) -> Callable[[ModuleType], str | None]:
    def place(module: ModuleType) -> str | None:
        file = Path(getattr(module, "__file__", None) or "/")
        inside = file.is_relative_to(tree.root)
        return str(file.relative_to(tree.root)) if inside else None

    return place


class _Plugin:
    """Switches coverage's context with the test, and keeps the time of those that pass."""

    def __init__(self, measuring: Any, area: str) -> None:
        self._measuring = measuring
        self._area = area
        self._failed: set[str] = set()
        self._times: dict[str, float] = {}

    @property
    def seconds(self) -> dict[str, float]:
        return {test: took for test, took in self._times.items() if test not in self._failed}

    def pytest_collection_finish(self) -> None:
        # What runs when a module is loaded belongs to no test, and not to the first to load it.
        load_modules(f"podium.{self._area}")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._measuring.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._times[report.nodeid] = self._times.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self._measuring.switch_context("")


def area_of(path: str) -> str:
    """The package that a test file, or a folder of the package, is about.

    Example:
        >>> area_of("tests/studio/attacks/test_members.py"), area_of("src/podium/studio")
        ('studio', 'studio')
    """
    return path.removeprefix("tests/").removeprefix(f"{SOURCE}/").partition("/")[0]


def load_modules(package: str) -> None:
    """Load a package with all its modules, but for those that cannot be loaded by themselves."""
    for module in walk_packages(import_module(package).__path__, f"{package}.", lambda _: None):
        with suppress(Exception):  # such as Alembic's env.py
            import_module(module.name)


def options(tree: Tree, slow: bool) -> list[str]:
    """Pytest's options: which tests to run, where to keep files, and what was loaded before."""
    kept = ["-p", "no:cacheprovider", "--basetemp", str(tree.root / "tmp")]
    loaded = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return ["-q", "--no-header", "-m", "not long" if slow else "not slow", *kept, *loaded]


def _kept(file: str, plain: bool, slow: bool) -> Path:
    name = file.removesuffix(".py").replace("/", ".")
    return BUILD / "map" / f"{name}{'-plain' * plain}{'-slow' * slow}.json"


def _still_true(kept: Path) -> TestFile | None:
    """A map from the disk, if nothing that its tests read has changed since."""
    if not kept.exists():
        return None
    found = TestFile(**json.loads(kept.read_text()))
    return found if found.read == _digests(found.read) else None


def _digests(files: Iterable[str]) -> dict[str, str]:
    return {file: _digest(file) for file in files}


@cache
def _digest(file: str) -> str:
    path = ROOT / file
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""
