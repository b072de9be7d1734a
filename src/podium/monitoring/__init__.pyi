from .drift import Sample, compare_samples
from .log_reader import read_ranking_log

__all__ = [
    "Sample",
    "compare_samples",
    "read_ranking_log",
]
