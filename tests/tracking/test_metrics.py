"""Evaluations as metrics of MLflow."""

import numpy as np
import pytest

from podium.measures import evaluate
from podium.tracking.evaluation import metrics_of


def test_what_is_not_a_mean_has_no_interval() -> None:
    labels, scores = [1, 0, 0, 1], [2, 1, 2, 1]
    evaluation = evaluate(["GMAP", "NumRet"], labels, scores, group=[2, 2])
    assert metrics_of(evaluation) == {
        "GMAP": pytest.approx(evaluation.means["GMAP"]), "NumRet": 4.0,
    }  # fmt: skip
    assert evaluation.means["GMAP"] == pytest.approx(np.sqrt(1.0 * 0.5))
