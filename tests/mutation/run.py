"""Running the tests that reach a mutant, until one of them fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests.mutation.coverage_map import options
from tests.mutation.forks import Fork, Tree, forked
from tests.mutation.operators import Mutant
from tests.mutation.results import Outcome


@dataclass(frozen=True)
class Plan:
    """A mutant, the tests to run for it by their files, and the seconds they take as a rule."""

    mutant: Mutant
    tests: list[tuple[str, list[str]]]
    seconds: float

    @property
    def patience(self) -> float:
        """Long enough for a loaded machine, short enough for loops that never end."""
        return 30.0 + 8.0 * self.seconds


def run(plans: list[Plan], plain: bool, slow: bool, trees: list[Tree]) -> Iterator[Outcome]:
    """The outcome of each plan, in the order in which they end; a tree works on one at a time."""
    waiting, free = list(plans), list(trees)
    running: list[tuple[Plan, Fork, Tree, ExitStack]] = []
    try:
        while waiting or running:
            while waiting and free:
                plan, tree, change = waiting.pop(0), free.pop(), ExitStack()
                change.enter_context(tree.changed(plan.mutant.file, plan.mutant.text))
                work = _Work(plan.tests, slow, tree)
                running.append((plan, forked(tree, plain, plan.patience, work), tree, change))
            time.sleep(0.02)
            for each in list(running):
                plan, fork, tree, change = each
                ended = fork.finished()
                if ended is not None:
                    running.remove(each)
                    change.close()
                    free.append(tree)
                    yield _outcome(plan, ended, time.monotonic() - fork.started)
    finally:
        for _, fork, _, change in running:
            fork.kill()
            change.close()


def _outcome(plan: Plan, ended: tuple[str, Any], seconds: float) -> Outcome:
    how, answer = ended
    if how == "timeout":
        return Outcome(plan.mutant, "timeout", "", seconds)
    if how == "died":  # a crash of the interpreter, which nobody would overlook
        return Outcome(plan.mutant, "killed", "the process died", seconds)
    if answer is None:
        return Outcome(plan.mutant, "survived", "", seconds)
    return Outcome(plan.mutant, "killed", answer, seconds)


@dataclass
class _Work:
    tests: list[tuple[str, list[str]]]
    slow: bool
    tree: Tree

    def __call__(self) -> str | None:
        """The first test that fails, or None."""
        import pytest

        for file, tests in self.tests:
            chosen = _Chosen(tests)
            arguments = [file, "-x", "--tb=line", *options(self.tree, self.slow)]
            code = pytest.main(arguments, plugins=[chosen])
            if chosen.failed or code in (1, 2, 3):  # 2: the file cannot even be loaded
                return chosen.failed or file
        return None


class _Chosen:
    """Keeps the chosen tests, in their order, and remembers the first that fails."""

    def __init__(self, tests: list[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order),
            key=lambda item: self._order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
