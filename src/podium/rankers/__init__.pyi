from .base import Ranker
from .boosted import BoostedRanker
from .cascade import CascadeRanker
from .cross_encoder_loss import CrossEncoderLoss
from .distillation import teacher_labels
from .linear import LinearRanker
from .loading import load_ranker
from .models import get_model
from .neural import NeuralRanker
from .staged import Stage, StagedRanker
from .text import TextRanker, out_of_fold_scores
from .text_embedder import TextEmbedder
from .torch_loss import RankingLoss
from .trees import TreeRanker
from .tuning import tune

__all__ = [
    "BoostedRanker",
    "CascadeRanker",
    "CrossEncoderLoss",
    "LinearRanker",
    "NeuralRanker",
    "Ranker",
    "RankingLoss",
    "Stage",
    "StagedRanker",
    "TextEmbedder",
    "TextRanker",
    "TreeRanker",
    "get_model",
    "load_ranker",
    "out_of_fold_scores",
    "teacher_labels",
    "tune",
]
