"""Rank aggregation: several rankings of the same documents combined into one.

Votes are a matrix: a row for each document, a column for each ranker, larger is better, NaN for
documents a ranker left out. An aggregation returns one score per row, so that its result can be
evaluated, compared and aggregated like any ranking.
"""

from podium.aggregation.kemeny import supervised_kemeny
from podium.aggregation.kemeny_solver import KemenyOrders, exact_kemeny
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
