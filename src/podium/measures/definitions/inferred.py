"""Inferred average precision, for pools of which a sample was judged."""

from __future__ import annotations

from math import isnan, nan

from podium.kernels import Floats
from podium.measures.definitions._shared import Rel, count_relevant
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@measure(aliases=("infAP",), knows_the_pool=True, monotone=True)
def InfAP(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Inferred average precision (Yilmaz and Aslam 2006), for a pool of which a sample was judged.

    $$\mathrm{InfAP} = \frac{1}{R} \sum_{i : y_i \ge rel} \left(\frac{1}{i} + \frac{i - 1}{i} \cdot
    \frac{\text{pooled above } i}{i - 1} \cdot \frac{\text{relevant above } i + \varepsilon}
    {\text{judged above } i + 2 \varepsilon}\right), \quad \varepsilon = 10^{-5}$$

    A document of the pool that was not judged has a label below 0, where conventions take such
    labels as unjudged.
    """
    relevant = count_relevant(ideal, rel)
    if not relevant:
        return nan
    epsilon = 1e-5
    total = 0.0
    hits = misses = unjudged = 0
    for position in range(len(labels)):
        label = labels[position]
        if isnan(label):
            continue
        if label < 0.0:
            unjudged += 1
        elif label < rel:
            misses += 1
        else:
            pooled = hits + misses + unjudged
            total += (1.0 + pooled * (hits + epsilon) / (hits + misses + 2.0 * epsilon)) / (
                position + 1
            )
            hits += 1
    return total / relevant
