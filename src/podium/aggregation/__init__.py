"""Several rankings of the same documents made into one.

Votes are a matrix: a row for each document, a column for each ranker, larger is better, NaN for
documents a ranker left out. An aggregation gives a score for each row, so that its result is
evaluated, compared and aggregated like any ranking.
"""

from podium.aggregation.exact import KemenyOrders, exact_kemeny
from podium.aggregation.kemeny import supervised_kemeny
from podium.aggregation.margins import kendall_distance
from podium.aggregation.positional import borda, reciprocal_rank
from podium.aggregation.runs import StackedRuns, fuse, stack_runs
from podium.aggregation.weights import proportional_weights, tuned_weights

__all__ = [
    "KemenyOrders",
    "StackedRuns",
    "borda",
    "exact_kemeny",
    "fuse",
    "kendall_distance",
    "proportional_weights",
    "reciprocal_rank",
    "stack_runs",
    "supervised_kemeny",
    "tuned_weights",
]
