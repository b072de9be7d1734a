"""Which documents to judge next, so that a comparison is decided by few judgments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from podium.data import Dataset, Judgments, Rankings
from podium.data.sources import TableSource
from podium.errors import ArgumentError, DataError
from podium.measures.comparison.unjudged import LabelTrial, trial_bounds
from podium.measures.conventions import Conventions
from podium.measures.inputs import as_system, as_truth
from podium.measures.presets import resolve_measure
from podium.measures.registry import Measure, definition_of

_FAR = 2.0
"""So many deviations from a bound, a difference is hardly ever on the other side."""


@dataclass(frozen=True)
class UnjudgedDocument:
    """A document to judge.

    Attributes:
        query_id: Its query.
        document_id: Its id.
        swing: The standard deviation of the mean difference that is due to its label.
        baseline_rank: Its rank in the baseline from 1, None if it is not among the first.
        system_rank: Its rank in the other system.
    """

    query_id: str
    document_id: str
    swing: float
    baseline_rank: int | None
    system_rank: int | None


@dataclass(frozen=True)
class JudgingPlan:
    """What is undecided about a comparison, and what to judge.

    Attributes:
        measure: The measure.
        difference: The mean difference, system minus baseline, as judged so far.
        expected: The mean difference to expect once the unjudged documents are judged; None if
            that cannot be learned from the judged ones.
        deviation: The standard deviation of that difference, due to their labels and to what is
            not known of how likely these are; None without ``expected``.
        why_unknown: Why nothing is expected; "" if something is.
        labels: The least and the greatest of the labels in use: those of the judgments, 0, and one
            that is relevant.
        least: What the difference will be at least, if unjudged documents down to the cut-off have
            labels in use, with all others left unjudged; None if there are too many to know.
        most: What it will be at most.
        exact: Whether labels in use give ``least`` and ``most``; else these may be wide.
        bound: What the difference is held against.
        could_turn: Whether labels in use can put the difference on another side of the bound, or
            at it.
        unjudged: How many documents among the first results are not judged.
        documents: Those to judge next, the one that matters most first.
    """

    measure: Measure
    difference: float
    expected: float | None
    deviation: float | None
    why_unknown: str
    labels: tuple[float, float]
    least: float | None
    most: float | None
    exact: bool
    bound: float
    could_turn: bool
    unjudged: int
    documents: tuple[UnjudgedDocument, ...] = field(repr=False)

    @property
    def unlikely_to_turn(self) -> bool | None:
        """Whether the difference is hardly ever on another side of the bound once all are judged.

        At most 5 % of the cases that are called so turned where the other judgments are known
        (``python -m benchmarks.statistics``). True where no labels in use can turn it, and
        None where nothing is expected.
        """
        if not self.could_turn:
            return True
        if self.expected is None or self.deviation is None:
            return None
        return stays(self.difference, self.expected, self.deviation, self.bound)


def stays(difference: float, expected: float, deviation: float, bound: float) -> bool:
    """Whether a difference is expected on the side of the bound where it is, and far from it."""
    now, then = difference - bound, expected - bound
    return now * then > 0.0 and abs(then) >= _FAR * deviation


def next_judgments(
    measure: Measure | str,
    truth: Judgments | Dataset | TableSource,
    baseline: Rankings | TableSource | ArrayLike,
    system: Rankings | TableSource | ArrayLike,
    *,
    count: int = 20,
    bound: float = 0.0,
    conventions: Conventions | str | None = None,
) -> JudgingPlan:
    """Choose the documents whose labels matter most for a difference of two systems.

    Every label is tried on every unjudged document among the first results, and the measure
    evaluated. A document matters as much as the variance that its label gives the mean difference:
    nothing where both systems rank it alike, most where one has it at the top and the other does
    not. This is the idea of minimal test collections (Carterette, Allan and Sitaraman, SIGIR
    2006), for any measure of labels.

    Args:
        measure: The measure.
        truth: Judgments so far, in any form that ``evaluate`` takes.
        baseline: The rankings of the one system.
        system: Those of the other.
        count: How many documents to return.
        bound: The difference to decide about, such as the margin of a requirement.
        conventions: As ``evaluate`` takes them.

    Example:
        >>> truth = {"q": {"a": 1, "b": 0}}
        >>> old = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
        >>> new = {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}
        >>> plan = next_judgments("DCG@3", truth, old, new)
        >>> [(each.document_id, each.baseline_rank, each.system_rank) for each in plan.documents]
        [('c', 3, 2)]
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"count is {count!r}", hint="Give an integer of at least 1.")
    if not math.isfinite(bound):
        raise ArgumentError(f"bound is {bound}", hint="Give a number.")
    reference = as_truth(truth, baseline)
    if not isinstance(reference, Judgments):
        raise ArgumentError(
            f"next judgments are of documents by id, not of a {type(reference).__name__}",
            hint="Give judgments and two runs.",
        )
    runs = [as_system(reference, each) for each in (baseline, system)]
    if not all(isinstance(each, Rankings) for each in runs):
        raise ArgumentError("a system is not a run", hint="Give judgments and two runs.")
    parsed, chosen = resolve_measure(measure, conventions)
    if definition_of(parsed).aggregate != "mean":
        raise ArgumentError(
            f"{parsed!r} is not a mean over queries", hint="Choose a measure that is, such as AP."
        )
    trial = LabelTrial.of(parsed, chosen, reference, *runs)  # type: ignore[arg-type]
    differences = trial.as_judged()
    queries = np.count_nonzero(~np.isnan(differences))
    if not queries:
        raise DataError(
            "no query has a value for both systems",
            hint="Do the query ids of judgments and runs match?",
        )
    likely = trial.likely_labels()
    expected, deviation = trial.expectation(likely)
    bounds = trial_bounds(trial, differences, name="")
    swings, query_ids = trial.swings(likely), reference.query_ids.to_pylist()
    documents = tuple(
        UnjudgedDocument(
            query_id=query_ids[trial.query[row]],
            document_id=trial.document_ids[row],
            swing=math.sqrt(swings[row]) / queries,
            baseline_rank=int(trial.ranks[row, 0]) or None,
            system_rank=int(trial.ranks[row, 1]) or None,
        )
        for row in np.argsort(-swings, kind="stable")[:count].tolist()
        if swings[row] > 0.0
    )
    return JudgingPlan(
        measure=parsed,
        difference=bounds.difference,
        expected=None if likely.why_unknown else expected,
        deviation=None if likely.why_unknown else deviation,
        why_unknown=likely.why_unknown,
        labels=bounds.labels,
        least=bounds.least,
        most=bounds.most,
        exact=bounds.exact,
        bound=bound,
        could_turn=bounds.could_pass(bound),
        unjudged=len(swings),
        documents=documents,
    )
