"""The words that CONTRIBUTING.md asks not to use."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    file
    for folder in ("src", "studies", "benchmarks", "examples", "docs")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
TEXTS = [
    *SOURCES,
    *PAGES,
    *(file for file in sorted((ROOT / "tests").rglob("*.py")) if file != Path(__file__)),
    *sorted((ROOT / "src").rglob("*.html")),
    *sorted((ROOT / "web").rglob("*.ts")),
    ROOT / "CHANGELOG.md",
]
NAMES = re.compile(
    r"(?:^|_)(?:found|given|wanted|said|told|desk|shelf|room|house|endless(?=_score)|settle(?=_))(?:_|$)"
)
PHRASES = re.compile(
    r"\bwhole numbers?\b|\btruths\b"
    r"|(?<!there )\b(?:is|are) no (?:label|measure|number|loss|query|ranker|file|part|error)s?\b"
    r"|\bmend(?:s|ed|ing)?\b|\bfor nothing\b|\b(?:score|value|row|document|query) a line\b"
    r"|\bone a (?:query|line|row|document)\b",
    re.IGNORECASE,
)
TELLS = re.compile(r"\btells\b(?!.* (?:apart|from)\b)")
"""People tell; a file or a test says, shows or returns."""


def names_of(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def bad_names(text: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in names_of(text) if NAMES.search(name.lower())]


def bad_phrases(text: str) -> list[tuple[int, str]]:
    return [
        (number, match[0])
        for number, line in enumerate(text.splitlines(), start=1)
        for match in PHRASES.finditer(line)
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("found = 1", ["found"]),
        ("def f(given): pass", ["given"]),
        ("class Desk: pass", ["Desk"]),
        ("queries_wanted, rows = f()", ["queries_wanted"]),
        ("foundation = 1\nprint(found)", []),
    ],
)
def test_names_are_noticed(text, names):
    assert [name for _, name in bad_names(text)] == names


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("Give a whole number.", ["whole number"]),
        ("'x' is no label.\nMend it.", ["is no label", "Mend"]),
        ("one a query, a score a line", ["one a query", "score a line"]),
        ("There is no label; recommended for anything.", []),
    ],
)
def test_phrases_are_noticed(text, phrases):
    assert [phrase for _, phrase in bad_phrases(text)] == phrases


def test_names_say_what_they_hold():
    assert {path: bad for path in SOURCES if (bad := bad_names(path.read_text()))} == {}


def test_names_of_examples_say_what_they_hold():
    blocks = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
    examples = [(path, block) for path in PAGES for block in blocks.findall(path.read_text())]
    examples += [
        (path, "".join(cell["source"]))
        for path in (ROOT / "docs").rglob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    assert len(examples) > 50
    assert [(path, bad) for path, block in examples if (bad := bad_names(block))] == []


def test_no_docstring_or_comment_begins_with_of():
    of = re.compile(r'(?:^\s*"""|^\s*# |^\s+\w+: )Of ')
    assert {
        path: lines
        for path in TEXTS
        if (lines := [line for line in path.read_text().splitlines() if of.match(line)])
    } == {}


def test_what_is_no_person_tells_nothing():
    texts = [*SOURCES, *PAGES, ROOT / "CHANGELOG.md"]
    assert TELLS.search("The report tells what was read.")
    assert not TELLS.search("A threshold tells zeros from missing values.")
    assert {
        path: lines
        for path in texts
        if (lines := [line for line in path.read_text().splitlines() if TELLS.search(line)])
    } == {}


def test_sentences_are_idiomatic():
    assert {path: bad for path in TEXTS if (bad := bad_phrases(path.read_text()))} == {}
