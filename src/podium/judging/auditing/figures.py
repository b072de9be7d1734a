"""Figures of an audit: agreement, biases and calibration.

Each function prepares a sample once and returns the figure of any of its units, as the bootstrap
over queries asks for thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from podium.errors import DataError
from podium.judging.agreement.coefficients import krippendorff_alpha, table_kappa
from podium.judging.auditing.sample import AuditSample
from podium.kernels import Doubles, Ints

Statistic: TypeAlias = Callable[[Ints], float]

_BINS = 10


def kappa_with_people(sample: AuditSample) -> Statistic:
    """Cohen's kappa of the model and people, over all votes."""
    counts, categories = _counts(sample)
    tables = np.zeros((len(counts), len(categories), len(categories)))
    tables[np.arange(len(counts)), np.searchsorted(categories, sample.values)] = counts
    return _kappa(sample, tables)


def kappa_between_people(sample: AuditSample) -> Statistic:
    """Cohen's kappa of every two people on the same unit, both ways."""
    counts, _ = _counts(sample)
    tables = counts[:, :, None] * counts[:, None, :]
    each = np.arange(counts.shape[1])
    tables[:, each, each] -= counts
    return _kappa(sample, tables)


def agreement_with_people(sample: AuditSample) -> Statistic:
    """The share of people who gave the model's value, in the mean over units."""
    return _mean(_agreeing(sample))


def alpha(sample: AuditSample, *, with_model: bool) -> Statistic:
    """Krippendorff's alpha of people, or of people and the model, for ordered values."""

    def statistic(units: Ints) -> float:
        try:
            return krippendorff_alpha(sample.ratings(units, with_model=with_model), "ordinal")
        except DataError:  # nothing was judged by two
            return float("nan")

    return statistic


def position_bias(sample: AuditSample) -> Statistic:
    """How much more often the first of two documents wins than the second.

    0 is never, 1 means that the first always wins; NaN if pairs were not asked in both orders.
    """
    leads = [
        (np.mean(each.forward) - np.mean(each.backward)) / 2
        if each.forward and each.backward
        else np.nan
        for each in sample.judgments
    ]
    return _mean(np.array(leads, float))


def order_consistency(sample: AuditSample) -> Statistic:
    """The share of pairs with the same verdict in both orders."""
    same = [
        each.forward[0] == each.backward[0] if each.forward and each.backward else np.nan
        for each in sample.judgments
    ]
    return _mean(np.array(same, float))


def self_consistency_of_model(sample: AuditSample) -> Statistic:
    """The share of repeated questions with the same answer as the first time."""
    again, same = np.zeros((2, len(sample.units)))
    for unit, each in enumerate(sample.judgments):
        for answers in (each.forward, each.backward):
            again[unit] += len(answers[1:])
            same[unit] += sum(value == answers[0] for value in answers[1:])

    def statistic(units: Ints) -> float:
        total = again[units].sum()
        return float(same[units].sum() / total) if total else float("nan")

    return statistic


def length_bias(sample: AuditSample) -> Statistic:
    """The rank correlation of length with how much higher the model judges than people do.

    Of pairs, of the ratio of lengths with how much more the model favors the longer document.
    """
    from scipy import stats

    lengths = np.array([each.length for each in sample.judgments], float)
    excess = sample.values - np.nanmean(sample.votes, axis=1)

    def statistic(units: Ints) -> float:
        chosen = units[~np.isnan(lengths[units])]
        if len(chosen) < 3 or np.ptp(lengths[chosen]) == 0 or np.ptp(excess[chosen]) == 0:
            return float("nan")
        return float(stats.spearmanr(lengths[chosen], excess[chosen]).statistic)

    return statistic


def calibration_error(sample: AuditSample) -> Statistic:
    """The expected calibration error: how far certainty is from the share of people who agree.

    Over ten bins of equal width; NaN if the model does not say how sure it is.
    """
    sure, agrees = _certainty(sample), _agreeing(sample)

    def statistic(units: Ints) -> float:
        chosen = units[~np.isnan(sure[units])]
        if not len(chosen):
            return float("nan")
        gaps = np.bincount(_bins(sure[chosen]), agrees[chosen] - sure[chosen], minlength=_BINS)
        return float(np.abs(gaps).sum() / len(chosen))

    return statistic


def calibration_curve(sample: AuditSample) -> list[tuple[float, float, int]]:
    """For each bin that is not empty: mean certainty, the share that agrees, how many units."""
    known = ~np.isnan(_certainty(sample))
    sure, agrees = _certainty(sample)[known], _agreeing(sample)[known]
    bins = _bins(sure)
    return [
        (float(sure[bins == each].mean()), float(agrees[bins == each].mean()), int(count))
        for each, count in enumerate(np.bincount(bins, minlength=_BINS))
        if count
    ]


def _counts(sample: AuditSample) -> tuple[Doubles, Doubles]:
    """How many people gave each unit each value, and the values that occur."""
    known = ~np.isnan(sample.votes)
    categories = np.unique(np.concatenate([sample.votes[known], sample.values]))
    if sample.task == "pair":
        categories = np.array([-1.0, 0.0, 1.0])
    equal = sample.votes[:, :, None] == categories
    return equal.sum(axis=1).astype(float), categories


def _kappa(sample: AuditSample, tables: Doubles) -> Statistic:
    """Kappa of the sum of units' tables; each pair counts as seen from both of its documents.

    Seen from one, agreement by chance would depend on the documents' names: where the better ones
    come first in the alphabet, almost all agreement would be expected.
    """
    if sample.task == "pair":
        tables = tables + tables[:, ::-1, ::-1]

    def statistic(units: Ints) -> float:
        table = tables[units].sum(axis=0)
        return table_kappa(table) if table.any() else float("nan")

    return statistic


def _mean(values: Doubles) -> Statistic:
    def statistic(units: Ints) -> float:
        known = values[units][~np.isnan(values[units])]
        return float(known.mean()) if len(known) else float("nan")

    return statistic


def _certainty(sample: AuditSample) -> Doubles:
    return np.array([each.certainty for each in sample.judgments], float)


def _agreeing(sample: AuditSample) -> Doubles:
    known = ~np.isnan(sample.votes)
    shares: Doubles = (sample.votes == sample.values[:, None]).sum(axis=1) / known.sum(axis=1)
    return shares


def _bins(sure: Doubles) -> Ints:
    return np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
