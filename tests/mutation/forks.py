"""Pytest in forked processes, each in its own copy of the project."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
        """A fresh copy, with byte code that is checked by its source's digest."""
        root = BUILD / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        skipped = shutil.ignore_patterns("__pycache__", ".hypothesis")
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


@dataclass
class Fork:
    """A running child: what it works on, where it writes, and when it must be done."""

    pid: int
    answer: Path
    deadline: float
    started: float

    def finished(self) -> tuple[str, Any] | None:
        """None while it runs; then "done" with its answer, "died", or "timeout"."""
        pid, _ = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() < self.deadline:
                return None
            self.kill()
            os.waitpid(self.pid, 0)
            return "timeout", None
        self.kill()  # whatever its tests left running
        if not self.answer.exists():
            return "died", None
        return "done", json.loads(self.answer.read_text())

    def kill(self) -> None:
        """End the child and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def preload() -> None:
    """Load what tests import and mutants leave alone, so that children need not."""
    import hypothesis.extra.numpy
    import hypothesis.strategies  # noqa: F401
    import numba  # noqa: F401
    import numpy as np  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.sparse
    import scipy.stats  # noqa: F401
    import sklearn.base  # noqa: F401
    import typer.testing  # noqa: F401

    if any(name.partition(".")[0] == "podium" for name in sys.modules):
        raise RuntimeError("podium was loaded before the fork: no mutant would be seen")


def forked(tree: Tree, plain: bool, seconds: float, work: Callable[[], Any]) -> Fork:
    """Start work in a child whose podium is the tree's; its result is written as JSON."""
    answer = tree.root / "answer.json"
    answer.unlink(missing_ok=True)
    now = time.monotonic()
    pid = os.fork()
    if pid:
        return Fork(pid, answer, now + seconds, now)
    try:  # in the child
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _move_to(tree, plain)
        result = work()
        part = answer.with_suffix(".part")
        part.write_text(json.dumps(result))
        part.rename(answer)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


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
