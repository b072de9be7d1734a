"""``python -m tests.release.size [COMMIT ...]``: the size of src now, and at commits.

Blank lines, comments, docstrings and migrations are not counted; imports are counted apart.
"""

from __future__ import annotations

import ast
import io
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from subprocess import run

ROOT = Path(__file__).parents[2]
SMALL = 40
"""The most lines of a small module, imports among them."""
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def sizes(files: Mapping[str, str]) -> dict[str, int]:
    """Counts for the texts of modules by their paths below src."""
    trees = {_name(path): ast.parse(text) for path, text in files.items()}
    lines = {_name(path): _lines(text, trees[_name(path)]) for path, text in files.items()}
    packages = {_name(path) for path in files if path.endswith("__init__.py")}
    importers = Counter(
        other
        for name, tree in trees.items()
        for other in _imported(tree, name if name in packages else name.rpartition(".")[0], trees)
        if other != name
    )
    return {
        "modules": len(files),
        "lines of code": sum(code for code, _ in lines.values()),
        "lines of imports": sum(imports for _, imports in lines.values()),
        "small modules": sum(sum(pair) <= SMALL for pair in lines.values()),
        "modules with one importer": sum(count == 1 for count in importers.values()),
        **{
            f"in {package}": sum(sum(lines[n]) for n in lines if f"{n}.".startswith(f"{package}."))
            for package in sorted({".".join(name.split(".")[:2]) for name in trees})
        },
    }


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _lines(text: str, tree: ast.Module) -> tuple[int, int]:
    code, imports = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT and token.string:
            code |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                imports |= set(range(node.lineno, (node.end_lineno or 0) + 1))
            case ast.Expr(value=ast.Constant(value=str())):
                code -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code - imports), len(imports)


def _imported(tree: ast.Module, package: str, modules: Mapping[str, object]) -> set[str]:
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            home = ".".join([*above, *filter(None, [node.module])])
            inner = {f"{home}.{alias.name}" for alias in node.names}
            names |= inner & set(modules) or {home}
    return names & set(modules)


def _at(commit: str) -> dict[str, str]:
    command = ["git", "archive", commit, "src"]
    archive = run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: held.read().decode() for m in tar if (held := tar.extractfile(m))}


if __name__ == "__main__":
    now = {str(path.relative_to(ROOT)): path.read_text() for path in ROOT.glob("src/**/*.py")}
    for title, files in [*((c, _at(c)) for c in sys.argv[1:]), ("now", now)]:
        kept = {
            path.removeprefix("src/"): text
            for path, text in files.items()
            if path.endswith(".py") and "migrations/versions" not in path
        }
        print(title)
        for what, count in sizes(kept).items():
            print(f"{count:10,} {what}")
