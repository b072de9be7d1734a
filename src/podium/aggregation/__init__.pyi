from .kemeny import supervised_kemeny
from .kemeny_solver import exact_kemeny
from .margins import kendall_distance
from .positional import borda, reciprocal_rank
from .runs import fuse, stack_runs
from .weights import proportional_weights, tuned_weights

__all__ = [
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
