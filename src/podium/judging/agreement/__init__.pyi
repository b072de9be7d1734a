from .consensus import dawid_skene
from .matrix import Agreement, inferred_verdicts
from .ratings import Ratings

__all__ = [
    "Agreement",
    "Ratings",
    "dawid_skene",
    "inferred_verdicts",
]
