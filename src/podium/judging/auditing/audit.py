"""``audit``: a model's answers held against people's on a blind sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from podium.errors import ArgumentError
from podium.judging.agreement.coefficients import Interval, cluster_interval
from podium.judging.auditing import figures
from podium.judging.auditing.alt_test import LEAST_PEOPLE, AltTest, alt_test
from podium.judging.auditing.conclusion import Conclusion, conclude
from podium.judging.auditing.plan import AuditPlan, plan_audit
from podium.judging.auditing.sample import AuditSample, HumanLabels
from podium.judging.models.answer_log import ModelAnswer
from podium.kernels import Ints


@dataclass(frozen=True)
class GroupAgreement:
    """Agreement on one group of queries."""

    units: int
    with_people: Interval
    between_people: Interval


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit shows.

    Attributes:
        sample: What was judged.
        agreement: The share of people who gave the model's value.
        with_people: Cohen's kappa of the model and people.
        between_people: Cohen's kappa of people and each other.
        alpha: Krippendorff's alpha of people.
        alpha_with_model: The same with the model as one more of them.
        test: The alternative annotator test; None if there are too few people or units.
        position_bias: How much more often the first of two documents wins.
        order_consistency: The share of pairs with the same verdict in both orders.
        length_bias: The correlation of length with how much higher the model judges.
        self_consistency: The share of repeated questions with the same answer.
        calibration_error: How far certainty is from the share of people who agree.
        calibration: Certainty and the share that agrees, in bins.
        groups: Agreement by group of queries.
        conclusion: The plain answer.
        confidence: How often the intervals should contain the figures.
    """

    sample: AuditSample = field(repr=False)
    agreement: Interval
    with_people: Interval
    between_people: Interval
    alpha: Interval
    alpha_with_model: Interval
    test: AltTest | None
    position_bias: Interval
    order_consistency: Interval
    length_bias: Interval
    self_consistency: Interval
    calibration_error: Interval
    calibration: tuple[tuple[float, float, int], ...]
    groups: Mapping[str, GroupAgreement]
    conclusion: Conclusion
    confidence: float

    @property
    def figures(self) -> dict[str, Interval]:
        """Every figure with its interval, by its name."""
        return {
            "agreement with people": self.agreement,
            "kappa, model and people": self.with_people,
            "kappa between people": self.between_people,
            "alpha of people": self.alpha,
            "alpha with the model": self.alpha_with_model,
            "position bias": self.position_bias,
            "same in both orders": self.order_consistency,
            "length bias": self.length_bias,
            "same when repeated": self.self_consistency,
            "calibration error": self.calibration_error,
        }


def audit(
    answers: Sequence[ModelAnswer],
    people: HumanLabels,
    *,
    model: str | None = None,
    rubric: str | None = None,
    epsilon: float = 0.15,
    plan: AuditPlan | None = None,
    groups: Mapping[str, str] | None = None,
    confidence: float = 0.95,
    draws: int = 1000,
    random_state: int = 0,
) -> Audit:
    """Hold a model's answers against people's votes on the same documents or pairs.

    Args:
        answers: The model's answers, by one rubric: see `read_answers`.
        people: What each person said of each unit: see `human_labels`. They must not have seen
            the model's answers.
        model: The model, if the answers are by several.
        rubric: The rubric's name, with or without its version, or its hash, if there are several.
        epsilon: The margin of the alternative annotator test: 0.2 where people are experts, 0.15
            where they are trained, 0.1 for a crowd.
        plan: How many units must be judged, by two people or more, for a yes: see `plan_audit`,
            whose other arguments have their defaults if there is no plan.
        groups: To each query id its group, for agreement by group.
        confidence: The level of the intervals, which resample queries.
        draws: How many samples the intervals are taken from.
        random_state: Draws them.

    Example:
        >>> labels = ["0", "2", "1", "3"] * 40
        >>> answers = [
        ...     ModelAnswer(str(n), "tiny", "grades/1", "h", f"q{n}", ("d",), label)
        ...     for n, label in enumerate(labels)
        ... ]
        >>> votes = {(f"q{n}", "d"): float(label) for n, label in enumerate(labels)}
        >>> result = audit(answers, {name: votes for name in ("ann", "bob", "cem")}, draws=100)
        >>> result.conclusion.decision, result.test.winning_rate
        ('replace', 1.0)
    """
    if draws < 2 or not 0 < confidence < 1:
        raise ArgumentError(
            f"{draws} draws at confidence {confidence}",
            hint="Give 2 or more, and a confidence between 0 and 1.",
        )
    sample = AuditSample.of(answers, people, model=model, rubric=rubric)
    plan = plan or plan_audit(people=max(len(sample.people), LEAST_PEOPLE), epsilon=epsilon)
    interval = partial(
        cluster_interval,
        clusters=sample.clusters,
        draws=draws,
        confidence=confidence,
        random_state=random_state,
    )
    with_people, between_people = (
        figures.kappa_with_people(sample),
        figures.kappa_between_people(sample),
    )
    test = alt_test(
        sample.values,
        sample.votes,
        sample.people,
        clusters=sample.clusters,
        epsilon=epsilon,
        graded=sample.task == "grade",
    )
    kappa, kappa_people = interval(with_people), interval(between_people)
    position, length = (
        interval(figures.position_bias(sample)),
        interval(figures.length_bias(sample)),
    )
    share = partial(interval, least=0.0)
    return Audit(
        sample,
        agreement=share(figures.agreement_with_people(sample)),
        with_people=kappa,
        between_people=kappa_people,
        alpha=interval(figures.alpha(sample, with_model=False)),
        alpha_with_model=interval(figures.alpha(sample, with_model=True)),
        test=test,
        position_bias=position,
        order_consistency=share(figures.order_consistency(sample)),
        length_bias=length,
        self_consistency=share(figures.self_consistency_of_model(sample)),
        calibration_error=share(figures.calibration_error(sample)),
        calibration=tuple(figures.calibration_curve(sample)),
        groups={
            name: GroupAgreement(
                len(units),
                _within(with_people, units, sample, confidence, draws, random_state),
                _within(between_people, units, sample, confidence, draws, random_state),
            )
            for name, units in _groups(sample, groups or {}).items()
        },
        conclusion=conclude(
            sample.task,
            test,
            kappa,
            kappa_people,
            {"position bias": position, "length bias": length},
            int((np.isfinite(sample.votes).sum(axis=1) > 1).sum()),
            plan.units,
        ),
        confidence=confidence,
    )


def _groups(sample: AuditSample, groups: Mapping[str, str]) -> dict[str, Ints]:
    members: dict[str, list[int]] = {}
    for number, unit in enumerate(sample.units):
        if unit[0] in groups:
            members.setdefault(groups[unit[0]], []).append(number)
    return {name: np.array(members[name], np.int64) for name in sorted(members)}


def _within(
    statistic: figures.Statistic,
    units: Ints,
    sample: AuditSample,
    confidence: float,
    draws: int,
    random_state: int,
) -> Interval:
    return cluster_interval(
        lambda chosen: statistic(units[chosen]),
        sample.clusters[units],
        confidence=confidence,
        draws=draws,
        random_state=random_state,
    )
