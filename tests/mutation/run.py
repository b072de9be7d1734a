"""Running the tests that reach a mutant, until one of them fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutation.forks import Host, Tree, first_answers
from tests.mutation.operators import Mutant
from tests.mutation.results import Outcome
from tests.mutation.serving import Serve

_LOADING = 120.0  # seconds, on a machine with other work


@dataclass(frozen=True)
class Plan:
    """A mutant, the tests to run for it in their order, and the seconds they take as a rule.

    ``cut`` counts the tests that reach it and are left out, because the budget is spent.
    """

    mutant: Mutant
    tests: list[str]
    seconds: float
    cut: int = 0

    @property
    def request(self) -> dict[str, Any]:
        """Long enough for a loaded machine, short enough for loops that never end."""
        limits = {"cpu": int(10 + 4 * self.seconds), "seconds": 60.0 + 8.0 * self.seconds}
        return {"tests": self.tests, "file": self.mutant.file, **limits}


def run(
    plans: list[Plan], plain: bool, slow: bool, hosts: list[tuple[Tree, Host]]
) -> Iterator[Outcome]:
    """The outcome of each plan, in the order in which they end.

    A mutant inside functions gets its code in a child of a host, which has loaded everything; any
    other is loaded by a process of its own.
    """
    by_text = {plan.mutant.text: plan for plan in plans if plan.tests}
    for plan in plans:
        if not plan.tests:
            yield Outcome(plan.mutant, "survived", "no test reaches it", 0.0)
    requests = [
        {**plan.request, "before": plan.mutant.original, "after": plan.mutant.text}
        for plan in by_text.values()
    ]
    anew = []
    for request, _, answer in first_answers(requests, hosts):
        plan = by_text[request["after"]]
        if answer["how"] == "fresh":
            anew.append(plan)
        else:
            yield _outcome(plan, answer)
    yield from _anew(anew, plain, slow, hosts[0][0])


def _anew(plans: list[Plan], plain: bool, slow: bool, tree: Tree) -> Iterator[Outcome]:
    for plan in plans:
        files = list(dict.fromkeys(test.partition("::")[0] for test in plan.tests))
        with tree.changed(plan.mutant.file, plan.mutant.text):
            host = Host(tree, plain, Serve(tree, slow, files))
            host.ask(**plan.request)
            answer = host.answered(_LOADING + plan.request["seconds"]) or {"how": "timeout"}
            if answer["how"] == "done":
                answer["result"] = json.loads(host.answer.read_text())
            answer["seconds"] = host.close()
        yield _outcome(plan, answer)


def failing_alone(tests: list[str], hosts: list[tuple[Tree, Host]]) -> set[str]:
    """The tests that fail by themselves without a mutant: they notice nothing."""
    requests = [{"tests": [test], "cpu": 120, "seconds": 300.0} for test in tests]
    return {
        request["tests"][0]
        for request, _, answer in first_answers(requests, hosts)
        if answer["how"] != "done" or answer["result"] is not None
    }


def _outcome(plan: Plan, answer: dict[str, Any]) -> Outcome:
    how, test, seconds = answer["how"], answer.get("result"), answer["seconds"]
    if how == "timeout":
        return Outcome(plan.mutant, "timeout", "", seconds)
    if how == "died":  # a crash of the interpreter, which nobody would overlook
        return Outcome(plan.mutant, "killed", "the process died", seconds)
    if how == "broken":
        return Outcome(plan.mutant, "killed", "its tests could not be loaded", seconds)
    if test is not None:
        return Outcome(plan.mutant, "killed", test, seconds)
    if plan.cut:
        return Outcome(plan.mutant, "cut", f"{plan.cut} tests left out", seconds)
    return Outcome(plan.mutant, "survived", "", seconds)
