"""The definitions of all measures: functions under ``@measure``, registered by importing them.

A new measure is a function in a file here, imported below.
"""

from podium.measures.definitions.average_precision import AP
from podium.measures.definitions.bpref import bpref
from podium.measures.definitions.compat import Compat
from podium.measures.definitions.dcg import DCG, kNDCG, nDCG
from podium.measures.definitions.err import ERR, kERR
from podium.measures.definitions.first_relevant import RR, Success
from podium.measures.definitions.precision_recall import Judged, P, R, Rprec
from podium.measures.definitions.preferences import ppref, rpref, wpref
from podium.measures.definitions.rbp import RBP
from podium.measures.definitions.top_k_loss import TopKLoss
from podium.measures.definitions.wkt import WKT

__all__ = [
    "AP",
    "DCG",
    "ERR",
    "RBP",
    "RR",
    "WKT",
    "Compat",
    "Judged",
    "P",
    "R",
    "Rprec",
    "Success",
    "TopKLoss",
    "bpref",
    "kERR",
    "kNDCG",
    "nDCG",
    "ppref",
    "rpref",
    "wpref",
]
