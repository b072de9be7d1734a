"""The plain answer of an audit: may the model replace a person here, and for what?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from podium.judging.agreement.coefficients import LEAST_QUERIES, Interval
from podium.judging.auditing.alt_test import LEAST_PEOPLE, LEAST_UNITS, AltTest
from podium.judging.models.rubric import Task

Decision = Literal["replace", "assist", "reject", "undecided"]

WHAT: dict[Task, str] = {"grade": "documents", "pair": "pairs"}
SENTENCES: dict[Decision, str] = {
    "replace": "Yes: the model may judge {what} of this kind in the place of one person.",
    "assist": "No, not in the place of a person; beside people it is of use.",
    "reject": "No: that the model agrees with people more than by chance is not shown.",
    "undecided": "Not decided.",
}
USES: dict[Decision, tuple[str, ...]] = {
    "replace": (
        "Let it judge in the place of one person of several, with this rubric and model only.",
        "Audit again after any change of model, rubric or kind of queries.",
    ),
    "assist": (
        "Take its order as the prior order for people (podium judge --prior).",
        "Take its labels as machine labels that human ones correct (podium evaluate --machine).",
        "Never evaluate by its labels alone.",
    ),
    "reject": ("Do not use its judgments; change the rubric or the model, and audit again.",),
    "undecided": ("Plan a sample that decides it (podium audit --plan), and judge more.",),
}


@dataclass(frozen=True)
class Conclusion:
    """What an audit comes to.

    Attributes:
        decision: In one word.
        sentence: In one sentence.
        reasons: What it rests on.
        uses: What to do.
        warnings: Biases that are not chance.
    """

    decision: Decision
    sentence: str
    reasons: tuple[str, ...]
    uses: tuple[str, ...]
    warnings: tuple[str, ...]


def conclude(
    task: Task,
    test: AltTest | None,
    with_people: Interval,
    between_people: Interval,
    biases: dict[str, Interval],
    units: int,
    planned: int,
) -> Conclusion:
    """Draw the conclusion from the test, the intervals, and how many units were planned."""
    reasons = [
        f"kappa of the model and people {with_people.text(2)}, "
        f"between people {between_people.text(2)}"
    ]
    if test is None:
        decision: Decision = "undecided"
        reasons.append(
            f"the test needs {LEAST_PEOPLE} people with {LEAST_UNITS} units of {LEAST_QUERIES} "
            "queries each that others judged too"
        )
    elif math.isnan(between_people.low) or between_people.low <= 0:
        decision = "undecided"
        reasons.append(
            "that people agree with each other more than by chance is not shown, so there is "
            "nothing to hold a model against: improve the guidelines, or let more be judged twice"
        )
    else:
        won = sum(each.won for each in test.tests)
        reasons.append(
            f"the alternative annotator test: it wins against {won} of {len(test.tests)} people "
            f"(winning rate {test.winning_rate:.2f}, 0.5 is needed; epsilon {test.epsilon:g}), "
            f"advantage probability {test.advantage:.2f}"
        )
        if test.queries_needed:
            reasons.append(
                "the queries are too few to show more: those in which the model is behind people "
                f"throughout may all be missing; about {test.queries_needed} are needed"
            )
        use: Decision = "replace" if test.passed else "assist"
        decision = use if with_people.low > 0 else "reject"
    sentence = SENTENCES[decision]
    if decision == "replace" and units < planned:
        decision, sentence = "undecided", f"Not decided: too few units, {units:,} of {planned:,}."
    warnings = [
        f"{name} {interval.text(2)}"
        for name, interval in biases.items()
        if interval.low > 0 or interval.high < 0
    ]
    return Conclusion(
        decision,
        sentence.format(what=WHAT[task]),
        tuple(reasons),
        USES[decision],
        tuple(warnings),
    )
