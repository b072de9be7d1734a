"""Every public name is documented where it is defined, and every function with an example."""

import ast
import inspect
import re
from collections import defaultdict
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import podium
from docs.hooks import PACKAGES
from podium.errors import PodiumError
from tests.fresh_interpreter import loaded


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_have_an_example(package: str) -> None:
    module = import_module(f"podium.{package}")
    functions = [name for name in module.__all__ if isinstance(getattr(module, name), FunctionType)]
    without = [
        name for name in functions if ">>> " not in (inspect.getdoc(getattr(module, name)) or "")
    ]
    assert without == []


@pytest.mark.parametrize("package", PACKAGES)
def test_public_classes_are_documented(package: str) -> None:
    module = import_module(f"podium.{package}")
    classes = [name for name in module.__all__ if isinstance(getattr(module, name), type)]
    assert [name for name in classes if not getattr(module, name).__doc__] == []


ROOT = Path(__file__).parents[1]
MOST_NAMES = 200
"""How many names users may have to choose from."""


def test_a_name_is_public_in_one_package() -> None:
    # Those of podium itself are the most used ones, again.
    homes = defaultdict(list)
    for package in PACKAGES:
        for name in import_module(f"podium.{package}").__all__:
            homes[name].append(package)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
    assert len(homes) <= MOST_NAMES


def test_podium_itself_has_few_names() -> None:
    packages = {package.partition(".")[0] for package in PACKAGES} | {"studio"}
    names = set(podium.__all__) - packages
    assert len(names) <= 30
    elsewhere = {
        name: getattr(import_module(f"podium.{package}"), name)
        for package in PACKAGES
        for name in set(import_module(f"podium.{package}").__all__) & names
    }
    assert all(getattr(podium, name) is value for name, value in elsewhere.items())
    assert all(issubclass(getattr(podium, name), PodiumError) for name in names - set(elsewhere))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_used(package: str) -> None:
    # A name that nothing uses, neither another file of the package nor a page, an example, a
    # benchmark or a test, is one that nobody needs: remove it or make it private.
    module = import_module(f"podium.{package}")
    words = _words()
    unused = []
    for name in module.__all__:
        home = _home(getattr(module, name), name, Path(module.__file__ or "").parent)
        if not any(name in held for file, held in words.items() if file != home):
            unused.append(name)
    assert unused == []


def test_no_two_public_classes_have_the_same_name() -> None:
    # Tables of the studio are not exported, but stand next to the classes of podium.data.
    homes: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "src/podium").rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_the_site_needs_no_extras() -> None:
    modules = loaded(
        "import sys\n"
        "extras = ('sklearn', 'torch', 'mlflow', 'ray', 'fastapi', 'lightgbm')\n"
        "sys.modules.update(dict.fromkeys(extras))\n"
        "from docs import hooks\n"
        'page = hooks._names(); assert all(f"## podium.{each}" in page for each in hooks.PACKAGES)'
    )
    assert "podium.rankers" not in modules


@cache
def _words() -> dict[Path, frozenset[str]]:
    """The words of every file but this one and those that only list names."""
    files = [
        file
        for folder in ("src/podium", "docs", "examples", "tests", "benchmarks", "studies")
        for ending in ("py", "md")
        for file in (ROOT / folder).rglob(f"*.{ending}")
        if file.name != "__init__.py" and file != Path(__file__)
    ]
    files.append(ROOT / "README.md")
    return {file: frozenset(re.findall(r"\w+", file.read_text())) for file in files}


def _home(value: object, name: str, package: Path) -> Path:
    """The file that defines a name; for a constant, the one of its package that assigns it."""
    with suppress(TypeError, OSError):
        return Path(inspect.getfile(value))  # type: ignore[arg-type]
    assigned = re.compile(rf"^{name}\b.*=|^def {name}\(", re.M)
    return next(file for file in package.rglob("*.py") if assigned.search(file.read_text()))
