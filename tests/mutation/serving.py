"""What a host does: pytest collects once, and a child of it runs the tests of each request."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import CodeType, FunctionType
from typing import IO, Any

from tests.mutation.forks import Tree
from tests.mutation.in_place import changed_functions, functions_of
from tests.mutation.targets import SOURCE


@dataclass(eq=False)
class Serve:
    """Collects tests, and answers requests until their end.

    A request names tests (``tests``), how long they may take (``cpu``, ``seconds``) and either a
    file whose text is another (``file``, ``before``, ``after``) or ``mapped``, a file of tests; or
    modules to ``load``, for children to come. The answer has its ``seconds`` of processor time and
    ``how`` it went: "done", "died", "timeout", "broken" if tests could not be loaded, or "fresh" if
    the change needs a process that loads the module anew.
    """

    tree: Tree
    slow: bool
    paths: list[str]
    area: str = ""

    def __call__(self, requests: IO[str], answer: Path) -> None:
        import pytest

        self._requests, self._answer = requests, answer
        self._result: Callable[[], Any] | None = None  # in a child only
        self._living: dict[str, dict[tuple[str, int], list[FunctionType]]] = {}
        self._broken: list[str] = []
        self._slow: list[str] = []
        kept = ["-p", "no:cacheprovider", "--basetemp", str(self.tree.root / "tmp")]
        kept += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--doctest-modules"]
        marks = "not long" if self.slow else "not slow"
        options = ["-q", "--no-header", "--continue-on-collection-errors", "-m", marks, *kept]
        pytest.main([*self.paths, *options], plugins=[self])
        if self._result is not None:
            part = answer.with_suffix(".part")
            part.write_text(json.dumps(self._result()))
            part.rename(answer)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._broken.append(report.nodeid)

    def pytest_deselected(self, items: list[Any]) -> None:
        self._slow += [item.nodeid for item in items]

    def pytest_runtestloop(self, session: Any) -> bool | None:
        if self.area:
            # What runs when a module is loaded belongs to no test, and not to the first to load it.
            load_modules(f"podium.{self.area}")
        session.testsfailed = 0  # files that cannot be loaded are reported below
        for line in self._requests:
            request = json.loads(line)
            if "load" in request:
                for name in request["load"]:
                    with suppress(Exception):  # what only the tests can load
                        import_module(name)
                self._reply("loaded")
                continue
            changes = self._changes(request)
            if self._broken and not self.area:
                self._reply("broken")
            elif changes is None:
                self._reply("fresh")
            elif pid := os.fork():
                self._reply(*_waited(pid, request["seconds"], self._answer))
            else:
                self._become_child(session, request, changes)
                return None  # pytest goes on to run the tests that are left
        return True

    def _changes(self, request: dict[str, Any]) -> list[tuple[FunctionType, CodeType]] | None:
        """The functions to change; none of them if nothing changes or it was changed on disk."""
        if "before" not in request:
            return []
        path = str(self.tree.root / request["file"])
        if path not in self._living:
            self._living = {path: functions_of(path)}
        return changed_functions(path, request["before"], request["after"], self._living[path])

    def _reply(self, how: str, used: float = 0.0) -> None:
        self._requests.write(json.dumps({"how": how, "seconds": used}) + "\n")
        self._requests.flush()

    def _become_child(
        self, session: Any, request: dict[str, Any], changes: list[tuple[FunctionType, CodeType]]
    ) -> None:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (request["cpu"], request["cpu"]))
        for function, code in changes:
            function.__code__ = code
        if "mapped" in request:
            plugin: Any = Mapping(self.tree, request["mapped"], self._broken, self._slow)
            session.items[:] = [each for each in session.items if plugin.holds(each.nodeid)]
        else:
            plugin = FirstFailure(session)
            order = {test: number for number, test in enumerate(request["tests"])}
            chosen = [each for each in session.items if each.nodeid in order]
            session.items[:] = sorted(chosen, key=lambda item: order[item.nodeid])
        session.config.pluginmanager.register(plugin)
        self._result = plugin.result


def _waited(pid: int, seconds: float, answer: Path) -> tuple[str, float]:
    """Wait for a child, end all that it started, and return how it went and its processor time."""
    deadline, pause, ended = time.monotonic() + seconds, 0.002, 0
    signal.signal(signal.SIGTERM, lambda *_: _end_with(pid))
    while not ended and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(0.05, pause * 1.2)
        ended, status, used = os.wait4(pid, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not ended:
        _, status, used = os.wait4(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        how = "timeout"
    else:
        how = "done" if answer.exists() else "died"
    return how, used.ru_utime + used.ru_stime


def _end_with(pid: int) -> None:
    """End this process with its child, which leads a group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os._exit(0)


class FirstFailure:
    """Stops at the first test that fails, and remembers it."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._failed: str | None = None

    def result(self) -> str | None:
        return self._failed

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self._failed is None:
            self._failed = report.nodeid
            self._session.shouldfail = "a test noticed"


class Mapping:
    """The lines that each test of a file reaches, and how long it takes."""

    def __init__(self, tree: Tree, file: str, broken: list[str], slow: list[str]) -> None:
        import coverage

        self._tree, self._file = tree, file
        self._before = set(sys.modules)
        self._times: dict[str, float] = {}
        self._left: dict[str, list[str]] = {
            "failed": list(dict.fromkeys(filter(self.holds, broken))),  # as tests and as examples
            "skipped": [],
            "slow": list(filter(self.holds, slow)),
        }
        self._coverage = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[f"{tree.root / SOURCE}/*"],
            messages=False,
        )
        self._coverage.start()

    def holds(self, nodeid: str) -> bool:
        """Whether the file, or the folder whose docstrings are meant, has a test."""
        file = nodeid.partition("::")[0]
        return file == self._file or file.startswith(f"{self._file}/")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)
        self._started = _processor_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            tests = self._left[report.outcome]
            tests += [report.nodeid] if report.nodeid not in tests else []

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._coverage.switch_context("")
        self._times[nodeid] = _processor_time() - self._started

    def result(self) -> dict[str, Any]:
        self._coverage.stop()
        left = {test for tests in self._left.values() for test in tests}
        seconds = {test: took for test, took in self._times.items() if test not in left}
        lines: dict[str, dict[str, list[int]]] = {test: {} for test in seconds}
        with warnings.catch_warnings(action="ignore"):  # that nothing was reached
            data = self._coverage.get_data()
        for measured in data.measured_files():
            name = str(Path(measured).relative_to(self._tree.root))
            for line, contexts in data.contexts_by_lineno(measured).items():
                for test in contexts:
                    if test in lines:
                        lines[test].setdefault(name, []).append(line)
        read = self._digests(filter(None, map(self._place, list(sys.modules.values()))))
        loaded = sorted(filter(_is_quiet, set(sys.modules) - self._before))
        return {
            "seconds": seconds,
            "lines": lines,
            "read": read,
            "left": self._left,
            "loaded": loaded,
        }

    def _digests(self, files: Iterable[str]) -> dict[str, str]:
        # The copy's, which was read: the project may have changed since. Other files of tests were
        # loaded beside this one, but are not read by it.
        return {
            file: hashlib.sha256((self._tree.root / file).read_bytes()).hexdigest()[:16]
            for file in sorted(files)
            if file == self._file or not Path(file).name.startswith("test_")
        }

    def _place(self, module: Any) -> str | None:
        file = Path(getattr(module, "__file__", None) or "/")
        inside = file.is_relative_to(self._tree.root)
        return str(file.relative_to(self._tree.root)) if inside else None


def _processor_time() -> float:
    """Seconds of this process and its children so far, which other work does not make more."""
    return sum(os.times()[:4])


def _is_quiet(module: str) -> bool:
    """Whether loading a module starts no threads, which a child would lack; tests stay out too."""
    file = getattr(sys.modules[module], "__file__", None)
    return file is not None and module.partition(".")[0] not in ("jax", "ray", "tests")


@cache
def load_modules(name: str) -> None:
    """Load a package with all its modules, but for those that cannot be loaded by themselves."""
    package = import_module(name)
    for module in walk_packages(getattr(package, "__path__", []), f"{name}.", lambda _: None):
        with suppress(Exception):  # such as Alembic's env.py
            import_module(module.name)
