"""How long somebody new waits: from nothing to a measure, a trained ranker and a judged query.

    python -m benchmarks.newcomer [--quick]

The wheel is built; then each of the three starts with an empty environment, installs the wheel as
the README says (without pip's cache: what is downloaded counts too) and runs the README's sections
that lead there, with nothing compiled before. ``--quick`` goes to the first measure only.

Five commands start with nothing compiled, and again; their processor time counts. Ten mistakes that
leave documents or queries without judgments are planted: each form of output has to report all.
The size of an extra is that of the installed packages which the wheel alone does not bring. Words
are counted, and fifteen questions are looked up, in the pages. The memory of commands that stream
is measured by ``benchmarks.data``.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks._coverage_mistakes import MISTAKES, noticed, planted
from benchmarks._report import Report, wants_quick

ROOT = Path(__file__).parents[1]


class Goal(NamedTuple):
    """What somebody new wants to see first, and the way to it."""

    name: str
    extra: str  # of the wheel, in brackets
    sections: tuple[str, ...]  # of the README, run in this order
    target: float  # seconds


_QUESTIONS = {
    "clicks": "how-to/clicks.md",
    "position bias": "how-to/clicks.md",
    "interleav": "how-to/online.md",
    "hybrid": "faq.md",
    "_rank_eval": "faq.md",
    "IMPORT_JUDGMENT": "faq.md",
    "metarank": "how-to/clicks.md",
    "retrieval for a language model": "faq.md",
    "margin or freshness": "faq.md",
    "personalization": "faq.md",
    "cold start": "faq.md",
    "query's category": "faq.md",
    "license": "faq.md",
    "who maintains": "faq.md",
    "upgrade": "faq.md",
}
"""What people ask before they adopt, and the page that answers."""

GOALS = (
    Goal("the first measure", "", ("Evaluate",), 300),
    Goal("the first trained ranker", "[trees]", ("Evaluate", "Train"), 300),
    Goal("the first judged query", "", ("Judge",), 300),
)


def main() -> None:
    """Time the way to each goal; none may take five minutes."""
    quick = wants_quick(__doc__)
    report = Report("newcomer", quick, packages=["numba", "numpy", "pyarrow"])
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(ROOT)]
        report.note(f"build the wheel: {_seconds(build):.0f} s")
        (wheel,) = Path(folder).glob("*.whl")
        for number, goal in enumerate(GOALS[:1] if quick else GOALS):
            steps = _steps(goal, wheel, Path(folder, f"goal{number}"))
            taken = {name: _seconds(command) for name, command in steps.items()}
            each = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in taken.items())
            report.note(f"{goal.name}: {len(steps)} commands: {each}")
            report.check(
                f"to {goal.name}", sum(taken.values()), goal.target, at_least=False, unit="s"
            )
        _start(report, Path(folder, "start"))
        (Path(folder) / "mistakes").mkdir()
        for form, names in noticed(Path(folder, "mistakes")).items():
            count = 0 if "none" in names else len(names)
            report.check(f"mistakes reported, {form}", count, len(MISTAKES), unit="of 10")
    _extras(report)
    _documentation(report)
    report.finish()


def _extras(report: Report) -> None:
    """Add up the files of each extra's packages, which have to be installed here."""
    own = metadata("podium-rank")
    alone = _packages("podium-rank", "")
    sizes = {"none": _megabytes(alone)}
    for extra in sorted(own.get_all("Provides-Extra") or []):
        added = _packages("podium-rank", extra) - alone
        missing = sorted(name for name in added if not _is_installed(name))
        sizes[extra] = _megabytes(added - {*missing})
        if missing:
            report.note(f"extra {extra}, not installed here: {', '.join(missing)}")
    report.note("MB installed: " + ", ".join(f"{name} {size:.0f}" for name, size in sizes.items()))
    report.check("extra trees, installed", sizes["trees"], 250, at_least=False, unit="MB")


def _packages(name: str, extra: str) -> set[str]:
    """Return what a package with one of its extras needs, itself among it."""
    reached = {(canonicalize_name(name), extra)}
    waiting = list(reached)
    while waiting:
        package, chosen = waiting.pop()
        if not _is_installed(package):
            continue
        for text in metadata(package).get_all("Requires-Dist") or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": chosen}):
                needed = canonicalize_name(requirement.name)
                new = {(needed, each) for each in ("", *requirement.extras)} - reached
                reached |= new
                waiting += new
    return {package for package, _ in reached}


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _megabytes(packages: set[str]) -> float:
    files = (file for each in packages for file in distribution(each).files or [])
    paths = {Path(str(file.locate())) for file in files}
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def _documentation(report: Report) -> None:
    """Count what there is to read, where 0.1.0 had 80 pages, and look for answers."""
    folder = ROOT / "docs"
    pages = {page: page.read_text(encoding="utf-8") for page in folder.rglob("*.md")}
    words = sum(len(page.split()) for page in pages.values()) / 1000
    report.check(f"words of {len(pages)} pages", words, 85, at_least=False, unit="thousand")
    answered = [
        question
        for question, page in _QUESTIONS.items()
        if question.lower() in pages[folder / page].lower()
    ]
    for question in sorted(_QUESTIONS.keys() - answered):
        report.note(f"{_QUESTIONS[question]} has nothing on {question!r}")
    report.check(
        "questions with a page", len(answered), len(_QUESTIONS), unit=f"of {len(_QUESTIONS)}"
    )


def _start(report: Report, folder: Path) -> None:
    """Time five commands with nothing compiled, and again with what the first time left."""
    folder.mkdir()
    files = planted(folder)["none"]
    truth, old, new = (str(files / name) for name in ("judged.qrels", "old.run", "new.run"))
    commands = {
        "--help": ["--help"],
        "evaluate, 3 measures": ["evaluate", truth, old, "-m", "nDCG@10", "-m", "AP", "-m", "RR"],
        "compare": ["compare", truth, old, new],
        "plan": ["plan", truth, old, new],
        "convert": ["convert", truth, str(folder / "judged.parquet"), "--to", "qrels-parquet"],
    }
    for name, words in commands.items():
        cache = {"NUMBA_CACHE_DIR": str(folder / f"cache of {name}")}
        for state in ("cold", "warm"):
            seconds = _processor_seconds(["-m", "podium", *words], cache)
            report.note(f"podium {name}, {state}: {seconds:.1f} s of processor time")


def _processor_seconds(words: list[str], environment: dict[str, str]) -> float:
    def used() -> float:
        times = resource.getrusage(resource.RUSAGE_CHILDREN)
        return times.ru_utime + times.ru_stime

    before = used()
    subprocess.run(
        [sys.executable, *words], check=True, stdout=subprocess.DEVNULL,
        # As for people: Python keeps what it compiled.
        env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": ""},
    )  # fmt: skip
    return used() - before


def _steps(goal: Goal, wheel: Path, folder: Path) -> dict[str, list[str]]:
    """The commands from nothing to the goal; the README's code is one script."""
    folder.mkdir()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    titled = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    page = folder / "page.md"
    page.write_text("\n".join(titled[section] for section in goal.sections), encoding="utf-8")
    python = str(folder / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    return {
        "environment": [sys.executable, "-m", "venv", str(folder / "venv")],
        "install": [*install, f"{wheel}{goal.extra}"],
        "run": [python, str(ROOT / "tests" / "run_markdown.py"), str(page)],
    }


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    if ": skipped, " in done.stdout:  # a block of the page that lacks a package
        sys.exit(done.stdout)
    return seconds


if __name__ == "__main__":
    main()
