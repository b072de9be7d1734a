"""The lock files of deployments: exact versions with digests, made from pyproject.toml by uv.

``python -m tests.release.locks`` checks that each is what pyproject.toml asks for, offline;
``--write`` makes them anew, keeping versions that still fit, and ``--upgrade`` takes the newest.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "deploy/locks"
EXTRAS = {"studio": ("studio",), "serving": ("serving",)}
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)")


def requirements(project: dict, extras: tuple[str, ...]) -> Iterator[Requirement]:
    """Yield what a project with some extras asks for; extras of extras are followed."""
    for text in project["dependencies"]:
        yield Requirement(text)
    for extra in extras:
        for text in project["optional-dependencies"][extra]:
            requirement = Requirement(text)
            if canonicalize_name(requirement.name) == canonicalize_name(project["name"]):
                yield from requirements(project, tuple(sorted(requirement.extras)))
            else:
                yield requirement


def problems(project: dict, extras: tuple[str, ...], lock: str) -> list[str]:
    """Return what is wrong with a lock file: all that pip would find, and hosts that are named."""
    wrong = []
    pinned: dict[str, list[Version]] = {}
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        match = _PINNED.match(entry)
        if match is None:
            wrong.append(f"not a pinned version: {entry.splitlines()[0]}")
            continue
        if "--hash=sha256:" not in entry:
            wrong.append(f"no digest: {match[1]}")
        pinned.setdefault(canonicalize_name(match[1]), []).append(Version(match[2]))
    if re.search(r"https?://|--(?:extra-)?index-url|--find-links", lock):
        wrong.append("a host is named")
    for requirement in requirements(project, extras):
        versions = pinned.get(canonicalize_name(requirement.name))
        if versions is None:
            wrong.append(f"missing: {requirement}")
        elif not all(requirement.specifier.contains(each, prereleases=True) for each in versions):
            wrong.append(f"{requirement} is locked at {', '.join(map(str, versions))}")
    return wrong


def write(name: str, *, upgrade: bool) -> None:
    """Make a lock file by uv."""
    uv = shutil.which("uv", path=Path(sys.executable).parent) or "uv"
    command = [
        uv, "pip", "compile", "pyproject.toml", "--quiet", "--universal",
        "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate",
        *(f"--extra={extra}" for extra in EXTRAS[name]),
        "--output-file", str((LOCKS / f"{name}.txt").relative_to(ROOT)),
        *(["--upgrade"] if upgrade else []),
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    """Check the lock files, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--upgrade", action="store_true")
    arguments = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    count = 0
    for name, extras in EXTRAS.items():
        if arguments.write or arguments.upgrade:
            write(name, upgrade=arguments.upgrade)
        for problem in problems(project, extras, (LOCKS / f"{name}.txt").read_text()):
            print(f"deploy/locks/{name}.txt: {problem}")
            count += 1
    if count:
        print("Run 'make lock'.")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
