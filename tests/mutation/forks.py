"""Copies of the project, and processes that have loaded one of them with its tests."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from tests.mutation.targets import ROOT

BUILD = ROOT / "build" / "mutation"
_COPIED = ("src", "tests", "benchmarks", "examples", "docs", "web")
_FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "package.json", "mkdocs.yml", "Makefile")
_MEMORY = 24 << 30


def one_at_a_time() -> IO[bytes]:
    """Refuse to run beside another run, which changes the same copies; keep what is returned."""
    BUILD.mkdir(parents=True, exist_ok=True)
    file = (BUILD / "lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit("Mutants of this project are run already. Wait for that to end.") from None
    return file


@dataclass(frozen=True)
class Tree:
    """A copy of the project that one worker changes."""

    root: Path

    @classmethod
    def made(cls, name: str) -> Tree:
        """A fresh copy, with the byte code that is there: a changed file's is older than it."""
        root = BUILD / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        skipped = shutil.ignore_patterns("*.nb[ic]", ".hypothesis")
        for folder in _COPIED:
            shutil.copytree(ROOT / folder, root / folder, ignore=skipped)
        for file in _FILES:
            shutil.copy(ROOT / file, root)
        modules = ROOT / "node_modules"
        if modules.exists():
            (root / "node_modules").symlink_to(modules)
        shared = BUILD / "shared"  # tests look for data beside the project
        if not shared.is_symlink():
            shared.symlink_to(ROOT.parent / "shared")
        return cls(root)

    @contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """The tree with another text in one file."""
        path = self.root / file
        before, times = path.read_bytes(), path.stat()
        path.write_text(text)
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


class Host:
    """A process that has loaded a tree's package and tests, and forks a child for each request."""

    def __init__(self, tree: Tree, plain: bool, serve: Callable[[IO[str], Path], None]) -> None:
        self.answer = tree.root / "answer.json"
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            try:
                ours.close()
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                _move_to(tree, plain)
                serve(theirs.makefile("rw"), self.answer)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        theirs.close()
        self._socket, self._file = ours, ours.makefile("rw")

    def ask(self, **request: Any) -> None:
        """Send a request."""
        self.answer.unlink(missing_ok=True)
        with suppress(BrokenPipeError):  # whoever waits for the answer sees that it ended
            self._file.write(json.dumps(request) + "\n")
            self._file.flush()

    def answered(self, seconds: float) -> dict[str, Any] | None:
        """What it answers within some seconds; ``{"how": "died"}`` if it has ended."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return None
        with suppress(ConnectionResetError):
            if line := self._file.readline():
                return json.loads(line)
        return {"how": "died", "seconds": 0.0}

    def close(self) -> float:
        """End it, and return the processor time that it and its children took."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGTERM)
        _, _, used = os.wait4(self._pid, 0)
        self._file.close()
        self._socket.close()
        return used.ru_utime + used.ru_stime


def first_answers(
    requests: list[dict[str, Any]], hosts: list[tuple[Tree, Host]]
) -> Iterator[tuple[dict[str, Any], Tree, dict[str, Any]]]:
    """The answer to each request, of whichever host is free, in the order in which they end.

    The files of a request that changes one are changed on disk too, for processes that tests start.
    """
    waiting, free = list(requests), list(hosts)
    running: list[tuple[dict[str, Any], Tree, Host, ExitStack]] = []
    try:
        while waiting or running:
            while waiting and free:
                request, (tree, host), change = waiting.pop(0), free.pop(), ExitStack()
                if "after" in request:
                    change.enter_context(tree.changed(request["file"], request["after"]))
                host.ask(**request)
                running.append((request, tree, host, change))
            for each in list(running):
                request, tree, host, change = each
                answer = host.answered(0.02)
                if answer is not None:
                    running.remove(each)
                    change.close()
                    free.append((tree, host))
                    if answer["how"] == "done":
                        answer["result"] = json.loads(host.answer.read_text())
                    yield request, tree, answer
    finally:
        for *_, change in running:
            change.close()


# What the tests of an area import beside the package and leave alone.
_HEAVY = {
    "": (
        "numba", "numpy", "pytest", "coverage", "hypothesis.extra.numpy", "hypothesis.strategies",
        "pyarrow.parquet", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn.base",
        "typer.testing",
    ),
    "studio": (
        "sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite",
        "psycopg", "fastapi.testclient", "alembic.command", "authlib.jose", "markdown_it",
        "babel.messages.pofile", "PIL.Image", "prometheus_client", "structlog", "argon2",
        "pydantic_settings", "jinja2", "nh3", "httpx2", "cryptography.x509",
    ),
}  # fmt: skip


def preload(area: str = "") -> None:
    """Load what tests import and mutants leave alone, so that children need not."""
    for name in _HEAVY.get(area, ()):
        import_module(name)
    if any(name.partition(".")[0] == "podium" for name in sys.modules):
        raise RuntimeError("podium was loaded before the fork: no mutant would be seen")


def _move_to(tree: Tree, plain: bool) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    log = os.open(tree.root / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(tree.root)
    source = str(tree.root / "src")
    os.environ |= {
        "CI": "true",  # the same examples each time
        "PYTHONPATH": source,
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_DISABLE_JIT": str(int(plain)),
        "NUMBA_CACHE_DIR": str(tree.root.with_name(f"{tree.root.name}-numba")),
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    sys.dont_write_bytecode = True
    from numba.core import config

    config.reload_config()
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    kept = [path for path in sys.path if not (Path(path or ".") == ROOT or path.endswith("/src"))]
    sys.path[:] = [source, str(tree.root), *kept]
