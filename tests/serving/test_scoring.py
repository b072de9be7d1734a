"""What scores is what the ranker itself would, or is not served."""

from __future__ import annotations

import json
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import xgboost

from podium.data import Dataset
from podium.errors import DataError
from podium.export.reading import ranker_of_bytes
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, NeuralRanker, TreeRanker
from podium.serving.model import ServedModel
from podium.serving.refusal import Refusal
from podium.serving.scoring import check_scorer, scorer_of, takes_missing
from podium.serving.tensors import parse_infer
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
    scorer = scorer_of(ranker)
    check_scorer(scorer)
    query = Dataset.from_arrays(rows()[:50], np.zeros(50), group=[50], feature_names=NAMES)
    np.testing.assert_allclose(scorer.score(rows()[:50]), ranker.predict(query), atol=1e-5)
    assert (scorer.engine, takes_missing(scorer)) == (engine, missing)


def test_a_model_of_lightgbm_itself():
    booster = trees()._booster
    content = trees().archive().blobs["model"]
    assert content.startswith(b"tree")
    scorer = scorer_of(ranker_of_bytes(content))
    check_scorer(scorer)
    np.testing.assert_allclose(scorer.score(rows()[:50]), booster.predict(rows()[:50]), atol=1e-6)


def test_a_model_of_lightgbm_is_served_in_the_precision_that_it_compares_in():
    # Seconds since 1970, which single precision tells apart by two minutes.
    X = 1_700_000_000 + np.arange(64.0)[:, None]
    label = (X[:, 0] > 1_700_000_031).astype(float)
    parameters = {"objective": "regression", "min_data_in_leaf": 1, "min_data_in_bin": 1}
    booster = lightgbm.train(parameters | {"verbosity": -1}, lightgbm.Dataset(X, label), 5)
    content = booster.model_to_string().encode()
    scorer = scorer_of(ranker_of_bytes(content))
    assert not scorer.single
    expected = np.asarray(booster.predict(X, raw_score=True))
    assert len(set(expected)) == 2
    np.testing.assert_allclose(scorer.score(X), expected, rtol=1e-12)
    assert takes_missing(scorer)

    model = ServedModel("time", 1, content, {}, 100)
    (name,) = model.feature_names
    documents = [{"id": row, "features": {name: value}} for row, value in enumerate(X[:, 0])]
    ranked = model.decoder(json.dumps({"documents": documents}).encode())
    np.testing.assert_allclose(model.score(ranked.rows), expected, rtol=1e-12)
    (entry,) = model.metadata([1])["inputs"]
    assert entry["datatype"] == "FP64"
    tensor = {"name": "features", "shape": [64, 1], "datatype": "FP64", "data": X.tolist()}
    body = json.dumps({"inputs": [tensor]}).encode()
    asked = parse_infer(body, None, 1, 100, single=model.single)
    np.testing.assert_allclose(model.score(asked.rows), expected, rtol=1e-12)
    with pytest.raises(Refusal, match=r"is infinite$"):
        model.score(np.full((1, 1), np.inf))
    # As the shadow of a model that compares in double precision.
    shadow = ServedModel("shadow", 1, trees().to_bytes(), {}, 100)
    with pytest.raises(Refusal, match=r"is infinite in single precision$"):
        shadow.score(np.full((1, len(NAMES)), 1e300))


def test_other_models_are_served_in_single_precision():
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(rows()[:50], rows()[:50, 0]), 2)
    contents = [trees().to_bytes(), bytes(booster.save_raw("json"))]
    assert [scorer_of(ranker_of_bytes(content)).single for content in contents] == [True, True]


def test_a_scorer_that_is_off_is_not_served():
    scorer = scorer_of(trees())
    off = replace(scorer, score=lambda X: scorer.score(X) + 1e-3)
    with pytest.raises(DataError, match=r"scores a document 0\.001 off in tree_walk"):
        check_scorer(off)


def test_scores_that_are_not_finite_are_not_served():
    scorer = scorer_of(trees())
    for wrong in (lambda X: scorer.score(X) * np.nan, lambda X: scorer.score(X)[:-1]):
        with pytest.raises(DataError, match="one finite score per document"):
            check_scorer(replace(scorer, score=wrong))
