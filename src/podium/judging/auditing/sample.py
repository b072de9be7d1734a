"""Judgments of a model and of people on the same documents or pairs, and a model's scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.judging.agreement.ratings import Ratings
from podium.judging.bradley_terry import Duels, fit_bradley_terry
from podium.judging.entries import Entry, Grade, Verdict, active_entries
from podium.judging.models.answer_log import ModelAnswer
from podium.judging.models.assessor import OUTCOMES, pair_outcome
from podium.judging.models.rubric import Task
from podium.kernels import Doubles, Ints

Unit: TypeAlias = tuple[str, ...]
"""A query and a document, or a query and two documents in alphabetical order."""

HumanLabels: TypeAlias = Mapping[str, Mapping[Unit, float]]
"""To each person what they said of each unit: a grade, or 1 if the first document is better."""


@dataclass(frozen=True)
class ModelJudgment:
    """What a model's answers about one unit come to.

    Attributes:
        value: The grade, or 1, 0 or -1 for a pair; None if no answer can be used.
        certainty: How sure the model is; NaN if it does not say.
        length: The logarithm of the document's length, or of the ratio of the two.
        forward: The values of the answers with the documents in alphabetical order.
        backward: The values, from the same view, of those in the other order.
    """

    value: float | None
    certainty: float
    length: float
    forward: tuple[float, ...]
    backward: tuple[float, ...]


def model_judgments(answers: Iterable[ModelAnswer]) -> dict[Unit, ModelJudgment]:
    """What answers come to, unit by unit; of pairs, those in both orders together.

    Example:
        >>> one = ModelAnswer("1", "m", "pairs/1", "h", "q", ("a", "b"), "A", lengths=(10, 10))
        >>> two = ModelAnswer("2", "m", "pairs/1", "h", "q", ("b", "a"), "B", lengths=(10, 10))
        >>> judgment = model_judgments([one, two])[("q", "a", "b")]
        >>> judgment.value, judgment.forward, judgment.backward
        (1.0, (1.0,), (1.0,))
    """
    grouped: dict[Unit, list[ModelAnswer]] = {}
    for answer in answers:
        grouped.setdefault((answer.query_id, *sorted(answer.items)), []).append(answer)
    return {
        unit: _grade(several) if len(unit) == 2 else _pair(unit, several)
        for unit, several in grouped.items()
    }


def _grade(answers: Sequence[ModelAnswer]) -> ModelJudgment:
    values = [float(answer.label) for answer in answers if answer.label]
    value = None
    certainty = float("nan")
    if values:
        most = max(map(values.count, values))
        modes = sorted({each for each in values if values.count(each) == most})
        value = modes[(len(modes) - 1) // 2]
        certainty = _mean(
            [each.certainty for each in answers if each.label and float(each.label) == value]
        )
    lengths = answers[0].lengths
    return ModelJudgment(
        value, certainty, float(np.log1p(lengths[0])) if lengths else np.nan, tuple(values), ()
    )


def _pair(unit: Unit, answers: Sequence[ModelAnswer]) -> ModelJudgment:
    forward = [answer for answer in answers if answer.items == unit[1:]]
    backward = [answer for answer in answers if answer.items != unit[1:]]
    outcome = pair_outcome(forward, backward)
    shares: list[float | None] = []
    if outcome is not None:
        for several, seen in ((forward, outcome), (backward, outcome.flipped)):
            label = next(name for name, each in OUTCOMES.items() if each is seen)
            for answer in several:
                known = answer.probabilities
                if known is not None:
                    shares.append(known.get(label, 0.0))
                elif answer.label == label:
                    shares.append(answer.confidence)
    lengths = answers[0].lengths
    length = float(np.log1p(lengths[0]) - np.log1p(lengths[1])) if len(lengths) == 2 else np.nan
    return ModelJudgment(
        None if outcome is None else float(outcome),
        _mean(shares),
        length if answers[0].items == unit[1:] else -length,
        tuple(float(OUTCOMES[answer.label]) for answer in forward if answer.label),
        tuple(-float(OUTCOMES[answer.label]) for answer in backward if answer.label),
    )


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def human_labels(logs: Mapping[str, Iterable[Entry]], *, without: str | None = None) -> HumanLabels:
    """The standing verdicts and grades of people in many queries' logs.

    Args:
        logs: To each query id its log.
        without: An assessor to leave out: the model.

    Example:
        >>> log = [Verdict("b", "a", OUTCOMES["A"], "ann"), Grade("a", 2, "bob")]
        >>> human_labels({"q": log})
        {'ann': {('q', 'a', 'b'): -1.0}, 'bob': {('q', 'a'): 2.0}}
    """
    votes: dict[str, dict[Unit, float]] = {}
    for query, entries in logs.items():
        log = list(entries)
        for position in active_entries(log):
            entry = log[position]
            if entry.assessor == without:
                continue
            if isinstance(entry, Grade):
                votes.setdefault(entry.assessor, {})[query, entry.item] = float(entry.grade)
            elif isinstance(entry, Verdict):
                first, second = sorted((entry.left, entry.right))
                value = entry.outcome if entry.left == first else entry.outcome.flipped
                votes.setdefault(entry.assessor, {})[query, first, second] = float(value)
    return votes


@dataclass(frozen=True, eq=False)
class AuditSample:
    """The units that the model and people judged.

    Attributes:
        task: Whether they are documents with grades, or pairs.
        model: The model's name.
        units: The units.
        judgments: The model's judgment of each.
        people: The people's names.
        votes: One row per unit, one column per person; NaN where they did not judge.
    """

    task: Task
    model: str
    units: tuple[Unit, ...]
    judgments: tuple[ModelJudgment, ...]
    people: tuple[str, ...]
    votes: Doubles = field(repr=False)

    @classmethod
    def of(
        cls,
        answers: Sequence[ModelAnswer],
        people: HumanLabels,
        *,
        model: str | None = None,
        rubric: str | None = None,
    ) -> AuditSample:
        """Bring a model's answers and people's votes together."""
        chosen = one_rubric(answers, model, rubric)
        judgments = {
            unit: judgment
            for unit, judgment in model_judgments(chosen).items()
            if judgment.value is not None
        }
        units = tuple(unit for unit in judgments if any(unit in votes for votes in people.values()))
        if not units:
            raise DataError(
                "people and the model have judged nothing in common",
                hint="Let people judge a sample of what the model judged.",
            )
        names = tuple(
            sorted(name for name, votes in people.items() if not votes.keys().isdisjoint(units))
        )
        table = np.array(
            [[people[name].get(unit, np.nan) for name in names] for unit in units], float
        )
        task: Task = "grade" if len(units[0]) == 2 else "pair"
        return cls(
            task, chosen[0].model, units, tuple(judgments[unit] for unit in units), names, table
        )

    @cached_property
    def values(self) -> Doubles:
        """The model's values."""
        return np.array([judgment.value for judgment in self.judgments], float)

    @cached_property
    def clusters(self) -> Ints:
        """The number of each unit's query."""
        _, numbers = np.unique([unit[0] for unit in self.units], return_inverse=True)
        return numbers.astype(np.int64)

    def ratings(self, units: Ints, *, with_model: bool) -> Ratings:
        """The votes on some units, for coefficients of agreement; on pairs, from both sides."""
        table = self.votes[units]
        if with_model:
            table = np.column_stack([table, self.values[units]])
        if self.task == "pair":  # names of documents must not decide what agreement is by chance
            table = np.concatenate([table, -table])
        return Ratings.from_table(table)


def one_rubric(
    answers: Iterable[ModelAnswer], model: str | None = None, rubric: str | None = None
) -> list[ModelAnswer]:
    """The answers of a model by a rubric; an error if the log has several of either."""
    chosen = [
        answer
        for answer in answers
        if model in (None, answer.model)
        and rubric in (None, answer.rubric, answer.rubric_hash, answer.rubric.partition("/")[0])
    ]
    kinds = sorted({(answer.model, answer.rubric, answer.rubric_hash) for answer in chosen})
    if not kinds:
        asked = " and ".join(repr(name) for name in (model, rubric) if name is not None)
        raise ArgumentError(
            f"no answer is by {asked or 'anyone'}", hint="Name a model and a rubric of the log."
        )
    if len(kinds) > 1:
        listed = ", ".join(f"{name} with {kind} ({key})" for name, kind, key in kinds[:5])
        raise ArgumentError(
            f"the answers are by several models or rubrics: {listed}",
            hint="Name one: model= and rubric=, which may be its hash.",
        )
    return chosen


def model_scores(
    answers: Iterable[ModelAnswer], *, model: str | None = None, rubric: str | None = None
) -> dict[str, dict[str, float]]:
    """A score for each document that a model judged, by query.

    Of grades, the expected grade by the probabilities of tokens, or the grade; of pairs, the
    strength that they imply by Bradley and Terry's model.

    Args:
        answers: The model's answers.
        model: The model, if the answers are by several.
        rubric: The rubric's name or hash, if there are several.

    Example:
        >>> sure = {"1": 0.25, "2": 0.75}
        >>> one = ModelAnswer("1", "m", "r/1", "h", "q", ("a",), "2", probabilities=sure)
        >>> other = ModelAnswer("2", "m", "r/1", "h", "q", ("b",), "2")
        >>> model_scores([one, other])
        {'q': {'a': 1.75, 'b': 2.0}}
    """
    several = one_rubric(answers, model, rubric)
    grades: dict[str, dict[str, list[float]]] = {}
    for answer in several:
        if answer.label and len(answer.items) == 1:
            shares = answer.probabilities or {answer.label: 1.0}
            expected = sum(int(label) * share for label, share in shares.items())
            grades.setdefault(answer.query_id, {}).setdefault(answer.items[0], []).append(expected)
    scores = {
        query: {item: float(np.mean(values)) for item, values in items.items()}
        for query, items in grades.items()
    }
    verdicts: dict[str, dict[Unit, int]] = {}
    for unit, judgment in model_judgments(several).items():
        if len(unit) == 3 and judgment.value is not None:
            verdicts.setdefault(unit[0], {})[unit] = int(judgment.value)
    for query, pairs in verdicts.items():
        scores.setdefault(query, {}).update(_strengths(pairs))
    return scores


def _strengths(pairs: Mapping[Unit, int]) -> dict[str, float]:
    items = sorted({item for unit in pairs for item in unit[1:]})
    index_of = {item: index for index, item in enumerate(items)}
    rows = [
        (index_of[first], index_of[second], outcome, 0)
        for (_, first, second), outcome in pairs.items()
    ]
    means = fit_bradley_terry(len(items), Duels.of(rows)).means
    return dict(zip(items, means.tolist(), strict=True))
