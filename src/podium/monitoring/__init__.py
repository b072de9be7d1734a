"""What was ranked in production: data sets from ranking logs, and drift against training."""

from podium.monitoring.drift import DriftReport, FeatureDrift, Sample, compare_samples
from podium.monitoring.drift_html import drift_html
from podium.monitoring.log_reader import LoggedRankings, read_ranking_log

__all__ = [
    "DriftReport",
    "FeatureDrift",
    "LoggedRankings",
    "Sample",
    "compare_samples",
    "drift_html",
    "read_ranking_log",
]
