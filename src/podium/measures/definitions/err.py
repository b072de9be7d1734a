"""Expected reciprocal rank."""

from __future__ import annotations

import numpy as np

from podium.data.gains import exponential_gain
from podium.kernels import Doubles, Floats, kernel
from podium.measures.compiled.dcg_sums import gain
from podium.measures.compiled.ranked import EXPONENTIAL, Ranked, Settings
from podium.measures.definitions._cascade import expected_cascade
from podium.measures.registry import measure
from podium.measures.value import Parameter, number_between

MAX = Parameter("max", "The highest grade that a document can have.", number_between(0.0, 1024.0))


@kernel
def _chance(label: float, highest: float, unit: float, gains: Doubles, as_is: bool) -> float:
    """The chance that a user who looks at a document with this label stops there."""
    if not label > 0.0:
        return 0.0
    if as_is:
        return label
    if highest < len(gains):
        return gain(label, 0.0, gains, EXPONENTIAL) * unit
    return exponential_gain(label, highest)


@kernel
def _highest(highest: float, ideal: Floats) -> float:
    return float(ideal[0]) if highest == 0.0 and len(ideal) else highest


def _expected(query: Ranked, settings: Settings) -> float:
    labels, gains, as_is = query.labels, settings.gains, settings.labels_are_chances
    highest = _highest(settings.highest, query.ideal)
    chances = np.empty(len(labels))
    for place in range(len(labels)):
        chances[place] = _chance(labels[place], highest, 2.0**-highest, gains, as_is)
    return expected_cascade(chances, query.ties, settings.cut)


@measure("ERR", parameters=(MAX,), expected=_expected)
def ERR(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Expected reciprocal rank of the document that satisfies (Chapelle et al. 2009).

    $$\mathrm{ERR@}k = \sum_{i=1}^{k} \frac{1}{i}\, R(y_i) \prod_{j<i} (1 - R(y_j)), \quad
    R(y) = \frac{2^y - 1}{2^{y_{\max}}}$$

    where $y_{\max}$ is the highest label of the query, or the highest grade there is if that is
    given.
    """
    labels, gains, as_is = query.labels, settings.gains, settings.labels_are_chances
    highest = _highest(settings.highest, query.ideal)
    unit = 2.0**-highest
    total, looking = 0.0, 1.0
    for place in range(min(len(labels), settings.cut)):
        chance = _chance(labels[place], highest, unit, gains, as_is)
        total += looking * chance / (place + 1)
        looking *= 1.0 - chance
    return total
