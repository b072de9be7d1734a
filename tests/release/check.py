"""``python -m tests.release.check``: CI, all that is too long for it, and one page of the results.

Each step is a command; a step that fails does not stop the others. The page is
build/release-check.md. A step that passed on the same code is not run again, unless --fresh is
given; so a run that was stopped goes on where it was. The docs quote the figures of these steps, so
a commit of docs alone asks for no step but CI again. With changes that are not committed, nothing
counts as having passed before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = "release-check.md"
STATE = "release-check.json"
_CHANGED = " with changes"
CODE = (".", ":!docs", ":!*.md", ":!mkdocs.yml")
"""All but the docs, as Git's path specifications."""
_OF_THE_RUNNER = ("make: ", "npm warn ")
"""How lines begin that say nothing of a step's results."""
MUTATED = (
    "measures.comparison.statistics measures.evaluation losses.list_mle judging.session "
    "rankers.linear data.labels studio.judging.service studio.web.access"
)
BENCHMARKS = (
    "data evaluation statistics clicks online hybrid learning models judging assessors utility "
    "export explain studio cluster serving text newcomer scale"
)

STEPS: Mapping[str, str] = {
    "CI": "make ci-clone COMMIT={commit}",
    "long tests": "make test-slow PYTEST_ARGS='-m long'",
    "newly drawn examples": "make test CI= PYTEST_ARGS='-n 2'",
    "examples in docstrings": "make examples",
    "fuzzing": "make fuzz",
    "mutants": f"make mutants MODULES='{MUTATED}'",
    **{
        f"benchmark of {name}": f"make bench BENCHMARKS={name} BENCH_ARGS="
        for name in BENCHMARKS.split()
    },
    "advisories": "make audit AUDIT_ARGS=--require",
    "bill of materials": "make sbom",
    "extras": "make extras",
}
"""Commands by their names; {commit} is the commit, docs and all."""


@dataclass(frozen=True)
class Outcome:
    """What came of a step.

    Attributes:
        command: The command.
        commit: The last commit of the code it ran on.
        status: Its exit status.
        seconds: How long it took.
        last_line: The last line it printed, but for those of make and npm.
    """

    command: str
    commit: str
    status: int
    seconds: float
    last_line: str


def run_steps(
    steps: Mapping[str, str],
    folder: Path,
    commit: str,
    *,
    fresh: bool = False,
    every: Mapping[str, str] | None = None,
) -> dict[str, Outcome]:
    """Run the steps that have not passed on this commit's code yet; write the page after each.

    The page has every step, by default these, with what is known of the others on that code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    listed = steps if every is None else every
    outcomes = {
        name: each
        for name, each in _read(folder / STATE).items()
        if name in listed and each.commit == commit
    }
    for name, command in steps.items():
        known = None if fresh or commit.endswith(_CHANGED) else outcomes.get(name)
        if known and (known.status, known.commit, known.command) == (0, commit, command):
            print(f"=== {name}: passed before", flush=True)
            continue
        print(f"=== {name}: {command}", flush=True)
        outcomes[name] = _run(command, commit, folder / f"{name.replace(' ', '-')}.log")
        print(f"=== {name}: exit {outcomes[name].status}", flush=True)
        _write(folder, outcomes, listed, commit)
    _write(folder, outcomes, listed, commit)
    return {name: outcomes[name] for name in steps}


def _run(command: str, commit: str, log: Path) -> Outcome:
    start = time.monotonic()
    last = ""
    with (
        log.open("w", encoding="utf-8", buffering=1) as file,  # so that it can be followed
        subprocess.Popen(
            command,
            shell=True,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            if line.strip() and not line.startswith(_OF_THE_RUNNER):
                last = line.strip()
    return Outcome(command, commit, process.returncode, time.monotonic() - start, last[:300])


def _read(state: Path) -> dict[str, Outcome]:
    try:
        content = json.loads(state.read_text(encoding="utf-8"))
        return {name: Outcome(**outcome) for name, outcome in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(
    folder: Path, outcomes: Mapping[str, Outcome], steps: Mapping[str, str], commit: str
) -> None:
    state = {name: asdict(outcome) for name, outcome in outcomes.items()}
    (folder / STATE).write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
    (folder / PAGE).write_text(as_page(outcomes, steps, commit), encoding="utf-8")


def as_page(outcomes: Mapping[str, Outcome], steps: Mapping[str, str], commit: str) -> str:
    """Return the page: a row for each step, with those that did not run yet."""
    failed = [name for name, outcome in outcomes.items() if outcome.status]
    waiting = [name for name in steps if name not in outcomes]
    verdict = "All steps passed."
    if failed:
        verdict = f"Failed: {', '.join(failed)}."
    elif waiting:
        verdict = f"Not run yet: {', '.join(waiting)}."
    lines = [
        "# Release check", "", f"Commit {commit}. {verdict}", "",
        "| step | command | exit | seconds | last line |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, command in steps.items():
        outcome = outcomes.get(name)
        cells = [name, f"`{command}`", "not run", "", ""]
        if outcome is not None:  # of the command that ran: CI's may name an earlier commit of docs
            cells[1] = f"`{outcome.command}`"
            cells[2:] = [str(outcome.status), f"{outcome.seconds:.1f}", outcome.last_line]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def current_commit(*paths: str, folder: Path = ROOT) -> str:
    """Return the last commit, or the last that changed these paths, with a mark if files differ."""
    commands: Sequence[Sequence[str]] = (
        ("git", "log", "-1", "--format=%h", "--abbrev=12", "--", *paths),
        ("git", "status", "--porcelain", "--untracked-files=no"),
    )
    commit, changes = (
        subprocess.run(each, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        for each in commands
    )
    return f"{commit}{_CHANGED}" if changes else commit


def main() -> int:
    """Run all steps, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], help="by default all")
    parser.add_argument("--fresh", action="store_true", help="run again what has passed")
    arguments = parser.parse_args()
    head = current_commit().removesuffix(_CHANGED)
    every = {name: command.format(commit=head) for name, command in STEPS.items()}
    chosen = {name: every[name] for name in arguments.steps or every}
    code = current_commit(*CODE)
    outcomes = run_steps(chosen, ROOT / "build", code, fresh=arguments.fresh, every=every)
    print((ROOT / "build" / PAGE).read_text(encoding="utf-8"))
    return int(any(outcome.status for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
