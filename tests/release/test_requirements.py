"""What modules import is what the project asks for, not what comes along with something else."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
_NOT_REQUIRED = {
    "podium": "itself",
    "llvmlite": "Numba asks for exactly one version of it",
    "_typeshed": "for type checkers alone",
}


def _imported(source: str) -> Iterator[str]:
    """Yield the first part of the name of every module that a text imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _undeclared(sources: dict[str, str], project: dict) -> dict[str, set[str]]:
    """Return the packages that no requirement of the project names, each with who imports it."""
    texts = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {canonicalize_name(Requirement(text).name) for group in texts for text in group}
    distributions = packages_distributions()
    found: dict[str, set[str]] = {}
    for name, source in sources.items():
        for package in _imported(source):
            if package in sys.stdlib_module_names or package in _NOT_REQUIRED:
                continue
            if not declared & {canonicalize_name(each) for each in distributions.get(package, [])}:
                found.setdefault(package, set()).add(name)
    return found


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_imported_package_is_required(project: dict) -> None:
    files = (ROOT / "src").rglob("*.py")
    sources = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}
    assert _undeclared(sources, project) == {}


def test_a_package_that_comes_along_is_told(project: dict) -> None:
    del project["optional-dependencies"]["studio"]
    source = "def f():\n    from markupsafe import Markup\n    import numpy.linalg, json\n"
    assert _undeclared({"a.py": source}, project) == {"markupsafe": {"a.py"}}
