from .evaluation import log_evaluation
from .evaluator import compare_runs
from .flavor import load_model, log_model

__all__ = [
    "compare_runs",
    "load_model",
    "log_evaluation",
    "log_model",
]
