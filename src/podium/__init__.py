"""Podium: from pairwise judgments to a ranker in production.

The names below are imported on first use, so that ``import podium`` stays as quick as
importing NumPy and PyArrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium import aggregation as aggregation
    from podium import cluster as cluster
    from podium import data as data
    from podium import judging as judging
    from podium import losses as losses
    from podium import measures as measures
    from podium import rankers as rankers
    from podium import utility as utility
    from podium.errors import ArgumentError as ArgumentError
    from podium.errors import DataError as DataError
    from podium.errors import MissingPackageError as MissingPackageError
    from podium.errors import PodiumError as PodiumError
    from podium.threads import thread_count as thread_count

__version__ = "0.1.0.dev0"

_ERRORS = ("ArgumentError", "DataError", "MissingPackageError", "PodiumError")
_ROOMS = (
    "aggregation",
    "cluster",
    "data",
    "judging",
    "losses",
    "measures",
    "rankers",
    "utility",
)

__all__ = [
    "ArgumentError",
    "DataError",
    "MissingPackageError",
    "PodiumError",
    "__version__",
    "aggregation",
    "cluster",
    "data",
    "judging",
    "losses",
    "measures",
    "rankers",
    "thread_count",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"podium.{name}")
    if name in _ERRORS:
        return getattr(import_module("podium.errors"), name)
    if name == "thread_count":
        return import_module("podium.threads").thread_count
    raise AttributeError(f"module 'podium' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
