"""The presets of LightGBM, XGBoost, CatBoost and scikit-learn against the tools, by query."""

import warnings
from collections.abc import Callable, Sequence

import catboost.utils
import lightgbm
import numpy as np
import pytest
import sklearn.metrics
import xgboost
from hypothesis import assume, given, settings

from podium.kernels import Floats
from podium.measures import evaluate
from tests.measures.queries import RUNS, Arrays, arrays, dl21_arrays, each, mq2008

Peer = Callable[[Floats, Floats], Sequence[float]]

LIGHTGBM = ["ndcg@1", "ndcg@3", "ndcg@10", "ndcg@100", "map@1", "map@3", "map@10", "map@100"]
XGBOOST = ["ndcg", "ndcg@1", "ndcg@3", "ndcg@10", "nDCG(gains='linear')@5"]
XGBOOST_BINARY = ["map", "map@3", "map@10", "map@100", "pre", "pre@1", "pre@10", "pre@100"]
CATBOOST = {
    "nDCG": "NDCG",
    "nDCG@3": "NDCG:top=3",
    "nDCG(gains='exponential')@10": "NDCG:top=10;type=Exp",
    "nDCG(discounts='reciprocal')@10": "NDCG:top=10;denominator=Position",
    "DCG@5": "DCG:top=5",
    "DCG(gains='exponential')": "DCG:type=Exp",
    "P@1": "PrecisionAt:top=1",
    "P@10": "PrecisionAt:top=10",
    "R@3": "RecallAt:top=3",
    "R@10": "RecallAt:top=10",
    "AP": "MAP",
    "AP@3": "MAP:top=3",
    "AP@10": "MAP:top=10",
    "RR": "MRR",
    "RR@3": "MRR:top=3",
}
CATBOOST_CHANCES = {"ERR": "ERR", "ERR@3": "ERR:top=3"}
SKLEARN = ["nDCG", "nDCG@1", "nDCG@10", "DCG", "DCG@5", "AP"]


def by_lightgbm(labels: Floats, scores: Floats) -> list[float]:
    quiet = {"verbose": -1, "feature_pre_filter": False, "min_data_in_bin": 1}
    data = lightgbm.Dataset(
        np.zeros((len(labels), 1)), labels, group=[len(labels)], init_score=scores, params=quiet
    )
    expected = {"objective": "none", "metric": "ndcg,map", "eval_at": [1, 3, 10, 100]}
    result = lightgbm.Booster({**quiet, **expected, "num_threads": 1}, data).eval_train()
    values = {name: value for _, name, value, *_ in result}
    return [values[name] for name in LIGHTGBM]


def by_xgboost(labels: Floats, scores: Floats, metrics: Sequence[str], **options: object) -> list:
    data = xgboost.DMatrix(
        np.zeros((len(labels), 1)), labels, qid=np.zeros(len(labels), int), base_margin=scores
    )
    expected = {"objective": "rank:pairwise", "disable_default_eval_metric": 1, "nthread": 1}
    booster = xgboost.Booster({**expected, **options, "eval_metric": list(metrics)}, [data])
    return [float(text.rpartition(":")[2]) for text in booster.eval(data).split("\t")[1:]]


def by_xgboost_graded(labels: Floats, scores: Floats) -> list[float]:
    return by_xgboost(labels, scores, XGBOOST[:-1]) + by_xgboost(
        labels, scores, ["ndcg@5"], ndcg_exp_gain=False
    )


def by_xgboost_binary(labels: Floats, scores: Floats) -> list[float]:
    return by_xgboost(labels, scores, XGBOOST_BINARY)


def by_catboost(labels: Floats, scores: Floats) -> list[float]:
    return _catboost(labels, scores, CATBOOST)


def _catboost(labels: Floats, scores: Floats, metrics: dict[str, str]) -> list[float]:
    group = [0] * len(labels)
    return [
        catboost.utils.eval_metric(labels, scores, metric, group_id=group, thread_count=1)[0]
        for metric in metrics.values()
    ]


def by_sklearn(labels: Floats, scores: Floats) -> list[float]:
    truth, result = labels[None, :], scores[None, :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a query without relevant documents
        precision = sklearn.metrics.average_precision_score(labels >= 1, scores)
    return [
        sklearn.metrics.ndcg_score(truth, result),
        sklearn.metrics.ndcg_score(truth, result, k=1),
        sklearn.metrics.ndcg_score(truth, result, k=10),
        sklearn.metrics.dcg_score(truth, result),
        sklearn.metrics.dcg_score(truth, result, k=5),
        precision,
    ]


def assert_same(queries: Arrays, preset: str, measures: Sequence[str], peer: Peer) -> int:
    """Compare query by query, and return the number of values compared."""
    labels, scores, group = queries
    result = evaluate(measures, labels, scores, group=group, conventions=preset)
    values = np.array([result[name] for name in measures]).T
    for own, (truth, given_scores) in zip(values, each(queries), strict=True):
        assert own == pytest.approx(np.array(peer(truth, given_scores)), abs=1e-6)
    return values.size


def without_single_documents(queries: Arrays) -> Arrays:
    """scikit-learn has no nDCG of one document."""
    labels, scores, group = queries
    kept = np.repeat(group > 1, group)
    return labels[kept], scores[kept], group[group > 1]


def binary(queries: Arrays) -> Arrays:
    return (queries[0] >= 2).astype(np.float32), *queries[1:]


def slow(*values: object) -> list[object]:
    """Parameters of tests that take more than a few seconds."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


CASES = [
    pytest.param("lightgbm", LIGHTGBM, by_lightgbm, lambda queries: queries, id="lightgbm"),
    pytest.param("xgboost", XGBOOST, by_xgboost_graded, lambda queries: queries, id="xgboost"),
    pytest.param("xgboost", XGBOOST_BINARY, by_xgboost_binary, binary, id="xgboost-binary"),
    pytest.param("catboost", list(CATBOOST), by_catboost, lambda queries: queries, id="catboost"),
    pytest.param("sklearn", SKLEARN, by_sklearn, without_single_documents, id="sklearn"),
]


@pytest.mark.parametrize(("preset", "measures", "peer", "change"), CASES)
@settings(max_examples=40)
@given(queries=arrays())
def test_any_queries(
    preset: str,
    measures: list[str],
    peer: Peer,
    change: Callable[[Arrays], Arrays],
    queries: Arrays,
) -> None:
    changed = change(queries)
    assume(len(changed[2]))
    assert_same(changed, preset, measures, peer)


@pytest.mark.parametrize(("preset", "measures", "peer", "change"), CASES)
@pytest.mark.parametrize("feature", [11, *slow(24, 46)])
def test_real_features(
    preset: str,
    measures: list[str],
    peer: Peer,
    change: Callable[[Arrays], Arrays],
    feature: int,
) -> None:
    """MQ2008 ranked by one feature: short lists, ties, queries with nothing relevant."""
    queries = change(mq2008(feature))
    assert assert_same(queries, preset, measures, peer) == len(queries[2]) * len(measures)
    assert len(queries[2]) > 150


@pytest.mark.parametrize(("preset", "measures", "peer", "change"), CASES)
@pytest.mark.parametrize("run", [RUNS[0], *slow(*RUNS[1:])])
def test_real_runs(
    preset: str,
    measures: list[str],
    peer: Peer,
    change: Callable[[Arrays], Arrays],
    run: str,
) -> None:
    queries = change(dl21_arrays(run))
    assert assert_same(queries, preset, measures, peer) == 53 * len(measures)


@settings(max_examples=40)
@given(queries=arrays(highest=10))
def test_catboost_err_of_chances(queries: Arrays) -> None:
    chances = (queries[0] / np.float32(10), *queries[1:])
    assert_same(
        chances,
        "catboost",
        list(CATBOOST_CHANCES),
        lambda truth, scores: _catboost(truth, scores, CATBOOST_CHANCES),
    )
