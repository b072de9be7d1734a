"""The definitions of all measures: functions under ``@measure``, registered by importing them.

A new measure is a function in a file here, imported below.
"""

from podium.measures.definitions.average_precision import AP, GMAP, YAAP
from podium.measures.definitions.bpref import GMbpref, bpref
from podium.measures.definitions.compat import Compat
from podium.measures.definitions.counts import (
    NumNonrelRet,
    NumQ,
    NumRel,
    NumRelRet,
    NumRet,
    Utility,
)
from podium.measures.definitions.dcg import DCG, kNDCG, nDCG
from podium.measures.definitions.err import ERR, kERR
from podium.measures.definitions.first_relevant import RR, Success
from podium.measures.definitions.gain_measures import BinGain, LevelNDCG, NGain, RelNDCG
from podium.measures.definitions.inferred import InfAP
from podium.measures.definitions.interpolated_precision import AvgIPrec, IPrec
from podium.measures.definitions.precision_recall import Judged, P, R, Rprec
from podium.measures.definitions.preferences import ppref, rpref, wpref
from podium.measures.definitions.rbp import RBP, GradedRBP
from podium.measures.definitions.sets import RelP, SetAP, SetF
from podium.measures.definitions.top_k_loss import TopKLoss
from podium.measures.definitions.unjudged import RBPResidual, Unjudged
from podium.measures.definitions.wkt import WKT

__all__ = [
    "AP",
    "DCG",
    "ERR",
    "GMAP",
    "RBP",
    "RR",
    "WKT",
    "YAAP",
    "AvgIPrec",
    "BinGain",
    "Compat",
    "GMbpref",
    "GradedRBP",
    "IPrec",
    "InfAP",
    "Judged",
    "LevelNDCG",
    "NGain",
    "NumNonrelRet",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "R",
    "RBPResidual",
    "RelNDCG",
    "RelP",
    "Rprec",
    "SetAP",
    "SetF",
    "Success",
    "TopKLoss",
    "Unjudged",
    "Utility",
    "bpref",
    "kERR",
    "kNDCG",
    "nDCG",
    "ppref",
    "rpref",
    "wpref",
]
