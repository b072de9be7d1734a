"""What became of mutants: kept on disk, counted, and printed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.coverage_map import MappedFile
from tests.mutation.forks import BUILD
from tests.mutation.operators import Mutant
from tests.mutation.targets import GOAL, Module


@dataclass(frozen=True)
class Outcome:
    """A mutant, what became of it, and the test that noticed or the reason why none did.

    It was "killed", met a "timeout" because tests ran much longer than they do, which is noticed
    too, has "survived", or was "cut": it survived as many tests as the budget allows.
    ``seconds`` is processor time.
    """

    mutant: Mutant
    status: str
    test: str
    seconds: float

    @staticmethod
    def score(outcomes: Iterable[Outcome]) -> float:
        """The part of the mutants that was noticed; 1 where there are none."""
        noticed = [outcome.status in ("killed", "timeout") for outcome in outcomes]
        return sum(noticed) / len(noticed) if noticed else 1.0


class Results:
    """Outcomes on disk, a line each, so that a run that was stopped goes on where it was."""

    def __init__(self, maps: list[MappedFile], plain: bool, slow: bool, budget: float) -> None:
        self._path = BUILD / "results.jsonl"
        self._about = f"{plain} {slow} {budget}"
        self._maps = maps
        self._reaching: dict[str, list[str]] = {}
        self._known = {}
        if self._path.exists():
            lines = self._path.read_text().splitlines()
            self._known = {line["key"]: line for line in map(json.loads, lines)}

    def get(self, mutant: Mutant) -> Outcome | None:
        """What became of a mutant of this very code under these very tests, if it has been run."""
        line = self._known.get(self._key(mutant))
        if line is None:
            return None
        return Outcome(mutant, line["status"], line["test"], line["seconds"])

    def put(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        mutant = outcome.mutant
        line = {
            "key": self._key(mutant),
            "place": f"{mutant.file}:{mutant.line}",
            "diff": mutant.diff,
            "status": outcome.status,
            "test": outcome.test,
            "seconds": round(outcome.seconds, 2),
        }
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _key(self, mutant: Mutant) -> str:
        if mutant.file not in self._reaching:
            maps = (one for one in self._maps if one.touching(mutant.file))
            self._reaching[mutant.file] = [one.digest for one in maps]
        reaching = self._reaching[mutant.file]
        about = f"{self._about} {mutant.file} {mutant.text} {json.dumps(reaching)}"
        return hashlib.sha256(about.encode()).hexdigest()[:24]


def report_survivors(module: Module, found: list[Outcome], folder: Path | None) -> None:
    """Print the mutants of a module that no test noticed, and write them into a folder."""
    survivors = [
        f"{outcome.mutant.file}:{outcome.mutant.line} {outcome.mutant.where} {outcome.test}\n"
        f"{outcome.mutant.diff}\n"
        for outcome in found
        if outcome.status in ("survived", "cut")
    ]
    text = "\n".join([table({module: found}), "", *survivors])
    print(text, flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{module.name}.txt").write_text(text)


def table(outcomes: Mapping[Module, list[Outcome]]) -> str:
    """A row for each module."""
    titles = (
        f"{'module':32} {'mutants':>7} {'killed':>7} {'survived':>8} {'cut':>4} "
        f"{'timeout':>7} {'score':>6} {'seconds':>8}"
    )
    rows = [_row(module, found) for module, found in outcomes.items() if found]
    empty = len(outcomes) - len(rows)
    return "\n".join([titles, *rows, *[f"{empty} modules have nothing to change"] * (empty > 0)])


def _row(module: Module, found: list[Outcome]) -> str:
    count = Counter(outcome.status for outcome in found)
    score = Outcome.score(found)
    seconds = sum(outcome.seconds for outcome in found)
    return (
        f"{module.name:32} {len(found):7} {count['killed']:7} {count['survived']:8} "
        f"{count['cut']:4} {count['timeout']:7} {score:6.0%} {seconds:8.0f}"
        f"{'' if score >= GOAL else f'  below {GOAL:.0%}'}"
    )
