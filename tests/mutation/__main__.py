"""``python -m tests.mutation [MODULE...]``: a table of killed and surviving mutants per module."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from tests.mutation.coverage_map import MappedFile, measured, test_files
from tests.mutation.forks import Host, Tree, one_at_a_time, preload
from tests.mutation.operators import Mutant
from tests.mutation.results import Outcome, Results, report_survivors, table
from tests.mutation.run import Plan, failing_alone, run
from tests.mutation.serving import Serve
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
    left: list[str] = []
    groups = defaultdict(list)
    for module in modules(asked.modules):
        groups[module.area, module.plain].append(module)
    for (area, plain), members in sorted(groups.items()):
        preload(area)
        started = time.monotonic()
        with ExitStack() as ending:
            files = test_files(members[0].tests)
            hosts = [
                (tree, Host(tree, plain, Serve(tree, asked.slow, files, area))) for tree in trees
            ]
            for _, host in hosts:
                ending.callback(host.close)
            print(f"{area}{' (plain Python)' if plain else ''}", flush=True)
            maps = list(measured(files, plain, asked.slow, hosts))
            loaded = sorted({name for each in maps for name in each.loaded})
            for _, host in hosts:
                host.ask(load=loaded)
            for _, host in hosts:
                host.answered(_LOADING)
            trusted: set[str] = set()
            for module in members:
                outcomes[module] = _measure(module, asked, maps, hosts, trusted)
                if outcomes[module]:
                    report_survivors(module, outcomes[module], asked.survivors)
        left.append(_left_out(area, maps))
        print(f"{left[-1]}; {time.monotonic() - started:.0f} s in all", flush=True)
    print("\n".join([table(outcomes), *left]))
    return int(any(Outcome.score(found) < GOAL for found in outcomes.values()))


def _measure(
    module: Module,
    asked: argparse.Namespace,
    maps: list[MappedFile],
    hosts: list[tuple[Tree, Host]],
    trusted: set[str],
) -> list[Outcome]:
    """The outcomes of a module's mutants.

    A test that notices a mutant is run by itself without it, once: if it fails, it is left out, and
    the mutants that it noticed are run again. ``trusted`` are those that passed.
    """
    sample = _sample(module, asked.sample, asked.seed)
    results = Results(maps, module.plain, asked.slow, asked.budget)
    found = {mutant: results.get(mutant) for mutant in sample}
    while waiting := [mutant for mutant in sample if found[mutant] is None]:
        plans = [_plan(mutant, maps, asked.budget) for mutant in waiting]
        for outcome in run(plans, module.plain, asked.slow, hosts):
            found[outcome.mutant] = outcome
            print(
                f"  {outcome.status:8} {outcome.mutant.file}:{outcome.mutant.line} "
                f"{outcome.test} ({outcome.seconds:.1f} s)",
                flush=True,
            )
        tests = {test for each in maps for test in each.lines}
        killers = {outcome.test for outcome in map(found.__getitem__, waiting) if outcome}
        failing = failing_alone(sorted((killers & tests) - trusted), hosts)
        trusted |= killers & tests - failing
        for test in failing:
            print(f"  fails without a mutant: {test}", flush=True)
            for each in maps:
                each.leave_out(test)
        for mutant in waiting:
            outcome = found[mutant]
            if outcome is not None and outcome.test in failing:
                found[mutant] = None
            elif outcome is not None:
                results.put(outcome)
    return [outcome for outcome in found.values() if outcome is not None]


def _left_out(area: str, maps: list[MappedFile]) -> str:
    """A line about the tests of an area that no mutant is run against."""
    count = {why: [t for each in maps for t in each.left.get(why, ())] for why in _REASONS}
    failed = "".join(f"\n  fails without a mutant: {test}" for test in count["failed"])
    numbers = ", ".join(f"{len(tests)} {why}" for why, tests in count.items())
    return f"{area}: {sum(len(each.lines) for each in maps)} tests; left out: {numbers}{failed}"


_LOADING = 600.0  # seconds, on a machine with other work
_REASONS = ("failed", "skipped", "slow")


def _sample(module: Module, count: int, seed: int) -> list[Mutant]:
    every = module.mutants()
    if count <= 0 or len(every) <= count:
        return every
    return sorted(
        random.Random(f"{seed} {module.name}").sample(every, count),
        key=lambda mutant: mutant.line,
    )


def _plan(mutant: Mutant, maps: list[MappedFile], budget: float) -> Plan:
    """The tests to run for a mutant, a file after the other, the quickest first.

    Lines that run only when the module is loaded belong to no test: for these, the tests that reach
    the module at all are run.
    """
    found = [each.reaching(mutant.file, mutant.line, mutant.last) for each in maps]
    if not any(found):
        found = [each.touching(mutant.file) for each in maps]
    times = {test: took for each in maps for test, took in each.seconds.items()}
    every = sorted((test for tests in found for test in tests), key=times.__getitem__)
    chosen: dict[str, list[str]] = {}
    spent = 0.0
    for test in every:
        if chosen and spent + times[test] > budget:
            break
        spent += times[test]
        chosen.setdefault(test.partition("::")[0], []).append(test)
    in_order = sorted(chosen.values(), key=lambda tests: sum(map(times.__getitem__, tests)))
    tests = [test for tests in in_order for test in tests]
    return Plan(mutant, tests, spent, len(every) - len(tests))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="an area, or a module's name")
    parser.add_argument("--sample", type=int, default=40, help="mutants per module; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="which mutants the sample has")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--nice", type=int, default=10, help="how far to give way to other work")
    parser.add_argument(
        "--budget", type=float, default=10.0, help="seconds of processor time per mutant"
    )
    parser.add_argument("--slow", action="store_true", help="run the slow tests too")
    parser.add_argument("--survivors", type=Path, help="a folder for each module's survivors")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
