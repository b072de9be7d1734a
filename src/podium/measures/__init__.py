"""Measures as values, every convention by name.

Every registered measure is public, so a new one is public by its definition alone.
"""

from typing import TYPE_CHECKING

from podium.measures import definitions
from podium.measures.comparison.compare import compare
from podium.measures.comparison.decision import require
from podium.measures.comparison.next_judgments import next_judgments
from podium.measures.comparison.power import plan_queries
from podium.measures.comparison.prediction_powered import compare_powered
from podium.measures.comparison.slice_differences import slice_differences
from podium.measures.conventions import Conventions
from podium.measures.definitions import *
from podium.measures.evaluating import evaluate, evaluate_table
from podium.measures.parameters import Parameter, number_between
from podium.measures.registration import measure

__all__ = [
    "Conventions",
    "Parameter",
    "compare",
    "compare_powered",
    "evaluate",
    "evaluate_table",
    "measure",
    "next_judgments",
    "number_between",
    "plan_queries",
    "require",
    "slice_differences",
]

if not TYPE_CHECKING:  # a type checker follows the import of the definitions
    __all__ += definitions.__all__
