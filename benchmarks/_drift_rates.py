"""How often drift is reported: of features that were shifted, and of those that were not."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks._report import Report
from podium.kernels import Floats, Ints
from podium.monitoring import Sample, compare_samples

_NAMES = ("mean", "missing rate", "category", "of the query")
_QUERIES, _DOCUMENTS = 300, 20
_SHIFTS: dict[str, dict[str, float]] = {
    "mean": {"mean": 0.5},
    "missing rate": {"missing": 0.25},
    "category": {"categories": 4},
}
"""Half a standard deviation, 10 % to 25 % missing, and one of five categories gone."""


def drift_rates(report: Report, repeats: int) -> None:
    """Compare samples of 300 queries, shifted and not, and report the rates per feature."""
    random = np.random.default_rng(0)
    alarms = dict.fromkeys(_NAMES, 0)
    detected = dict.fromkeys(_SHIFTS, 0)
    for _ in range(repeats):
        for each in compare_samples(_sample(random), _sample(random)).shifted:
            alarms[each.name] += 1
        for name, shift in _SHIFTS.items():
            shifted = compare_samples(_sample(random), _sample(random, **shift)).shifted
            detected[name] += name in {each.name for each in shifted}
    for name, count in detected.items():
        report.check(f"shifts of the {name} that are reported", count / repeats, 0.95, unit="")
    # With a true rate of 5 %, more than this would be seen in one of a thousand runs.
    most = stats.binom.ppf(0.999, repeats, 0.05) / repeats
    for name, count in alarms.items():
        report.check(f"false alarms, {name}", count / repeats, most, at_least=False, unit="")


def _sample(
    random: np.random.Generator, *, mean: float = 0.0, missing: float = 0.1, categories: float = 5
) -> Sample:
    """Draw documents that are alike within a query, with some values missing."""
    rows = _QUERIES * _DOCUMENTS
    query: Ints = np.repeat(np.arange(_QUERIES), _DOCUMENTS)
    own = random.normal(mean, 0.8, rows) + random.normal(0, 0.6, _QUERIES)[query]
    sparse = np.where(random.random(rows) < missing, np.nan, random.normal(size=rows))
    category = random.integers(0, int(categories), rows).astype(np.float64)
    of_query = random.normal(size=_QUERIES)[query]
    values: Floats = np.column_stack([own, sparse, category, of_query]).astype(np.float32)
    return Sample(_NAMES, values, query)
