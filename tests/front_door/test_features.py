"""Features as users have them: sparse matrices, categories, missing values."""

import io
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, GroupKFold

import podium
from podium.rankers import load_ranker

RNG = np.random.default_rng(7)
X = np.float32(RNG.random((300, 12)) * (RNG.random((300, 12)) < 0.3))
Y = np.digitize(X[:, 0] - X[:, 1] + 0.2 * RNG.normal(size=300), [0.0, 0.3])
QID = np.repeat(np.arange(15), 20)
csr: Any = sparse.csr_array
FORMS = [
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.csc_matrix,
    sparse.coo_array,
    sparse.lil_matrix,
]


@pytest.mark.parametrize("make", FORMS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("loss", ["ListMLE(k=10)", "PairHinge()", "LambdaLoss()"])
def test_sparse_matrices_give_the_model_of_dense_ones(make: Any, loss: str) -> None:
    ranker = podium.LinearRanker(loss, alpha=0.01, tol=1e-6)
    dense = ranker.fit(X, Y, qid=QID).coef_
    found = ranker.fit(make(X), Y, qid=QID)
    assert np.allclose(found.coef_, dense, rtol=1e-3, atol=1e-4 * np.abs(dense).max())
    assert np.allclose(found.predict(make(X)), found.predict(X), rtol=1e-12, atol=1e-12)
    assert found.score(make(X), Y, qid=QID) == pytest.approx(found.score(X, Y, qid=QID))


def test_sparse_rows_in_any_order_with_weights() -> None:
    order = np.random.default_rng(1).permutation(300)
    weights = np.repeat(np.random.default_rng(2).integers(0, 3, 15), 20)
    ranker = podium.LinearRanker(alpha=0.01, tol=1e-8)
    expected = ranker.fit(X, Y, qid=QID, sample_weight=weights).coef_
    rows = csr(X[order])
    found = ranker.fit(rows, Y[order], qid=QID[order], sample_weight=weights[order]).coef_
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("train", [np.asarray, csr])
@pytest.mark.parametrize("validation", [np.asarray, csr])
def test_sparse_validation_queries(train: Any, validation: Any) -> None:
    order = np.random.default_rng(1).permutation(100)
    held_out, labels, queries = X[200:][order], Y[200:][order], QID[200:][order]
    ranker = podium.LinearRanker().fit(
        train(X[:200]), Y[:200], qid=QID[:200], eval_set=(validation(held_out), labels),
        eval_qid=queries,
    )  # fmt: skip
    best = ranker.score(held_out, labels, qid=queries)
    assert max(ranker.evals_result_["valid_0"]["nDCG@10"]) == pytest.approx(best, abs=1e-6)


def test_a_sparse_matrix_is_not_made_dense() -> None:
    # 40,000 rows of 100,000 features would take 16 GB, and their products 80 GB.
    rng = np.random.default_rng(0)
    rows, columns = 40_000, 100_000
    first = np.float32(rng.random((rows, 1)))
    rest: Any = sparse.random_array((rows, columns - 1), density=1e-5, dtype=np.float32, rng=rng)
    wide = csr(sparse.hstack([csr(first), rest]))
    labels = (first[:, 0] > 0.5).astype(int)
    ranker = podium.LinearRanker("ListNet()", alpha=0.1).fit(wide, labels, group=[100] * 400)
    assert ranker.coef_.shape == (columns,)
    assert int(np.argmax(np.abs(ranker.coef_))) == 0
    assert ranker.score(wide, labels, group=[100] * 400) > 0.99
    again = load_ranker(io.BytesIO(ranker.to_bytes()))
    assert np.array_equal(again.predict(wide[:50]), ranker.predict(wide[:50]))


def test_grid_search_over_a_sparse_matrix() -> None:
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        values = []
        for rows in (X, csr(X)):
            search = GridSearchCV(podium.LinearRanker(), {"alpha": [0.01, 1]}, cv=GroupKFold(3))
            search.fit(rows, Y, qid=QID, groups=QID)
            values.append(search.cv_results_["mean_test_score"])
    assert np.isfinite(values).all()
    assert np.allclose(*values, atol=1e-3)


def sparse_with(value: float) -> Any:
    matrix = csr(X)
    matrix.data[3] = value
    return matrix


@pytest.mark.parametrize(
    ("ranker", "matrix", "message"),
    [
        (podium.TreeRanker(), csr(X), "TreeRanker does not take sparse matrices"),
        (podium.BoostedRanker(), csr(X), "X.toarray()"),
        (podium.NeuralRanker(), csr(X), "NeuralRanker does not take sparse"),
        (podium.LinearRanker(), sparse_with(np.nan), "a feature is missing (NaN)"),
        (podium.LinearRanker(), sparse_with(np.inf), "a feature is infinite"),
        (podium.LinearRanker(), csr(X[:10]), "10"),
        (podium.LinearRanker(), csr(X, dtype=complex), "are not numbers"),
    ],
)
def test_refused_sparse_matrices(ranker: Any, matrix: Any, message: str) -> None:
    with pytest.raises((podium.ArgumentError, podium.DataError)) as caught:
        ranker.fit(matrix, Y, qid=QID)
    assert message in str(caught.value)


def test_sparse_rows_to_score_are_checked() -> None:
    ranker = podium.LinearRanker().fit(X, Y, qid=QID)
    with pytest.raises(podium.DataError, match="11 features, but the ranker was fitted on 12"):
        ranker.predict(csr(X[:, :11]))
    with pytest.raises(podium.DataError, match="a feature is missing"):
        ranker.predict(sparse_with(np.nan))
    with pytest.raises(podium.DataError, match="a feature is infinite"):
        ranker.predict(sparse_with(np.inf))
    trees = podium.TreeRanker(n_estimators=2).fit(X, Y, qid=QID)
    with pytest.raises(podium.ArgumentError, match="TreeRanker does not take sparse matrices"):
        trees.predict(csr(X))


LEAVES: dict[str, Any] = {
    "n_estimators": 10, "min_data_in_leaf": 1, "min_data_per_group": 1, "cat_smooth": 1.0,
    "max_cat_to_onehot": 1,
}  # fmt: skip
BRANDS = np.array(["delta", "alpha", "echo", "bravo", "charlie"])
VALUE_OF = {"alpha": 0, "bravo": 2, "charlie": 1, "delta": 2, "echo": 0}  # not in any order
CODE = RNG.integers(0, 5, 300)
BRAND = BRANDS[CODE]
LABELS = np.array([VALUE_OF[brand] for brand in BRAND])
NOISE = RNG.random(300)


def frame(brands: Any, noise: Any = NOISE) -> pd.DataFrame:
    return pd.DataFrame({"noise": noise, "brand": pd.Categorical(brands)})


def polars(kind: Any) -> Any:
    return pl.DataFrame({"noise": NOISE, "brand": pl.Series(BRAND.tolist()).cast(kind)})


CATEGORICAL: dict[str, Any] = {
    "pandas": frame(BRAND),
    "pandas, reordered": frame(BRAND).assign(brand=pd.Categorical(BRAND, categories=BRANDS)),
    "pandas, with an unused category": frame(BRAND).assign(
        brand=pd.Categorical(BRAND, categories=["zulu", *BRANDS])
    ),
    "Polars Categorical": polars(pl.Categorical),
    "Polars Enum": polars(pl.Enum(BRANDS.tolist())),
    "Arrow": pa.table({"noise": NOISE, "brand": pa.array(BRAND.tolist()).dictionary_encode()}),
}


@pytest.mark.parametrize("form", CATEGORICAL)
def test_categories(form: str) -> None:
    ranker = podium.TreeRanker(**LEAVES).fit(CATEGORICAL[form], LABELS, qid=QID)
    assert ranker.categories_ == {"brand": sorted(BRANDS.tolist())}
    # One split can put any set of brands on one side.
    assert re.search(r"num_cat=[1-9]", ranker.booster_.model_to_string())
    scores = ranker.predict(CATEGORICAL[form])
    means = {brand: scores[brand == BRAND].mean() for brand in BRANDS}
    assert sorted(BRANDS, key=means.__getitem__)[-2:] in (["bravo", "delta"], ["delta", "bravo"])
    assert ranker.score(CATEGORICAL[form], LABELS, qid=QID) == pytest.approx(1.0)
    for other in CATEGORICAL.values():
        assert np.array_equal(ranker.predict(other), scores)
    as_text = pd.DataFrame({"brand": BRAND, "noise": NOISE})  # as read from a file, without types
    assert np.array_equal(ranker.predict(as_text), scores)


def test_codes_are_no_categories() -> None:
    ranker = podium.TreeRanker(**LEAVES).fit(frame(BRAND), LABELS, qid=QID)
    codes = frame(BRAND).assign(brand=pd.Categorical(BRAND).codes)
    with pytest.raises(podium.DataError, match="Give the categories, not their codes"):
        ranker.predict(codes)
    with pytest.raises(podium.DataError, match="Give the categories, not their codes"):
        ranker.predict(codes.astype({"brand": "category"}))
    assert len(ranker.predict(codes.assign(brand=np.nan))) == len(codes)  # all are missing


def test_data_sets_say_which_categorical_columns_they_leave_out() -> None:
    table = frame(BRAND).assign(label=LABELS, qid=pd.Categorical(QID))
    with pytest.warns(UserWarning, match="left out: brand. Give the frame itself to TreeRanker"):
        data = podium.Dataset.from_frame(table)
    assert data.feature_names == ("noise",)
    assert podium.Dataset.from_frame(table, features=["noise"]).equals(data)


def test_unseen_and_missing_categories_are_missing() -> None:
    brands = BRAND.astype(object)
    brands[::10] = None
    ranker = podium.TreeRanker(**LEAVES).fit(frame(brands), LABELS, qid=QID)
    missing = ranker.predict(frame([None] * 3, NOISE[:3]))
    with pytest.warns(UserWarning, match="2 of 3 rows have a category in column 'brand' that the"):
        unseen = ranker.predict(frame(["zulu", None, "yankee"], NOISE[:3]))
    assert np.array_equal(unseen, missing)
    assert not np.array_equal(unseen, ranker.predict(frame(["delta"] * 3, NOISE[:3])))


def test_categories_may_be_numbers() -> None:
    ranker = podium.TreeRanker(**LEAVES).fit(frame(CODE), LABELS, qid=QID)
    with pytest.warns(UserWarning, match="1 of 300 rows have .*, such as '7': they count as miss"):
        ranker.predict(frame(np.append(CODE[1:], 7)))


def test_categories_of_few_rows_have_the_codes_of_the_fit() -> None:
    ranker = podium.TreeRanker(**LEAVES).fit(frame(BRAND), LABELS, qid=QID)
    every = ranker.predict(frame(BRAND))
    chosen = np.flatnonzero(BRAND == "echo")[:4]  # its code in these rows alone would be 0
    assert np.array_equal(ranker.predict(frame(BRAND[chosen], NOISE[chosen])), every[chosen])


def test_saved_categories(tmp_path: Any) -> None:
    ranker = podium.TreeRanker(**LEAVES).fit(
        frame(BRAND), LABELS, qid=QID, eval_set=[(frame(BRAND), LABELS)], eval_qid=[QID]
    )
    assert max(ranker.evals_result_["valid_0"]["nDCG@10"]) == pytest.approx(1.0)
    ranker.save(tmp_path / "r.podium")
    loaded = podium.load_ranker(tmp_path / "r.podium")
    assert loaded.categories_ == ranker.categories_
    assert np.array_equal(loaded.predict(frame(BRAND)), ranker.predict(frame(BRAND)))
    assert loaded.to_bytes() == ranker.to_bytes()


def test_categories_are_those_of_lightgbm() -> None:
    import lightgbm

    ranker = podium.TreeRanker("lambdarank", num_leaves=4, **LEAVES)
    order = np.lexsort((LABELS, QID))  # LightGBM's order of documents with equal scores
    rows = frame(BRAND[order], NOISE[order])
    ranker.fit(rows, LABELS[order], qid=QID)
    peer = lightgbm.LGBMRanker(
        num_leaves=4, learning_rate=0.05, lambdarank_norm=False, sigmoid=1.0, verbosity=-1,
        lambdarank_truncation_level=20, label_gain=[0, 1, 3], random_state=0, deterministic=True,
        force_row_wise=True, **LEAVES,
    )  # fmt: skip
    rows["noise"] = np.float32(rows["noise"])
    peer.fit(rows, LABELS[order], group=[20] * 15, categorical_feature="auto")
    assert np.allclose(ranker.predict(rows), np.asarray(peer.predict(rows)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "ranker",
    [
        podium.LinearRanker(),
        podium.NeuralRanker(),
        podium.BoostedRanker(),
        podium.TreeRanker(engine="xgboost"),
    ],
    ids=repr,
)
def test_rankers_without_categories(ranker: Any) -> None:
    with pytest.raises(podium.DataError) as caught:
        ranker.fit(frame(BRAND), LABELS, qid=QID)
    assert "column 'brand' is of categories" in str(caught.value)
    assert "OneHotEncoder" in str(caught.value)


def test_text_is_not_categories() -> None:
    with pytest.raises(podium.DataError) as caught:
        podium.TreeRanker().fit(pd.DataFrame({"brand": BRAND, "x": NOISE}), LABELS, qid=QID)
    assert "column 'brand' is of type" in str(caught.value)
    assert "X['brand'].astype('category')" in str(caught.value)
