"""What users of other tools type, line by line, with the value that they expect to see."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ir_measures
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import podium as real_podium

podium: Any = real_podium  # as in a notebook, without types
RNG = np.random.default_rng(9)
NAMES = ["bm25", "clicks", "age"]
X: Any = np.float32(RNG.random((200, 3)))
y = np.digitize(2 * X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=200), [0.2, 0.8])
qid = np.repeat(np.arange(10), 20)
group = [20] * 10
df = pd.DataFrame(X, columns=NAMES)
full = df.assign(qid=qid, label=y, doc=[f"d{row}" for row in range(200)])
plf = pl.from_pandas(df)
tree: Any = {"n_estimators": 5, "min_child_samples": 5}
fitted = podium.TreeRanker(**tree).fit(df, y, qid=qid)
linear = podium.LinearRanker().fit(df, y, qid=qid)
data = podium.Dataset.from_frame(full, document_id="doc")
watched = podium.TreeRanker(**tree).fit(
    df, y, group=group, eval_set=[(df, y)], eval_group=[group]
)  # fmt: skip

qrels = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1, "d": 3}}
run = {"q1": {"b": 0.9, "a": 0.7, "x": 0.2}, "q2": {"d": 0.8, "a": 0.4}}
base = {"q1": {"b": 0.9, "x": 0.7, "a": 0.2}, "q2": {"a": 0.8, "d": 0.4}}
qrels_df = pd.DataFrame(
    [(q, d, v) for q, docs in qrels.items() for d, v in docs.items()],
    columns=["query_id", "doc_id", "relevance"],
)
run_df = pd.DataFrame(
    [(q, d, v) for q, docs in run.items() for d, v in docs.items()],
    columns=["query_id", "doc_id", "score"],
)
ev = podium.evaluate(["nDCG@3", "RR"], qrels, run)
cmp = podium.compare(["nDCG@3", "RR"], qrels, {"base": base, "new": run})
RR = (1 / 2 + 1) / 2
NDCG = podium.evaluate("nDCG@3", qrels, run).means["nDCG@3"]
# Linear gains, as trec_eval has them: a at rank 2 in q1; d, a in q2.
LINEAR = ((2 / np.log2(3)) / (2 + 1 / np.log2(3)) + 1) / 2
SCORE = linear.score(df, y, qid=qid)


def trained(**options: Any) -> Any:
    return podium.TreeRanker(**tree).fit(X, y, qid=qid, **options)


def files(folder: Path) -> tuple[str, str]:
    """A qrels file and a run file."""
    lines = [f"{q} 0 {d} {v}\n" for q, docs in qrels.items() for d, v in docs.items()]
    (folder / "qrels.txt").write_text("".join(lines))
    lines = [f"{q} Q0 {d} 1 {v} t\n" for q, docs in run.items() for d, v in docs.items()]
    (folder / "run.txt").write_text("".join(lines))
    return str(folder / "qrels.txt"), str(folder / "run.txt")


def saved(ranker: Any, path: Path) -> Any:
    ranker.save(path)
    return podium.load_ranker(path)


def searched(X: Any, **options: Any) -> Any:
    search = GridSearchCV(podium.LinearRanker(), {"alpha": [1e-4, 1.0]}, cv=GroupKFold(2))
    return search.fit(X, y, groups=qid, **options)


Line = tuple[Callable[[], Any], Any]

LIGHTGBM: list[Line] = [
    (lambda: podium.TreeRanker(num_leaves=63).get_params()["num_leaves"], 63),
    (lambda: podium.TreeRanker(n_estimators=100, learning_rate=0.1).learning_rate, 0.1),
    (lambda: podium.TreeRanker("lambdarank").loss_function(), podium.losses.LambdaLoss()),
    (lambda: podium.TreeRanker(loss="rank_xendcg").loss_function(), podium.losses.ListNet()),
    (lambda: trained().n_features_in_, 3),
    (lambda: podium.TreeRanker(**tree).fit(X, y, group=group).n_estimators_, 5),
    (lambda: trained(eval_set=[(X, y)], eval_group=[group]).best_iteration_ in range(1, 6), True),
    (lambda: list(trained(eval_set=[(X, y)], eval_qid=[qid]).evals_result_), ["valid_0"]),
    (lambda: len(watched.evals_result_["valid_0"]["nDCG@10"]), 5),
    (lambda: trained(callbacks=[lightgbm.log_evaluation(1)]).n_estimators_, 5),
    (
        lambda: (
            trained(
                eval_set=[(X, y)], eval_qid=[qid], callbacks=[lightgbm.early_stopping(50)]
            ).n_features_in_
        ),
        3,
    ),
    (lambda: len(trained().feature_importances_), 3),
    (lambda: int(np.argmax(fitted.feature_importances_)), 0),
    (lambda: fitted.booster_.num_trees(), 5),
    (lambda: fitted.booster_.feature_name(), NAMES),
    (lambda: fitted.booster_.predict(X).tolist(), fitted.predict(df).tolist()),
    (
        lambda: trained(sample_weight=np.ones(200)).predict(X).tolist(),
        trained().predict(X).tolist(),
    ),
    (lambda: trained(sample_weight=np.ones(10)).predict(X).tolist(), trained().predict(X).tolist()),
    (lambda: podium.TreeRanker(engine="xgboost", max_depth=3).fit(X, y, qid=qid).n_features_in_, 3),
    (lambda: podium.TreeRanker("rank:ndcg").loss_function(), podium.losses.LambdaLoss()),
    (lambda: podium.TreeRanker(**tree).fit(full[[*NAMES, "qid"]], y).n_features_in_, 3),
    (
        lambda: (
            podium.TreeRanker(**tree)
            .fit(df.assign(brand=pd.Categorical(["a", "b"] * 100)), y, qid=qid)
            .categories_
        ),
        {"brand": ["a", "b"]},
    ),
    (lambda: np.isfinite(fitted.predict(df.mask(df > 0.9))).all(), True),
]

SCIKIT_LEARN: list[Line] = [
    (lambda: podium.LinearRanker().fit(X, y, qid=qid).predict(X).shape, (200,)),
    (lambda: podium.LinearRanker().fit(X, y, qid=qid).coef_.shape, (3,)),
    (lambda: linear.feature_names_in_.tolist(), NAMES),
    (lambda: clone(linear).get_params(), linear.get_params()),
    (lambda: clone(linear).set_params(alpha=0.5).alpha, 0.5),
    (lambda: check_is_fitted(linear), None),
    (lambda: is_classifier(linear), False),
    (lambda: linear.score(df, y, qid=qid), SCORE),
    (lambda: linear.score(X_shuffled(), y, qid=qid), SCORE),
    (lambda: linear.score(df, y, qid=qid, sample_weight=np.ones(200)), SCORE),
    (lambda: linear.score(df.assign(qid=qid), y), SCORE),
    (lambda: searched(df.assign(qid=qid)).best_score_ > 0.8, True),
    (lambda: np.isnan(searched(df.assign(qid=qid)).cv_results_["mean_test_score"]).any(), False),
    (lambda: len(cross_val_score(linear, df.assign(qid=qid), y, cv=GroupKFold(5), groups=qid)), 5),
    (
        lambda: sorted(cross_validate(linear, df.assign(qid=qid), y, cv=GroupKFold(2), groups=qid)),
        ["fit_time", "score_time", "test_score"],
    ),
    (
        lambda: (
            make_pipeline(StandardScaler(), podium.LinearRanker())
            .fit(X, y, linearranker__qid=qid)
            .predict(X)
            .shape
        ),
        (200,),
    ),
    (
        lambda: (
            make_pipeline(SimpleImputer(), podium.LinearRanker())
            .fit(df.mask(df > 0.9), y, linearranker__qid=qid)
            .n_features_in_
        ),
        3,
    ),
    (lambda: podium.LinearRanker().fit(sparse.csr_matrix(X), y, qid=qid).coef_.shape, (3,)),
    (lambda: linear.predict(sparse.csr_matrix(X)).shape, (200,)),
    (
        lambda: int(
            np.argmax(
                permutation_importance(
                    linear, df.assign(qid=qid), y, n_repeats=2, random_state=0
                ).importances_mean[:2]
            )
        ),
        0,
    ),
]

ROUTED: list[Line] = [
    (lambda: np.isfinite(searched(X, qid=qid).cv_results_["mean_test_score"]).all(), True),
    (lambda: searched(X, qid=qid).score(X, y, qid=qid) > 0.8, True),
    (
        lambda: len(
            cross_val_score(
                linear, X, y, cv=GroupKFold(5), params={"qid": qid, "groups": qid}
            )
        ),
        5,
    ),
    (
        lambda: make_pipeline(StandardScaler(), podium.LinearRanker())
        .fit(X, y, qid=qid)
        .score(X, y, qid=qid)
        > 0.8,
        True,
    ),
    (lambda: podium.LinearRanker().set_fit_request(qid=True).fit(X, y, qid=qid).n_features_in_, 3),
]  # fmt: skip

TABLES: list[Line] = [
    (lambda: ev.to_frame()["RR"].mean(), RR),
    (lambda: ev.to_frame().set_index("query_id").loc["q1", "RR"], 0.5),
    (lambda: list(ev.to_frame().columns), ["query_id", "nDCG@3", "RR"]),
    (lambda: pl.from_arrow(ev.to_arrow())["RR"].to_list(), [0.5, 1.0]),  # type: ignore[index]
    (lambda: cmp.to_frame().query("system == 'new' and measure == 'RR'")["mean"].item(), RR),
    (lambda: podium.Dataset.from_frame(full).feature_names, tuple(NAMES)),
    (lambda: podium.Dataset.from_frame(pl.from_pandas(full)).labels.tolist(), y.tolist()),
    (lambda: podium.Dataset.from_frame(pa.Table.from_pandas(full)).rows, 200),
    (lambda: linear.predict(plf).tolist(), linear.predict(df).tolist()),
    (lambda: linear.predict(plf.select(NAMES[::-1])).tolist(), linear.predict(df).tolist()),
    (lambda: linear.predict(df[df["age"] > 0.5]).shape, (int((df["age"] > 0.5).sum()),)),
    (lambda: podium.LinearRanker().fit(plf, pl.Series(y), qid=pl.Series(qid)).n_features_in_, 3),
    (lambda: podium.LinearRanker().fit(df, full["label"], qid=full["qid"]).n_features_in_, 3),
    (lambda: podium.evaluate("RR", qrels_df, run_df).means["RR"], RR),
    (lambda: podium.evaluate("RR", pl.from_pandas(qrels_df), run_df).means["RR"], RR),
    (lambda: "<table>" in ev._repr_html_(), True),
    (lambda: cmp.plot().svg.startswith("<svg"), True),
    (lambda: watched.plot().svg.startswith("<svg"), True),
    (lambda: fitted.plot("importance").title, "Importance of features"),
    (lambda: len(data), 10),
    (lambda: [len(part) for part in data.split(0.8, 0.2)], [8, 2]),
]

EVALUATION: list[Line] = [
    (lambda: podium.evaluate("nDCG@3", qrels, run).means["nDCG@3"], NDCG),
    (lambda: podium.evaluate(podium.nDCG @ 3, qrels, run).means[podium.nDCG @ 3], NDCG),
    (lambda: podium.evaluate(ir_measures.nDCG @ 3, qrels, run).means["nDCG@3"], LINEAR),
    (lambda: podium.evaluate([ir_measures.RR, ir_measures.P @ 1], qrels, run).means["RR"], RR),
    (lambda: podium.evaluate("RR", qrels, run).means[ir_measures.RR], RR),
    (lambda: podium.evaluate("ndcg_cut_3", qrels, run).means["ndcg_cut_3"], LINEAR),
    (lambda: podium.evaluate("ndcg_cut.3", qrels, run).means["ndcg_cut_3"], LINEAR),
    (lambda: podium.evaluate("recip_rank", qrels, run).means["recip_rank"], RR),
    (lambda: podium.evaluate({"map", "recip_rank"}, qrels, run).means["recip_rank"], RR),
    (lambda: podium.evaluate("map", qrels, run).means["map"], ((1 / 2) / 2 + 1) / 2),
    (lambda: podium.evaluate("P_1", qrels, run).means["P_1"], 0.5),
    (lambda: podium.evaluate("P.1", qrels, run).means["P@1"], 0.5),
    (lambda: podium.evaluate("recall_2", qrels, run).means["recall_2"], (1 / 2 + 1) / 2),
    (lambda: podium.evaluate("mrr", qrels, run).means["mrr"], RR),
    (lambda: podium.evaluate("mrr@10", qrels, run).means["mrr@10"], RR),
    (lambda: podium.evaluate("precision@1", qrels, run).means["precision@1"], 0.5),
    (lambda: podium.evaluate("map@10", qrels, run).means["map@10"], ((1 / 2) / 2 + 1) / 2),
    (
        lambda: podium.evaluate("ndcg@3", qrels, run, conventions="trec_eval").means["ndcg@3"],
        LINEAR,
    ),
    (lambda: podium.evaluate("RR", qrels, run)["RR"].tolist(), [0.5, 1.0]),
    (lambda: podium.evaluate("RR", qrels, run).query_ids.to_pylist(), ["q1", "q2"]),
    (
        lambda: podium.evaluate("RR", qrels, run, sample_weight={"q1": 3, "q2": 1}).means["RR"],
        0.625,
    ),
    (lambda: podium.evaluate("RR", [0, 1], [2, 1], qid=[7, 7]).means["RR"], 0.5),
    (lambda: podium.evaluate("RR", [0, 1], [2, 1], group=[2]).means["RR"], 0.5),
    (lambda: cmp.systems, ("base", "new")),
    (lambda: cmp.summaries["RR"]["new"].mean, RR),
    (lambda: cmp.against_baseline["RR"]["new"].difference.wins, 1),
    (
        lambda: (
            podium.compare("RR", qrels, {"a": base, "b": run}, sample_weight=[1, 3])
            .against_baseline["RR"]["b"]
            .difference.mean
        ),
        (1 * (1 / 2 - 1 / 3) + 3 * (1 - 1)) / 4,
    ),
    (lambda: podium.compare("RR", qrels, {"a": base, "b": run}, test="t").test, "t"),
    (lambda: linear.rank(data).query_ids.to_pylist()[0], "0"),
    (lambda: podium.evaluate("nDCG@10", data, linear.rank(data)).means["nDCG@10"], SCORE),
    (lambda: podium.evaluate("nDCG@10", data, linear.predict(data)).means["nDCG@10"], SCORE),
]

FILES: list[tuple[Callable[[Path], Any], Any]] = [
    (lambda folder: podium.evaluate("recip_rank", *files(folder)).means["recip_rank"], RR),
    (lambda folder: podium.evaluate("RR", files(folder)[0], run).means["RR"], RR),
    (lambda folder: podium.evaluate("RR", qrels, Path(files(folder)[1])).means["RR"], RR),
    (
        lambda folder: (
            podium.compare("RR", files(folder)[0], {"a": base, "b": files(folder)[1]})
            .summaries["RR"]["b"]
            .mean
        ),
        RR,
    ),
    (
        lambda folder: saved(linear, folder / "r.podium").predict(df).tolist(),
        linear.predict(df).tolist(),
    ),
    (
        lambda folder: saved(fitted, folder / "r.podium").predict(df).tolist(),
        fitted.predict(df).tolist(),
    ),
]


def X_shuffled() -> pd.DataFrame:
    return df[["clicks", "age", "bm25"]]


@pytest.fixture(autouse=True)
def _quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    capfd.readouterr()


def same(value: Any, expected: Any) -> bool:
    is_number = isinstance(expected, float | list) and not isinstance(expected, bool)
    if is_number and not (isinstance(expected, list) and expected and isinstance(expected[0], str)):
        return bool(value == pytest.approx(expected, abs=1e-6))
    return bool(value == expected)


PLAIN = [*LIGHTGBM, *SCIKIT_LEARN, *TABLES, *EVALUATION]


def test_the_table_is_long() -> None:
    assert len(PLAIN) + len(ROUTED) + len(FILES) >= 100


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_line(number: int) -> None:
    line, expected = PLAIN[number]
    value = line()
    assert same(value, expected), (value, expected)


@pytest.mark.parametrize("number", range(len(ROUTED)))
def test_line_with_metadata_routing(number: int) -> None:
    line, expected = ROUTED[number]
    with config_context(enable_metadata_routing=True):
        value = line()
    assert same(value, expected), (value, expected)


@pytest.mark.parametrize("number", range(len(FILES)))
def test_line_with_files(number: int, tmp_path: Path) -> None:
    line, expected = FILES[number]
    value = line(tmp_path)
    assert same(value, expected), (value, expected)


def test_a_polars_frame_from_fit_to_compare() -> None:
    frame = pl.from_pandas(full)
    train, test = frame.filter(pl.col("qid") < 7), frame.filter(pl.col("qid") >= 7)
    trees = podium.TreeRanker(**tree).fit(train.select(NAMES), train["label"], qid=train["qid"])
    weights = podium.LinearRanker().fit(train.select(NAMES), train["label"], qid=train["qid"])
    runs = {
        name: test.select("qid", "doc", score=pl.Series(ranker.predict(test.select(NAMES))))
        for name, ranker in (("linear", weights), ("trees", trees))
    }
    truth = test.select("qid", "doc", "label").rename({"doc": "docno"})
    compared = podium.compare(
        "nDCG@10", truth, {name: table.rename({"doc": "docno"}) for name, table in runs.items()}
    )
    rows = full[full["qid"] >= 7]
    for name, ranker in (("linear", weights), ("trees", trees)):
        expected = ranker.score(rows[NAMES], rows["label"], qid=rows["qid"])
        assert compared.summaries["nDCG@10"][name].mean == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: frame,
        pl.from_pandas,
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    ],
)
@pytest.mark.parametrize("ranker", [podium.LinearRanker(), podium.TreeRanker(**tree)], ids=repr)
def test_shuffled_columns_and_rows_give_identical_scores(make: Any, ranker: Any) -> None:
    model = clone(ranker).fit(make(df), y, qid=qid)
    scores = model.predict(make(df))
    rows = np.random.default_rng(0).permutation(200)
    for names in (["clicks", "age", "bm25"], ["age", "bm25", "clicks"]):
        assert np.array_equal(model.predict(make(df[names])), scores)
        assert np.array_equal(model.predict(make(df[names].iloc[rows])), scores[rows])
