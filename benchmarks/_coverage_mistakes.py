"""Mistakes that leave documents or queries without judgments, and where that is reported."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

Run = list[tuple[str, str, float]]

_QUERIES = 52
_DOCUMENTS = 20
_RUN_ALL = """
import sys
from pathlib import Path
from podium.cli import main
for folder in sys.argv[2:]:
    files = [str(Path(folder, name)) for name in ("judged.qrels", "old.run", "new.run")]
    pages = [f"--output={folder}/page.{each}" for each in ("md", "html") if sys.argv[1] == "pages"]
    words = ["podium", "compare", *files, *pages, *(["--json"] if sys.argv[1] == "json" else [])]
    print(f"== {folder}", flush=True)
    kept, sys.argv = sys.argv, words
    try:
        main()
    except SystemExit as ended:
        print(f"status {ended.code}", flush=True)
    sys.argv = kept
"""


def _renamed(share: float) -> Callable[[Run], Run]:
    """Another id for a share of the documents of each query."""
    return lambda run: [
        (query, f"v2/{document}" if int(document[1:]) % _DOCUMENTS < share * _DOCUMENTS else
         document, score)
        for query, document, score in run
    ]  # fmt: skip


def _number(query: str) -> int:
    return int(query[1:])


MISTAKES: dict[str, Callable[[Run], Run]] = {
    "ids of documents with a prefix": _renamed(1),
    "ids of documents in capitals": lambda run: [(q, d.upper(), s) for q, d, s in run],
    "queries and documents exchanged": lambda run: [(d, q, s) for q, d, s in run],
    "ids of queries with another letter": lambda run: [(f"t{q[1:]}", d, s) for q, d, s in run],
    "ids of queries with leading zeros": lambda run: [
        (f"q{_number(q):02}", d, s) for q, d, s in run
    ],
    "10 of 52 queries": lambda run: [row for row in run if _number(row[0]) < 10],
    "a file that was cut off": lambda run: run[: len(run) // 3],
    "another year's queries, five in common": lambda run: [
        (f"q{_number(q) + _QUERIES - 5}", d, s) for q, d, s in run
    ],
    "three of five documents indexed anew": _renamed(0.6),
    "one query lost": lambda run: [row for row in run if row[0] != "q7"],
}
"""What may happen to a run, or to the join with its judgments."""


def planted(folder: Path) -> dict[str, Path]:
    """Write judgments, a run and a run with a mistake for each mistake, and one without any."""
    random = np.random.default_rng(0)
    rows = [(f"q{n}", f"d{_DOCUMENTS * n + m}") for n in range(_QUERIES) for m in range(_DOCUMENTS)]
    labels = random.integers(0, 4, len(rows))
    old, new = (
        [(*row, float(score)) for row, score in zip(rows, random.random(len(rows)), strict=True)]
        for _ in range(2)
    )
    folders = {}
    for number, (name, change) in enumerate({"none": list, **MISTAKES}.items()):
        folders[name] = path = folder / str(number)
        path.mkdir()
        lines = [f"{q} 0 {d} {label}\n" for (q, d), label in zip(rows, labels, strict=True)]
        (path / "judged.qrels").write_text("".join(lines))
        for tag, run in {"old": old, "new": change(new)}.items():
            text = "".join(f"{q} Q0 {d} 0 {score} {tag}\n" for q, d, score in run)
            (path / f"{tag}.run").write_text(text)
    return folders


def noticed(folder: Path) -> dict[str, set[str]]:
    """The mistakes that each form of output reports."""
    folders = planted(folder)
    forms = {
        "terminal": _printed("terminal", folders),
        "pipe": _printed("pages", folders),
        "JSON": _printed("json", folders),
    }
    failed = {name for name, text in forms["pipe"].items() if "Error: " in text}
    for form, ending in (("Markdown", "md"), ("HTML", "html")):
        pages = {name: path / f"page.{ending}" for name, path in folders.items()}
        # Instead of a page there is an error.
        forms[form] = {
            name: "Error: " if name in failed else page.read_text() for name, page in pages.items()
        }
    signs = ("Error: ", "have no documents", "documents are judged")
    return {
        form: {name for name, text in texts.items() if any(each in text for each in signs)}
        for form, texts in forms.items()
    }


def _printed(form: str, folders: dict[str, Path]) -> dict[str, str]:
    """What the command prints for each folder, all in one process."""
    command = [sys.executable, "-c", _RUN_ALL, form, *map(str, folders.values())]
    if form == "terminal":
        terminal, end = pty.openpty()
        wide = os.environ | {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "200"}
        process = subprocess.Popen(command, stdout=end, stderr=end, env=wide)
        os.close(end)
        seen = b""
        while piece := _read(terminal):
            seen += piece
        process.wait()
        os.close(terminal)
        text = seen.decode()
    else:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
        )
        text = done.stdout
    parts = text.split("== ")[1:]
    return dict(zip(folders, parts, strict=True))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux reports the end of a terminal
        return b""
