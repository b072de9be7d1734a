"""What scores is what the ranker itself would, or is not served."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from podium.data import Dataset
from podium.errors import DataError
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, NeuralRanker, TreeRanker
from podium.serving.scoring import check_scorer, read_scorer, takes_missing
from tests.serving.service import NAMES, rows, training_data, trees


@pytest.mark.parametrize(
    ("ranker", "engine", "missing"),
    [
        (TreeRanker(n_estimators=5), "tree_walk", True),
        (TreeRanker(engine="xgboost", n_estimators=5), "tree_walk", True),
        (NeuralRanker(epochs=1), "onnxruntime", True),
        (LinearRanker(), "native", False),
        (BoostedRanker(n_estimators=5), "native", True),
        (CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")]), "native", False),
    ],
)
def test_every_kind_scores_as_the_ranker_does(ranker, engine, missing):
    ranker.fit(training_data())
    scorer = read_scorer(ranker.to_bytes())
    check_scorer(scorer)
    query = Dataset.from_arrays(rows()[:50], np.zeros(50), group=[50], feature_names=NAMES)
    np.testing.assert_allclose(scorer.score(rows()[:50]), ranker.predict(query), atol=1e-5)
    assert (scorer.engine, takes_missing(scorer)) == (engine, missing)


def test_a_model_of_lightgbm_itself():
    booster = trees()._booster
    content = trees().archive().blobs["model"]
    assert content.startswith(b"tree")
    scorer = read_scorer(content)
    check_scorer(scorer)
    np.testing.assert_allclose(scorer.score(rows()[:50]), booster.predict(rows()[:50]), atol=1e-6)


def test_a_scorer_that_is_off_is_not_served():
    scorer = read_scorer(trees().to_bytes())
    off = replace(scorer, score=lambda X: scorer.score(X) + 1e-3)
    with pytest.raises(DataError, match=r"scores a document 0\.001 off in tree_walk"):
        check_scorer(off)


def test_scores_that_are_not_finite_are_not_served():
    scorer = read_scorer(trees().to_bytes())
    for wrong in (lambda X: scorer.score(X) * np.nan, lambda X: scorer.score(X)[:-1]):
        with pytest.raises(DataError, match="one finite score per document"):
            check_scorer(replace(scorer, score=wrong))
