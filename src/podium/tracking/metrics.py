"""Evaluations as metrics of MLflow: the names that it allows, means and intervals."""

from __future__ import annotations

import math
import re

import numpy as np

from podium.measures.comparison.statistics import mean_interval
from podium.measures.evaluation import Evaluation
from podium.measures.registry import definition_of


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
