"""One file a measure; importing them registers them."""

from podium.measures.definitions.average_precision import AP
from podium.measures.definitions.bpref import bpref
from podium.measures.definitions.compat import Compat
from podium.measures.definitions.dcg import DCG
from podium.measures.definitions.err import ERR
from podium.measures.definitions.judged import Judged
from podium.measures.definitions.kerr import kERR
from podium.measures.definitions.kndcg import kNDCG
from podium.measures.definitions.ndcg import nDCG
from podium.measures.definitions.precision import P
from podium.measures.definitions.preferences import ppref, rpref, wpref
from podium.measures.definitions.r_precision import Rprec
from podium.measures.definitions.rbp import RBP
from podium.measures.definitions.recall import R
from podium.measures.definitions.reciprocal_rank import RR
from podium.measures.definitions.success import Success
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
