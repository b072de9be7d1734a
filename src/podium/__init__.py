"""Podium: from pairwise judgments to a ranker in production.

The names below are imported on first use, so that ``import podium`` loads nothing else.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium import aggregation as aggregation
    from podium import cluster as cluster
    from podium import data as data
    from podium import explain as explain
    from podium import export as export
    from podium import judging as judging
    from podium import losses as losses
    from podium import measures as measures
    from podium import monitoring as monitoring
    from podium import rankers as rankers
    from podium import utility as utility
    from podium.data import Dataset as Dataset
    from podium.data import Judgments as Judgments
    from podium.data import Rankings as Rankings
    from podium.errors import ArgumentError as ArgumentError
    from podium.errors import DataError as DataError
    from podium.errors import MissingPackageError as MissingPackageError
    from podium.errors import PodiumError as PodiumError
    from podium.measures import AP as AP
    from podium.measures import DCG as DCG
    from podium.measures import ERR as ERR
    from podium.measures import GMAP as GMAP
    from podium.measures import RBP as RBP
    from podium.measures import RR as RR
    from podium.measures import WKT as WKT
    from podium.measures import YAAP as YAAP
    from podium.measures import AvgIPrec as AvgIPrec
    from podium.measures import BinGain as BinGain
    from podium.measures import Compat as Compat
    from podium.measures import GMbpref as GMbpref
    from podium.measures import GradedRBP as GradedRBP
    from podium.measures import InfAP as InfAP
    from podium.measures import IPrec as IPrec
    from podium.measures import Judged as Judged
    from podium.measures import LevelNDCG as LevelNDCG
    from podium.measures import NGain as NGain
    from podium.measures import NumNonrelRet as NumNonrelRet
    from podium.measures import NumQ as NumQ
    from podium.measures import NumRel as NumRel
    from podium.measures import NumRelRet as NumRelRet
    from podium.measures import NumRet as NumRet
    from podium.measures import P as P
    from podium.measures import R as R
    from podium.measures import RBPResidual as RBPResidual
    from podium.measures import RelNDCG as RelNDCG
    from podium.measures import RelP as RelP
    from podium.measures import Rprec as Rprec
    from podium.measures import SetAP as SetAP
    from podium.measures import SetF as SetF
    from podium.measures import SetUtility as SetUtility
    from podium.measures import Success as Success
    from podium.measures import TopKLoss as TopKLoss
    from podium.measures import Unjudged as Unjudged
    from podium.measures import bpref as bpref
    from podium.measures import compare as compare
    from podium.measures import kERR as kERR
    from podium.measures import kNDCG as kNDCG
    from podium.measures import nDCG as nDCG
    from podium.measures import ppref as ppref
    from podium.measures import rpref as rpref
    from podium.measures import wpref as wpref
    from podium.measures.evaluating import evaluate as evaluate
    from podium.rankers import BoostedRanker as BoostedRanker
    from podium.rankers import CascadeRanker as CascadeRanker
    from podium.rankers import LinearRanker as LinearRanker
    from podium.rankers import NeuralRanker as NeuralRanker
    from podium.rankers import TreeRanker as TreeRanker
    from podium.rankers import load_ranker as load_ranker
    from podium.threads import thread_count as thread_count

__version__ = "0.1.0"

if Path(__file__).with_name("vocab.py").exists():
    raise ImportError(
        "the package podium-nlp is installed in the same folder as podium-rank, and the two "
        "overwrite each other's files: pip uninstall podium-nlp podium-rank, then install "
        "podium-rank again"
    )

_PACKAGES = (
    "aggregation",
    "clicks",
    "cluster",
    "data",
    "explain",
    "export",
    "features",
    "judging",
    "losses",
    "measures",
    "monitoring",
    "rankers",
    "serving",
    "studio",
    "tracking",
    "utility",
)

_MODULE_OF = {
    name: module
    for module, names in {
        "data": "Dataset Judgments Rankings",
        "errors": "ArgumentError DataError MissingPackageError PodiumError",
        "measures": "AP AvgIPrec BinGain Compat DCG ERR GMAP GMbpref GradedRBP IPrec InfAP Judged "
        "LevelNDCG NGain NumNonrelRet NumQ NumRel NumRelRet NumRet P R RBP RBPResidual RR RelNDCG "
        "RelP Rprec SetAP SetF SetUtility Success TopKLoss Unjudged WKT YAAP bpref compare "
        "evaluate kERR kNDCG nDCG ppref rpref wpref",
        "rankers": "BoostedRanker CascadeRanker LinearRanker NeuralRanker TreeRanker load_ranker",
        "threads": "thread_count",
    }.items()
    for name in names.split()
}

# Without the packages of production, some of which need an extra: `import *` asks for all.
__all__ = [
    "AP",
    "DCG",
    "ERR",
    "GMAP",
    "RBP",
    "RR",
    "WKT",
    "YAAP",
    "ArgumentError",
    "AvgIPrec",
    "BinGain",
    "BoostedRanker",
    "CascadeRanker",
    "Compat",
    "DataError",
    "Dataset",
    "GMbpref",
    "GradedRBP",
    "IPrec",
    "InfAP",
    "Judged",
    "Judgments",
    "LevelNDCG",
    "LinearRanker",
    "MissingPackageError",
    "NGain",
    "NeuralRanker",
    "NumNonrelRet",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "PodiumError",
    "R",
    "RBPResidual",
    "Rankings",
    "RelNDCG",
    "RelP",
    "Rprec",
    "SetAP",
    "SetF",
    "SetUtility",
    "Success",
    "TopKLoss",
    "TreeRanker",
    "Unjudged",
    "__version__",
    "aggregation",
    "bpref",
    "cluster",
    "compare",
    "data",
    "evaluate",
    "explain",
    "export",
    "judging",
    "kERR",
    "kNDCG",
    "load_ranker",
    "losses",
    "measures",
    "monitoring",
    "nDCG",
    "ppref",
    "rankers",
    "rpref",
    "thread_count",
    "utility",
    "wpref",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"podium.{name}")
        if name in _MODULE_OF:
            return getattr(import_module(f"podium.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module 'podium' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
