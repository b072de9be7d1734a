"""``python -m tests.release.check``: all that is too long for CI, and one page of what came of it.

Each step is a command; a step that fails does not stop the others. The page is
build/release-check.md. A step that passed at the same commit is not run again, unless --fresh is
given; so a run that was stopped goes on where it was. With changes that are not committed, nothing
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
_OF_THE_RUNNER = ("make: ", "npm warn ")
"""How lines begin that say nothing of a step's results."""
MUTATED = (
    "measures.comparison.statistics measures.evaluation losses.list_mle judging.session "
    "rankers.linear data.labels studio.judging.service studio.web.access"
)
FAULTS = (
    "tests/studio/test_faults.py tests/serving/test_faults.py tests/engines/test_search_faults.py"
)
BENCHMARKS = (
    "data evaluation statistics learning models judging assessors utility export explain studio "
    "cluster serving text newcomer"
)

STEPS: Mapping[str, str] = {
    "lint": "make lint imports locks",
    "fast tests": "make fast",
    "slow and long tests": "make test-slow",
    "fault tests": f"make test-slow PYTEST_ARGS='{FAULTS}'",
    "fuzzing": "make fuzz",
    "mutants": f"make mutants MODULES='{MUTATED}'",
    **{
        f"benchmark of {name}": f"make bench BENCHMARKS={name} BENCH_ARGS="
        for name in BENCHMARKS.split()
    },
    "advisories": "make audit",
    "bill of materials": "make sbom",
    "wheel": "make wheel",
    "extras": "make extras",
    "site": "make docs",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a step.

    Attributes:
        command: The command.
        commit: The commit it ran at.
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
    """Run the steps that have not passed at this commit yet; write the page after each.

    The page has every step, by default these, with what is known of the others at this commit.
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
        log.open("w", encoding="utf-8") as file,
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
        if outcome is not None:
            cells[2:] = [str(outcome.status), f"{outcome.seconds:.1f}", outcome.last_line]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def current_commit() -> str:
    """Return the commit, with a mark if files differ from it."""
    commands: Sequence[Sequence[str]] = (
        ("git", "rev-parse", "--short=12", "HEAD"),
        ("git", "status", "--porcelain", "--untracked-files=no"),
    )
    commit, changes = (
        subprocess.run(each, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        for each in commands
    )
    return f"{commit}{_CHANGED}" if changes else commit


def main() -> int:
    """Run all steps, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], help="by default all")
    parser.add_argument("--fresh", action="store_true", help="run again what has passed")
    arguments = parser.parse_args()
    chosen = {name: STEPS[name] for name in arguments.steps or STEPS}
    outcomes = run_steps(
        chosen, ROOT / "build", current_commit(), fresh=arguments.fresh, every=STEPS
    )
    print((ROOT / "build" / PAGE).read_text(encoding="utf-8"))
    return int(any(outcome.status for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
