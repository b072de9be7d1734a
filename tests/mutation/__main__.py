"""``python -m tests.mutation [MODULE...]``: a table of killed and surviving mutants per module."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.mutation.coverage_map import TestFile, measured, test_files
from tests.mutation.forks import Tree, one_at_a_time, preload
from tests.mutation.operators import Mutant
from tests.mutation.results import Outcome, Results, report_survivors, table
from tests.mutation.run import Plan, run
from tests.mutation.targets import GOAL, Module, modules


def main() -> int:
    """Measure the modules asked for; 1 if one of them is below the goal."""
    asked = _arguments()
    os.nice(asked.nice)
    preload()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the children first
    _lock = one_at_a_time()
    trees = [Tree.made(f"worker-{number}") for number in range(asked.jobs)]
    outcomes: dict[Module, list[Outcome]] = {}
    for module in modules(asked.modules):
        print(f"{module.name}{' (plain Python)' if module.plain else ''}", flush=True)
        outcomes[module] = _measure(module, asked, trees)
        report_survivors(module, outcomes[module], asked.survivors)
    print(table(outcomes))
    return int(any(Outcome.score(found) < GOAL for found in outcomes.values()))


def _measure(module: Module, asked: argparse.Namespace, trees: list[Tree]) -> list[Outcome]:
    maps = list(measured(test_files(module.tests), module.plain, asked.slow, trees))
    sample = _sample(module, asked.sample, asked.seed)
    results = Results(maps, module.plain, asked.slow, asked.budget)
    found = {mutant: results.get(mutant) for mutant in sample}
    plans = [_plan(mutant, maps, asked.budget) for mutant in sample if found[mutant] is None]
    started = time.monotonic()
    for done, outcome in enumerate(run(plans, module.plain, asked.slow, trees), start=1):
        results.put(outcome)
        found[outcome.mutant] = outcome
        spent = time.monotonic() - started
        print(
            f"  {done}/{len(plans)} {outcome.status:8} {outcome.mutant.file}:{outcome.mutant.line} "
            f"{outcome.test} ({outcome.seconds:.1f} s; {spent:.0f} s in all)",
            flush=True,
        )
    return [outcome for outcome in found.values() if outcome is not None]


def _sample(module: Module, count: int, seed: int) -> list[Mutant]:
    every = module.mutants()
    if count <= 0 or len(every) <= count:
        return every
    return sorted(
        random.Random(f"{seed} {module.name}").sample(every, count),
        key=lambda mutant: mutant.line,
    )


def _plan(mutant: Mutant, maps: list[TestFile], budget: float) -> Plan:
    """The tests to run for a mutant, a file after the other, the quickest first.

    Lines that run only when the module is loaded belong to no test: for these, the tests that reach
    the module at all are run.
    """
    found = [each.reaching(mutant.file, mutant.line, mutant.last) for each in maps]
    if not any(found):
        found = [each.touching(mutant.file) for each in maps]
    times = {test: took for each in maps for test, took in each.seconds.items()}
    chosen: dict[str, list[str]] = {}
    spent = 0.0
    for test in sorted((test for tests in found for test in tests), key=times.__getitem__):
        spent += times[test]
        if spent > budget:
            break
        chosen.setdefault(test.partition("::")[0], []).append(test)
    in_order = sorted(chosen.items(), key=lambda each: sum(times[test] for test in each[1]))
    return Plan(mutant, in_order, min(spent, budget))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="an area, or a module's name")
    parser.add_argument("--sample", type=int, default=40, help="mutants per module; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="which mutants the sample has")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--nice", type=int, default=10, help="how far to give way to other work")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests per mutant")
    parser.add_argument("--slow", action="store_true", help="run the slow tests too")
    parser.add_argument("--survivors", type=Path, help="a folder for each module's survivors")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
