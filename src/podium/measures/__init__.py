"""Measures as values, every convention by name."""

from podium.measures.comparison.coherence import Coherence, coherence
from podium.measures.comparison.compare import compare
from podium.measures.comparison.decision import Decision, Look, RequirementResult
from podium.measures.comparison.details import Details
from podium.measures.comparison.formats import as_json, as_latex, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.comparison.next_judgments import JudgingPlan, next_judgments
from podium.measures.comparison.power import (
    detectable_difference,
    difference_power,
    queries_needed,
)
from podium.measures.comparison.query_plan import QueryPlan
from podium.measures.comparison.requirement import Requirement
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slice_differences import SliceDifference
from podium.measures.comparison.statistics import mean_interval, paired_difference
from podium.measures.conventions import Conventions
from podium.measures.definitions import (
    AP,
    DCG,
    ERR,
    GMAP,
    RBP,
    RR,
    WKT,
    YAAP,
    AvgIPrec,
    BinGain,
    Compat,
    GMbpref,
    GradedRBP,
    InfAP,
    IPrec,
    Judged,
    LevelNDCG,
    NGain,
    NumNonrelRet,
    NumQ,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    RBPResidual,
    RelNDCG,
    RelP,
    Rprec,
    SetAP,
    SetF,
    Success,
    TopKLoss,
    Unjudged,
    Utility,
    bpref,
    kERR,
    kNDCG,
    nDCG,
    ppref,
    rpref,
    wpref,
)
from podium.measures.evaluate import evaluate
from podium.measures.evaluation import Evaluation, concat_evaluations
from podium.measures.inputs import Pairs
from podium.measures.measure_dict import ByMeasure
from podium.measures.names import parse_measure
from podium.measures.parameters import BY_CONVENTION, Parameter, integer_from, number_between
from podium.measures.presets import PRESETS, conventions_for, conventions_named, conventions_text
from podium.measures.reference import reference_page
from podium.measures.registry import measure
from podium.measures.streaming import evaluate_table
from podium.measures.value import Measure

__all__ = [
    "AP",
    "BY_CONVENTION",
    "DCG",
    "ERR",
    "GMAP",
    "PRESETS",
    "RBP",
    "RR",
    "WKT",
    "YAAP",
    "AvgIPrec",
    "BinGain",
    "ByMeasure",
    "Coherence",
    "Comparison",
    "Compat",
    "Conventions",
    "Decision",
    "Details",
    "Evaluation",
    "GMbpref",
    "GradedRBP",
    "IPrec",
    "InfAP",
    "Judged",
    "JudgingPlan",
    "LevelNDCG",
    "Look",
    "Measure",
    "NGain",
    "NumNonrelRet",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Pairs",
    "Parameter",
    "QueryPlan",
    "R",
    "RBPResidual",
    "RelNDCG",
    "RelP",
    "Requirement",
    "RequirementResult",
    "Rprec",
    "SetAP",
    "SetF",
    "SliceDifference",
    "Success",
    "TopKLoss",
    "Unjudged",
    "Utility",
    "as_html",
    "as_json",
    "as_latex",
    "as_markdown",
    "bpref",
    "coherence",
    "compare",
    "concat_evaluations",
    "conventions_for",
    "conventions_named",
    "conventions_text",
    "detectable_difference",
    "difference_power",
    "evaluate",
    "evaluate_table",
    "integer_from",
    "kERR",
    "kNDCG",
    "mean_interval",
    "measure",
    "nDCG",
    "next_judgments",
    "number_between",
    "paired_difference",
    "parse_measure",
    "ppref",
    "queries_needed",
    "reference_page",
    "rpref",
    "wpref",
]
