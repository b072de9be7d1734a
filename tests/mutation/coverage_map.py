"""Which tests reach which lines, and how long each takes: measured once per test file and tree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path

from tests.mutation.forks import BUILD, Host, Tree, first_answers
from tests.mutation.targets import ROOT

_LONGEST = 900


@dataclass
class MappedFile:
    """The tests of a file that pass.

    Attributes:
        path: The file, or a folder of the package whose docstrings have examples.
        seconds: The processor time that each test takes.
        lines: The lines of source files that each test reaches.
        read: The files that were loaded, of the package and of the tests, with their digests.
        left: The tests that are left out, by the reason: "failed", "skipped" or "slow".
        loaded: Modules that the tests load while they run.
    """

    path: str
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)
    loaded: list[str] = field(default_factory=list)

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

    def leave_out(self, test: str) -> None:
        """Count a test that fails by itself, without a mutant, among those that fail."""
        if self.lines.pop(test, None) is not None:
            self.left.setdefault("failed", []).append(test)

    @cached_property
    def digest(self) -> str:
        """The digest of all that was read."""
        return hashlib.sha256(json.dumps(self.read).encode()).hexdigest()


def test_files(places: Iterable[str]) -> list[str]:
    """The files of tests, and the folders whose docstrings have examples, relative to the root."""
    found = []
    for place in places:
        files = sorted((ROOT / place).rglob("test_*.py"))
        files = [file for file in files if "browser" not in file.parts]  # which start slowly
        found += [str(file.relative_to(ROOT)) for file in files] or [place]
    return found


def measured(
    files: list[str], plain: bool, slow: bool, hosts: list[tuple[Tree, Host]]
) -> Iterator[MappedFile]:
    """The map of each test file, from the disk where it was measured before."""
    waiting = []
    for file in files:
        kept = _still_true(_kept(file, plain, slow))
        if kept is None:
            waiting.append(file)
        else:
            yield kept
    requests = [{"mapped": file, "cpu": _LONGEST, "seconds": _LONGEST} for file in waiting]
    for request, tree, answer in first_answers(requests, hosts):
        file = str(request["mapped"])
        print(f"  mapped {file}: {answer['seconds']:.0f} s, {answer['how']}", flush=True)
        if answer["how"] == "died":
            raise SystemExit(f"The tests of {file} ended their process: see {tree.root}/log.txt")
        result = answer.get("result") or {"left": {"slow": [file]}}  # tests that take too long
        found = MappedFile(file, **result)
        if not found.read:
            found.read = _digests([file])
        path = _kept(file, plain, slow)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(found)))
        yield found


def _kept(file: str, plain: bool, slow: bool) -> Path:
    name = file.removesuffix(".py").replace("/", ".")
    return BUILD / "maps" / f"{name}{'-plain' * plain}{'-slow' * slow}.json"


def _still_true(kept: Path) -> MappedFile | None:
    """A map from the disk, if nothing that its tests read has changed since."""
    if not kept.exists():
        return None
    found = MappedFile(**json.loads(kept.read_text()))
    return found if found.read == _digests(found.read) else None


def _digests(files: Iterable[str]) -> dict[str, str]:
    return {file: _digest(file) for file in files}


@cache
def _digest(file: str) -> str:
    path = ROOT / file
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""
