"""An evaluation of a ranker as metrics of a run of MLflow."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import mlflow
import numpy as np

from podium.data import Dataset
from podium.explain.cards import model_card
from podium.measures import Conventions, evaluate
from podium.measures.comparison.statistics import mean_interval
from podium.measures.evaluation import Evaluation
from podium.measures.registry import Measure, definition_of
from podium.rankers import Ranker


def metrics_of(evaluation: Evaluation) -> dict[str, float]:
    """Return the mean of each measure, and the ends of its 95 % interval where there is one.

    Example:
        >>> from podium.measures import evaluate
        >>> metrics_of(evaluate("RR@2", [1, 0], [1, 2], group=[2]))
        {'RR_at_2': 0.5}
    """
    metrics = {}
    for measure, values in evaluation.values.items():
        name = re.sub(r"[^\w.-]+", "_", repr(measure).replace("@", "_at_")).strip("_")
        ends = mean_interval(values[~np.isnan(values)])
        if definition_of(measure).aggregate != "mean":
            ends = evaluation.means[measure], math.nan, math.nan  # the interval is of the mean
        for ending, value in zip(("", "_low", "_high"), ends, strict=True):
            if np.isfinite(value):
                metrics[name + ending] = float(value)
    return metrics


def log_evaluation(
    ranker: Ranker,
    data: Dataset,
    measures: Sequence[str | Measure] = ("nDCG@10",),
    *,
    conventions: Conventions | str | None = None,
) -> dict[str, float]:
    """Log the parameters of a ranker, its measures with intervals, and its model card.

    Args:
        ranker: A fitted ranker.
        data: Labeled queries that it was not fitted on.
        measures: The measures; their names in MLflow have ``_at_`` for ``@``.
        conventions: The conventions of the measures.

    Returns:
        The metrics by their names in MLflow: the mean of each measure, and with ``_low`` and
        ``_high`` the ends of its 95 % interval over queries, if there are two or more.

    Example:
        >>> log_evaluation(ranker, test, ["nDCG@10", "RR"])  # doctest: +SKIP
    """
    evaluation = evaluate(list(measures), data, ranker.predict(data), conventions=conventions)
    metrics = metrics_of(evaluation)
    card = model_card(ranker, data, measures, conventions=conventions)
    parameters = {"ranker": type(ranker).__name__, **ranker.get_params(deep=False)}
    mlflow.log_params({name: str(value)[:500] for name, value in parameters.items()})
    mlflow.log_metrics(metrics)
    mlflow.log_text(card.as_markdown(), "model_card.md")
    return metrics
