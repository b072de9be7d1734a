"""One file a measure; importing them registers them."""

from podium.measures.kinds.average_precision import AP
from podium.measures.kinds.bpref import bpref
from podium.measures.kinds.compat import Compat
from podium.measures.kinds.dcg import DCG
from podium.measures.kinds.err import ERR
from podium.measures.kinds.judged import Judged
from podium.measures.kinds.kerr import kERR
from podium.measures.kinds.kndcg import kNDCG
from podium.measures.kinds.ndcg import nDCG
from podium.measures.kinds.precision import P
from podium.measures.kinds.preferences import ppref, rpref, wpref
from podium.measures.kinds.r_precision import Rprec
from podium.measures.kinds.rbp import RBP
from podium.measures.kinds.recall import R
from podium.measures.kinds.reciprocal_rank import RR
from podium.measures.kinds.success import Success
from podium.measures.kinds.top_k_loss import TopKLoss
from podium.measures.kinds.wkt import WKT

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
