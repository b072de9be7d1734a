"""Measures as values, every convention by name."""

from typing import TYPE_CHECKING

from podium.measures import definitions
from podium.measures.comparison.coherence import Coherence, coherence
from podium.measures.comparison.compare import compare
from podium.measures.comparison.decision import (
    Decision,
    Look,
    Requirement,
    RequirementResult,
    require,
)
from podium.measures.comparison.details import Details
from podium.measures.comparison.formats import as_json, as_latex, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.comparison.next_judgments import JudgingPlan, next_judgments
from podium.measures.comparison.power import (
    QueryPlan,
    detectable_difference,
    difference_power,
    plan_queries,
    queries_needed,
)
from podium.measures.comparison.prediction_powered import (
    PoweredComparison,
    PoweredMean,
    compare_powered,
    powered_mean,
)
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slice_differences import (
    SliceDifference,
    search_slices,
    slice_differences,
)
from podium.measures.comparison.statistics import mean_interval, paired_difference
from podium.measures.conventions import Conventions
from podium.measures.definitions import *
from podium.measures.evaluating import evaluate, evaluate_table
from podium.measures.evaluation import ByMeasure, Evaluation, concat_evaluations
from podium.measures.inputs import Pairs
from podium.measures.names import parse_measure
from podium.measures.parameters import BY_CONVENTION, Parameter, integer_from, number_between
from podium.measures.presets import PRESETS, conventions_for, conventions_named, conventions_text
from podium.measures.reference import reference_page
from podium.measures.registration import measure
from podium.measures.registry import Measure

__all__ = [
    "BY_CONVENTION",
    "PRESETS",
    "ByMeasure",
    "Coherence",
    "Comparison",
    "Conventions",
    "Decision",
    "Details",
    "Evaluation",
    "JudgingPlan",
    "Look",
    "Measure",
    "Pairs",
    "Parameter",
    "PoweredComparison",
    "PoweredMean",
    "QueryPlan",
    "Requirement",
    "RequirementResult",
    "SliceDifference",
    "as_html",
    "as_json",
    "as_latex",
    "as_markdown",
    "coherence",
    "compare",
    "compare_powered",
    "concat_evaluations",
    "conventions_for",
    "conventions_named",
    "conventions_text",
    "detectable_difference",
    "difference_power",
    "evaluate",
    "evaluate_table",
    "integer_from",
    "mean_interval",
    "measure",
    "next_judgments",
    "number_between",
    "paired_difference",
    "parse_measure",
    "plan_queries",
    "powered_mean",
    "queries_needed",
    "reference_page",
    "require",
    "search_slices",
    "slice_differences",
]

if not TYPE_CHECKING:  # a type checker follows the import of the definitions
    __all__ += definitions.__all__
