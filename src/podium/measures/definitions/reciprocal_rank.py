"""Reciprocal rank and success: of the first relevant document, or of the one that satisfies."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np

from podium.data.gains import exponential_gain
from podium.kernels import Doubles, Floats, inner
from podium.measures.arguments import EXPONENTIAL
from podium.measures.compiled import Positions
from podium.measures.compiled.dcg_sums import gain
from podium.measures.definitions._shared import Rel, TopK, count_tied_hits, top_k_labels
from podium.measures.parameters import BY_CONVENTION, Parameter, number_between
from podium.measures.registration import measure

_Max: TypeAlias = Annotated[
    float, Parameter("The highest grade that a document can have.", number_between(0.0, 1024.0))
]


@inner
def _cascade(probabilities: Doubles, cut: int) -> float:
    """Return the mean reciprocal rank of the document at which a user stops.

    Args:
        probabilities: That the document at each rank satisfies a user who looks at it.
        cut: How many documents a user looks at.
    """
    total, looking = 0.0, 1.0
    for position in range(min(len(probabilities), cut)):
        total += looking * probabilities[position] / (position + 1)
        looking *= 1.0 - probabilities[position]
    return total


@inner
def _expected_cascade(probabilities: Doubles, ties: Positions, cut: int) -> float:
    """Return the same as a mean over all orders of ties."""
    total, looking = 0.0, 1.0
    begin = 0
    while begin < min(len(probabilities), cut):
        end = ties[begin]
        # still[n] is the mean, over all orders of the tie, of the probability to look on after its
        # first n documents: an elementary symmetric polynomial over the number of its terms.
        still = np.zeros(end - begin + 1)
        still[0] = 1.0
        for count in range(1, end - begin + 1):
            onward = 1.0 - probabilities[begin + count - 1]
            for n in range(count, 0, -1):
                still[n] += n / count * (onward * still[n - 1] - still[n])
        for n in range(1, min(end, cut) - begin + 1):
            total += looking * (still[n - 1] - still[n]) / (begin + n)
        looking *= still[end - begin]
        begin = end
    return total


@inner
def _probability(
    label: float, highest: float, unit: float, gains: Doubles, is_probability: bool
) -> float:
    """Return the probability that a user who looks at a document with this label stops there."""
    if not label > 0.0:
        return 0.0
    if is_probability:
        return label
    if highest < len(gains):
        return gain(label, 0.0, gains, EXPONENTIAL) * unit
    return exponential_gain(label, highest)


@inner
def _highest(highest: float, ideal: Floats) -> float:
    return float(ideal[0]) if highest == 0.0 and len(ideal) else highest


def _expected_err(
    labels: Floats,
    ideal: Floats,
    ties: Positions,
    cut: int,
    gains: Doubles,
    labels_are_probabilities: bool,
    max: float,  # noqa: A002
) -> float:
    highest = _highest(max, ideal)
    probabilities = np.empty(len(labels))
    for position in range(len(labels)):
        probabilities[position] = _probability(
            labels[position], highest, 2.0**-highest, gains, labels_are_probabilities
        )
    return _expected_cascade(probabilities, ties, cut)


@measure(expected=_expected_err, monotone=True)
def ERR(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    cut: int,
    gains: Doubles,
    labels_are_probabilities: bool,
    max: _Max = BY_CONVENTION,  # noqa: A002
) -> float:
    r"""Expected reciprocal rank of the document that satisfies (Chapelle et al. 2009).

    $$\mathrm{ERR@}k = \sum_{i=1}^{k} \frac{1}{i}\, R(y_i) \prod_{j<i} (1 - R(y_j)), \quad
    R(y) = \frac{2^y - 1}{2^{y_{\max}}}$$

    where $y_{\max}$ is the highest label of the query, or the highest grade there is if that is
    given.
    """
    highest = _highest(max, ideal)
    unit = 2.0**-highest
    total, looking = 0.0, 1.0
    for position in range(min(len(labels), cut)):
        probability = _probability(labels[position], highest, unit, gains, labels_are_probabilities)
        total += looking * probability / (position + 1)
        looking *= 1.0 - probability
    return total


@inner
def _top_k_probabilities(labels: Floats, ideal: Floats, k: int) -> Doubles:
    top_labels = top_k_labels(labels, ideal, k, len(labels))
    probabilities = np.empty(len(top_labels))
    for position in range(len(top_labels)):
        probabilities[position] = exponential_gain(top_labels[position], float(k))
    return probabilities


def _expected_kerr(labels: Floats, ideal: Floats, ties: Positions, cut: int, k: int) -> float:
    return _expected_cascade(_top_k_probabilities(labels, ideal, k), ties, cut)


@measure(expected=_expected_kerr, monotone=True)
def kERR(labels: Floats, ideal: Floats, cut: int, k: TopK = 10) -> float:  # noqa: N802
    r"""κ-ERR: expected reciprocal rank with a top-k order as the ground truth (Niu et al. 2012).

    $$\kappa\text{-ERR} = \sum_{s=1}^{n} \frac{1}{s}\, R(y_s) \prod_{t<s} (1 - R(y_t)), \quad
    R(y) = \frac{2^y - 1}{2^k}, \quad y = \max(0,\ k + 1 - \text{true position})$$

    The paper prints $1/n$ where the reciprocal of the rank belongs. Labels are taken as in kNDCG.
    """
    return _cascade(_top_k_probabilities(labels, ideal, k), cut)


def _expected_reciprocal_rank(labels: Floats, ties: Positions, cut: int, rel: float) -> float:
    total, none_yet = 0.0, 1.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        hits = count_tied_hits(labels, rel, begin, end)
        for position in range(begin, min(end, cut)):
            # The most documents of the tie that can come before its first relevant one.
            if position > end - max(hits, 1):
                none_yet = 0.0
            total += none_yet * hits / (end - position) / (position + 1)
            none_yet *= 1.0 - hits / (end - position)
        begin = end
    return total


@measure(
    aliases=("recip_rank", "MRR", "reciprocal_rank"),
    expected=_expected_reciprocal_rank,
    monotone=True,
)
def RR(labels: Floats, cut: int, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Reciprocal rank: one over the rank of the first relevant document, 0 without one.

    $$\mathrm{RR} = \frac{1}{\min \{ i : y_i \ge rel \}}$$
    """
    for position in range(min(len(labels), cut)):
        if labels[position] >= rel:
            return 1.0 / (position + 1)
    return 0.0


def _expected_success(labels: Floats, ties: Positions, cut: int, rel: float) -> float:
    none_yet = 1.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        hits = count_tied_hits(labels, rel, begin, end)
        for position in range(begin, min(end, cut)):
            none_yet *= max(0.0, 1.0 - hits / (end - position))
        begin = end
    return 1.0 - none_yet


@measure(aliases=("hit_rate",), expected=_expected_success, monotone=True)
def Success(labels: Floats, cut: int, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Success: 1 if there is a relevant document among the first k, else 0.

    $$\mathrm{Success@}k = \max_{i \le k} [y_i \ge rel]$$
    """
    for position in range(min(len(labels), cut)):
        if labels[position] >= rel:
            return 1.0
    return 0.0
