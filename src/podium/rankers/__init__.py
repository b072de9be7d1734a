"""Rankers: any loss with a linear, tree or neural scorer, as scikit-learn estimators."""

from typing import TYPE_CHECKING, Any

from podium.errors import MissingPackageError

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise MissingPackageError("scikit-learn", extra="rankers") from error

from podium.rankers.base import FitInterrupted, NotFittedError, Ranker
from podium.rankers.boosted import BoostedRanker
from podium.rankers.cascade import CascadeRanker
from podium.rankers.distillation import teacher_labels
from podium.rankers.explanation import Explanation, PairExplanation
from podium.rankers.linear import LinearRanker
from podium.rankers.loading import load_ranker
from podium.rankers.neural import NeuralRanker
from podium.rankers.staged import Stage, StagedRanker
from podium.rankers.trees import TreeRanker
from podium.rankers.tuning import Trial, TuningResult, tune

if TYPE_CHECKING:
    from podium.rankers.cross_encoder_loss import CrossEncoderLoss
    from podium.rankers.text import TextRanker, out_of_fold_scores
    from podium.rankers.text_embedder import TextEmbedder
    from podium.rankers.torch_loss import RankingLoss

__all__ = [
    "BoostedRanker",
    "CascadeRanker",
    "CrossEncoderLoss",
    "Explanation",
    "FitInterrupted",
    "LinearRanker",
    "NeuralRanker",
    "NotFittedError",
    "PairExplanation",
    "Ranker",
    "RankingLoss",
    "Stage",
    "StagedRanker",
    "TextEmbedder",
    "TextRanker",
    "TreeRanker",
    "Trial",
    "TuningResult",
    "load_ranker",
    "out_of_fold_scores",
    "teacher_labels",
    "tune",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name == "RankingLoss":  # a torch module: importing it imports torch
            from podium.rankers.torch_loss import RankingLoss

            return RankingLoss
        if name == "CrossEncoderLoss":
            from podium.rankers.cross_encoder_loss import CrossEncoderLoss

            return CrossEncoderLoss
        if name in ("TextEmbedder", "TextRanker", "out_of_fold_scores"):
            from podium.rankers import text, text_embedder

            return getattr(text_embedder if name == "TextEmbedder" else text, name)
        raise AttributeError(f"module 'podium.rankers' has no attribute {name!r}")
