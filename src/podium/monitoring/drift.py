"""Whether features and scores are distributed as they were.

Documents of one query are alike: a feature of the query has the same value for all of them. A test
that took them for independent rows would find a shift in most pairs of samples from one
distribution. So the tests take one random document per query, and the rates and the population
stability index, which are descriptions, take all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from podium.data import Dataset
from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints
from podium.monitoring.log_reader import LoggedRankings
from podium.reports.page import Cell, report_page, report_table

SCORE = "score"
_BINS = 10
_MOST_CATEGORIES = 20
_LEAST_EXPECTED = 5.0
_RESAMPLES = 9_999
_ROUNDING = 1e-7
_LEAST_QUERIES = 10


@dataclass(frozen=True)
class Sample:
    """Rows to compare.

    Attributes:
        feature_names: The names of the columns.
        values: One row per document; NaN is missing.
        query_of_row: The number of the query of each row.
        scores: The score of each row, or None.
    """

    feature_names: tuple[str, ...]
    values: Floats
    query_of_row: Ints
    scores: Doubles | None = None

    @classmethod
    def of_dataset(cls, data: Dataset, scores: Doubles | None = None) -> Sample:
        """Take the rows of a data set."""
        return cls(tuple(data.feature_names), data.features, data.query_of_row, scores)

    @classmethod
    def of_log(cls, rankings: LoggedRankings) -> Sample:
        """Take the documents of a log; rankings of one query count as one query.

        Raises:
            DataError: If several models made them: their scores are not to be mixed.
        """
        if len(rankings.models) > 1:
            raise DataError(
                f"the log has rankings of {len(rankings.models)} models: "
                f"{', '.join(rankings.models[:5])}",
                hint="Name one: read_ranking_log(..., model=...).",
            )
        numbers: dict[str, int] = {}
        queries = [numbers.setdefault(query, len(numbers)) for query in rankings.queries]
        lengths = [len(scores) for scores in rankings.scores]
        return cls(
            rankings.feature_names,
            np.concatenate(rankings.features),
            np.repeat(np.array(queries, np.int64), lengths),
            np.concatenate(rankings.scores),
        )

    def column(self, name: str) -> Doubles:
        """Return the values of a feature, or the scores."""
        if name == SCORE and name not in self.feature_names:
            assert self.scores is not None
            return self.scores
        return self.values[:, self.feature_names.index(name)].astype(np.float64)


@dataclass(frozen=True)
class FeatureDrift:
    """How a feature, or the score, differs between two samples.

    Attributes:
        name: Its name.
        stability_index: The population stability index, with a bin for missing values.
        missing_before: The share of missing values in the first sample.
        missing_now: The share in the second.
        median_before: The median of the first sample; NaN if all values are missing.
        median_now: The median of the second.
        test: What compared the values: ``Kolmogorov-Smirnov`` or, if there are few different ones,
            ``chi-square``, or ``Fisher`` where some are rare, by 9,999 draws, whose p-value is at
            least 0.0001.
        p_value: The p-value of that test and of Fisher's test of the missing values, corrected for
            two tests.
    """

    name: str
    stability_index: float
    missing_before: float
    missing_now: float
    median_before: float
    median_now: float
    test: str
    p_value: float


@dataclass(frozen=True)
class DriftReport:
    """The differences of all features, the largest evidence first.

    Attributes:
        features: One entry per feature, and one for the score if both samples have scores.
        queries_before: The number of queries of the first sample.
        queries_now: The number of queries of the second.
        level: A feature has shifted if its p-value is below this.
    """

    features: tuple[FeatureDrift, ...]
    queries_before: int
    queries_now: int
    level: float = 0.05

    @property
    def shifted(self) -> tuple[FeatureDrift, ...]:
        """The features that have shifted."""
        return tuple(each for each in self.features if each.p_value < self.level)

    @property
    def warning(self) -> str:
        """That there are too few queries to see a shift; empty if there are 10 or more of both."""
        for queries, when in ((self.queries_now, "now"), (self.queries_before, "before")):
            if queries < _LEAST_QUERIES:
                count = "is only 1 query" if queries == 1 else f"are only {queries} queries"
                return (
                    f"There {count} {when}: the tests take one document of each, so most shifts "
                    "are not seen."
                )
        return ""


def compare_samples(
    before: Sample, now: Sample, *, level: float = 0.05, random_state: int = 0
) -> DriftReport:
    """Compare each feature of two samples.

    Args:
        before: What is expected, such as the training data.
        now: What is checked.
        level: The share of unchanged features that are reported as shifted, at most.
        random_state: Draws a document per query.

    Raises:
        DataError: If the samples have different features.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> queries = np.repeat(np.arange(200), 5)
        >>> before = Sample(("bm25",), rng.normal(size=(1000, 1)), queries)
        >>> now = Sample(("bm25",), rng.normal(1.0, size=(1000, 1)), queries)
        >>> [each.name for each in compare_samples(before, now).shifted]
        ['bm25']
    """
    if set(before.feature_names) != set(now.feature_names):
        other = sorted(set(before.feature_names) ^ set(now.feature_names))
        raise DataError(
            f"the samples have different features: {', '.join(other[:10])}",
            hint="Compare a log with the data that its model was trained on.",
        )
    names = list(before.feature_names)
    if before.scores is not None and now.scores is not None and SCORE not in names:
        names.append(SCORE)
    random = np.random.default_rng(random_state)
    drawn_before, drawn_now = (_one_per_query(each, random) for each in (before, now))
    features = [
        _compare(name, before.column(name), now.column(name), drawn_before, drawn_now)
        for name in names
    ]
    features.sort(key=lambda each: (each.p_value, -each.stability_index, each.name))
    return DriftReport(tuple(features), len(drawn_before), len(drawn_now), level)


def _one_per_query(sample: Sample, random: np.random.Generator) -> Ints:
    """Return the number of one random row of each query."""
    order = random.permutation(len(sample.query_of_row))
    _, first = np.unique(sample.query_of_row[order], return_index=True)
    return order[first].astype(np.int64)


def _compare(
    name: str, before: Doubles, now: Doubles, drawn_before: Ints, drawn_now: Ints
) -> FeatureDrift:
    independent = before[drawn_before], now[drawn_now]
    test, p_values = _values_test(*independent)
    p_missing = _missing_test(*independent)
    return FeatureDrift(
        name,
        stability_index(before, now),
        float(np.isnan(before).mean()),
        float(np.isnan(now).mean()),
        _median(before),
        _median(now),
        test,
        min(1.0, 2 * min(p_values, p_missing)),
    )


def _median(values: Doubles) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def _values_test(before: Doubles, now: Doubles) -> tuple[str, float]:
    """Test whether values that are not missing have one distribution."""
    before, now = before[~np.isnan(before)], now[~np.isnan(now)]
    both = np.concatenate([before, now])
    categories = np.unique(both)
    if not _is_discrete(len(categories), len(both)):
        if not len(before) or not len(now):
            return "Kolmogorov-Smirnov", 1.0  # the test of missing values decides
        return "Kolmogorov-Smirnov", float(stats.ks_2samp(before, now).pvalue)
    if len(categories) < 2 or not len(before) or not len(now):
        return "chi-square", 1.0
    table = np.array([[(side == each).sum() for each in categories] for side in (before, now)])
    if stats.contingency.expected_freq(table).min() < _LEAST_EXPECTED:
        return "Fisher", _fisher(table)
    return "chi-square", float(stats.chi2_contingency(table, correction=False).pvalue)


def _fisher(table: NDArray[np.int64]) -> float:
    """Test a table exactly, or by tables that are drawn if it has more than two columns."""
    if table.shape == (2, 2):
        return float(stats.fisher_exact(table).pvalue)
    # Not fisher_exact's own Monte Carlo method, which fails for tens of thousands of documents.
    tables = stats.random_table(table.sum(axis=1), table.sum(axis=0), seed=np.random.default_rng(0))
    chances = tables.logpmf(tables.rvs(size=_RESAMPLES))
    as_rare = int(np.sum(chances <= tables.logpmf(table) + _ROUNDING))
    return (1 + as_rare) / (1 + _RESAMPLES)


def _is_discrete(distinct: int, values: int) -> bool:
    """Return whether values repeat so often that each is a category of its own."""
    return distinct <= min(_MOST_CATEGORIES, values // 2)


def _missing_test(before: Doubles, now: Doubles) -> float:
    table = np.array([[np.isnan(side).sum(), (~np.isnan(side)).sum()] for side in (before, now)])
    return float(stats.fisher_exact(table).pvalue)


def stability_index(before: Doubles, now: Doubles) -> float:
    """Return the population stability index over tenths of the first sample.

    Missing values have a bin of their own, and so has a value that makes up a tenth of the first
    sample, and each value if there are few. An empty bin counts as half a document.

    Example:
        >>> values = np.arange(100.0)
        >>> stability_index(values, values), stability_index(values, values + 50) > 1
        (0.0, True)
    """
    known = before[~np.isnan(before)]
    tenths = np.linspace(0, 1, _BINS + 1)[1:-1]
    distinct, repeats = np.unique(known, return_counts=True)
    if _is_discrete(len(distinct), len(known)):
        edges = own = distinct
    else:
        own = distinct[(repeats > 1) & (repeats * _BINS >= len(known))]
        edges = np.union1d(np.quantile(known, tenths), own) if len(known) else own

    def shares(values: Doubles) -> Doubles:
        present = values[~np.isnan(values)]
        # Even bins are between edges, the upper one included unless it has the odd bin after them.
        bin_of_value = 2 * np.searchsorted(edges, present) + np.isin(present, own)
        bins = np.bincount(bin_of_value, minlength=2 * len(edges) + 1)
        counts = np.append(bins, len(values) - len(present)).astype(np.float64)
        return counts / max(len(values), 1)

    first, second = shares(before), shares(now)
    used = (first > 0) | (second > 0)
    first = np.maximum(first[used], 0.5 / max(len(before), 1))
    second = np.maximum(second[used], 0.5 / max(len(now), 1))
    return float(((second - first) * np.log(second / first)).sum())


def drift_html(reports: Mapping[str, DriftReport]) -> str:
    """Format comparisons of today's rankings, by what they are compared with.

    Example:
        >>> import numpy as np
        >>> from podium.monitoring import Sample, compare_samples
        >>> sample = Sample(("a<b",), np.zeros((5, 1)), np.arange(5))
        >>> "a&lt;b" in drift_html({"training": compare_samples(sample, sample)})
        True
    """
    parts = []
    for name, report in reports.items():
        count, total = len(report.shifted), len(report.features)
        parts += [
            f"<h2>Against {escape(name)}</h2>",
            f"<p>{count} of {total} features have shifted: their p-value is below "
            f"{report.level:g}. If nothing had changed, at most {report.level * total:.1f} would "
            f"be expected. {report.queries_before:,} queries before, {report.queries_now:,} now; "
            f"the tests take one document of each. <strong>{report.warning}</strong></p>",
            _table(report),
        ]
    parts.append(
        "<p>Values are compared by the Kolmogorov-Smirnov test, or by the chi-square test if there "
        "are few distinct ones (Fisher's if some are rare), and missing values by Fisher's test. "
        "PSI is the population stability index over tenths of the earlier sample.</p>"
    )
    return report_page("Drift", parts)


def _table(report: DriftReport) -> str:
    heads = ("feature", "p-value", "PSI", "missing before", "missing now", "median before",
             "median now", "test")  # fmt: skip
    return report_table(heads, [_row(each, report.level) for each in report.features])


def _row(feature: FeatureDrift, level: float) -> list[Cell]:
    tone = "down" if feature.p_value < level else ""
    cells = (
        feature.name,
        f"{feature.p_value:.2g}",
        f"{feature.stability_index:.3f}",
        f"{feature.missing_before:.1%}",
        f"{feature.missing_now:.1%}",
        f"{feature.median_before:.4g}",
        f"{feature.median_now:.4g}",
        feature.test,
    )
    return [Cell(cell, tone) for cell in cells]
