"""A comparison of samples as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from podium.monitoring.drift import DriftReport, FeatureDrift
from podium.reports.page import report_page
from podium.reports.table import Cell, report_table


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
