"""Rankers and their evaluations in MLflow."""

from podium.errors import MissingPackageError

try:
    import mlflow as _mlflow  # noqa: F401
except ImportError as error:
    raise MissingPackageError("mlflow", extra="mlflow") from error

from podium.tracking.evaluation import log_evaluation
from podium.tracking.evaluator import RankingEvaluator, compare_runs
from podium.tracking.flavor import load_model, log_model, save_model

__all__ = [
    "RankingEvaluator",
    "compare_runs",
    "load_model",
    "log_evaluation",
    "log_model",
    "save_model",
]
