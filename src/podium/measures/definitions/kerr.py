"""Expected reciprocal rank of a top-k order."""

from __future__ import annotations

import numpy as np

from podium.data.gains import exponential_gain
from podium.kernels import Doubles, Floats, kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._cascade import cascade, expected_cascade
from podium.measures.definitions._shared import K
from podium.measures.definitions._top_k import top_k_labels
from podium.measures.registry import measure


@kernel
def _chances(labels: Floats, ideal: Floats, k: int) -> Doubles:
    places = top_k_labels(labels, ideal, k, len(labels))
    chances = np.empty(len(places))
    for place in range(len(places)):
        chances[place] = exponential_gain(places[place], float(k))
    return chances


def _expected(query: Ranked, settings: Settings) -> float:
    return expected_cascade(
        _chances(query.labels, query.ideal, settings.k), query.ties, settings.cut
    )


@measure("kERR", parameters=(K,), expected=_expected)
def kERR(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""κ-ERR: expected reciprocal rank with a top-k order as the truth (Niu et al. 2012).

    $$\kappa\text{-ERR} = \sum_{s=1}^{n} \frac{1}{s}\, R(y_s) \prod_{t<s} (1 - R(y_t)), \quad
    R(y) = \frac{2^y - 1}{2^k}, \quad y = \max(0,\ k + 1 - \text{true position})$$

    The paper prints $1/n$ where the reciprocal of the rank belongs. Labels are taken as in kNDCG.
    """
    return cascade(_chances(query.labels, query.ideal, settings.k), settings.cut)
