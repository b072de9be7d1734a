from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from podium.data import Dataset, write_shards
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles
from podium.losses import PairHinge
from podium.losses.names import parse_loss
from podium.measures import evaluate
from podium.rankers import BoostedRanker, LinearRanker, models
from podium.rankers.empirical_risk import BlockRisk, block_scores
from podium.rankers.validation_monitor import ValidationMonitor
from tests.rankers.made_up import made_up

LOSSES = ["PairHinge(k=5)", "PairLogistic(k=5)", "ListMLE(k=5)", "ListNet()", "RankCosine()"]


@pytest.mark.parametrize("loss", [*LOSSES, "StructuralHinge(k=5)", "LambdaLoss(k=5)"])
def test_every_loss_learns_a_linear_truth(loss: str) -> None:
    train, test = made_up(60), made_up(30, seed=1)
    ranker = LinearRanker(loss).fit(train)
    learned = evaluate("nDCG@5", test, ranker.predict(test)).means
    drawn = evaluate("nDCG@5", test, np.random.default_rng(0).random(test.rows)).means
    assert next(iter(learned.values())) > 0.8 > next(iter(drawn.values()))


def test_the_hinge_reaches_the_objective_of_a_support_vector_machine() -> None:
    from sklearn.svm import LinearSVC

    data = made_up(12, 15)
    alpha = 0.01
    pairs = []
    for query in data:
        better, worse = np.nonzero(query.labels[:, None] > query.labels[None, :])
        pairs.append(query.features[better] - query.features[worse])
    differences = np.concatenate(pairs).astype(np.float64)
    weights = 1 / (alpha * len(data))
    signs = np.where(np.arange(len(differences)) % 2, 1, -1)
    machine = LinearSVC(
        loss="hinge", C=weights, fit_intercept=False, tol=1e-8, max_iter=2_000_000, random_state=0
    ).fit(differences * signs[:, None], signs)

    def objective(w: np.ndarray) -> float:
        hinge = np.maximum(0, 1 - differences @ w).sum() / len(data)
        return float(alpha / 2 * w @ w + hinge)

    ranker = LinearRanker(PairHinge(), alpha=alpha, tol=1e-5).fit(data)
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(objective(ranker.coef_), rel=1e-6)
    assert ranker.objective_ == pytest.approx(objective(machine.coef_[0]), rel=1e-4)
    assert ranker.objective_ - ranker.gap_ <= objective(machine.coef_[0])
    assert 0 <= ranker.gap_ <= 1e-5 * ranker.objective_


@pytest.mark.parametrize(
    "loss", ["PairLogistic()", "PairLogistic(k=5)", "ListMLE(k=5)", "ListNet()"]
)
def test_a_smooth_loss_is_minimized(loss: str) -> None:
    data = made_up()
    features = data.features.astype(np.float64)

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        found = parse_loss(loss).evaluate(features @ weights, data.labels, data.offsets)
        value = found.total / len(data) + 0.1 / 2 * weights @ weights
        return value, features.T @ found.gradient / len(data) + 0.1 * weights

    least = optimize.minimize(objective, np.zeros(6), jac=True, method="BFGS", tol=1e-8)
    ranker = LinearRanker(loss, alpha=0.1, tol=1e-8).fit(data)
    assert ranker.objective_ == pytest.approx(least.fun, rel=1e-7)
    np.testing.assert_allclose(ranker.coef_, least.x, atol=1e-4)
    assert np.abs(objective(ranker.coef_)[1]).max() < 1e-4


@pytest.mark.parametrize("loss", ["PairHinge(k=5)", "ListMLE(k=5)"])
def test_shards_and_memory_give_one_model(tmp_path: Path, loss: str) -> None:
    data = made_up()
    shards = write_shards(data, tmp_path / "shards", shard_bytes=4000)
    assert len(shards.shards) > 3
    one = LinearRanker(loss, tol=1e-6).fit(data)
    other = LinearRanker(loss, tol=1e-6).fit(shards)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=2e-2, atol=2e-2)


def test_rows_in_any_order_give_one_model() -> None:
    data = made_up()
    order = np.random.default_rng(3).permutation(data.rows)
    one = LinearRanker("ListMLE(k=5)").fit(data.features, data.labels, qid=data.query_of_row)
    other = LinearRanker("ListMLE(k=5)").fit(
        data.features[order], data.labels[order], qid=data.query_of_row[order]
    )
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-3, atol=1e-4)


def test_validation_keeps_the_best_model_met() -> None:
    train, held_out = made_up(20, noise=3.0), made_up(20, noise=3.0, seed=5)
    seen: list[float] = []
    ranker = LinearRanker("ListMLE()", alpha=0.0).fit(
        train, eval_set=held_out, progress=lambda _step, _loss, value: seen.append(value)
    )
    final = evaluate("nDCG@10", held_out, ranker.predict(held_out)).means
    assert next(iter(final.values())) == pytest.approx(max(seen))


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_separable_rows_of_any_scale_converge_soon(scale: float, alpha: float) -> None:
    random = np.random.default_rng(0)
    features = (scale * random.random((19, 5))).astype(np.float32)
    labels = np.digitize(features[:, 0] / scale, [0.3, 0.6])
    data = Dataset.from_arrays(features, labels, group=[10, 9])
    ranker = models.rank_svm(alpha=alpha).fit(data)
    assert ranker.converged_
    assert ranker.n_iter_ < 300
    at_zero = sum(int((q.labels[:, None] > q.labels).sum()) for q in data) / len(data)
    assert 0 <= ranker.gap_ <= 1e-4 * max(ranker.objective_, 1e-3 * at_zero)
    hinges = PairHinge().evaluate(features @ ranker.coef_, labels, [0, 10, 19]).total / 2
    squared = ranker.coef_ @ ranker.coef_
    assert ranker.objective_ == pytest.approx(hinges + alpha / 2 * squared, rel=1e-6)
    assert ranker.objective_ < at_zero


def test_max_iter_bounds_all_evaluations() -> None:
    with pytest.warns(ConvergenceWarning):
        ranker = LinearRanker("PairHinge()", max_iter=30, tol=1e-9).fit(made_up(noise=1.0))
    # It gives up when 30 are reached; a line search that has begun is brought to its end.
    assert 30 <= ranker.n_iter_ <= 30 + 20 * 3


def test_missing_values_and_bad_parameters_are_refused() -> None:
    data = made_up(3)
    holes = data.features.copy()
    holes[4, 2] = np.nan
    with pytest.raises(DataError, match="missing"):
        LinearRanker().fit(holes, data.labels, qid=data.query_of_row)
    with pytest.raises(PodiumError, match="above 0"):
        LinearRanker("PairHinge()", alpha=0).fit(data)
    with pytest.raises(ArgumentError, match="qid= or group="):
        LinearRanker().fit(data.features, data.labels)
    with pytest.raises(DataError, match="fitted on 6"):
        LinearRanker().fit(data).predict(np.zeros((2, 3)))


def test_a_query_of_equal_labels_changes_nothing() -> None:
    data = made_up(10)
    blank = Dataset.from_arrays(
        np.random.default_rng(1).random((5, 6)), labels=np.ones(5), qid=["blank"] * 5
    )
    from podium.data import concat_datasets

    both = concat_datasets([data, blank])
    one = LinearRanker("PairLogistic()", alpha=0.11).fit(data)
    other = LinearRanker("PairLogistic()", alpha=0.1).fit(both)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-2, atol=1e-3)


def test_a_missing_or_infinite_feature_has_no_score() -> None:
    data = made_up(10)
    linear = LinearRanker("ListNet()").fit(data)
    features = BoostedRanker(beta=1, weak_ranker="feature", n_estimators=3).fit(data)
    for value in (np.nan, np.inf, -np.inf, 1e300):
        holes = data.features.astype(np.float64)
        holes[3, 5] = value
        for ranker in (linear, features):
            message = "feature is missing" if np.isnan(value) else "feature is infinite"
            with pytest.raises(DataError, match=message):
                ranker.predict(holes)
    holes[3, 5] = np.nan
    with pytest.raises(DataError, match="feature is missing"):
        linear.predict(Dataset.from_arrays(holes, data.labels, group=data.sizes))


@pytest.mark.parametrize("loss", [*LOSSES, "StructuralHinge(k=5)", "LambdaLoss(k=5)"])
def test_a_fit_that_did_not_converge_warns(loss: str) -> None:
    ranker = LinearRanker(loss, alpha=1e-6, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="did not converge") as said:
        ranker.fit(made_up())
    assert not ranker.converged_
    assert said[0].filename == __file__


def test_descent_has_converged_after_all_its_steps() -> None:
    ranker = LinearRanker("LambdaLoss(k=5)").fit(made_up())
    assert ranker.converged_
    assert ranker.n_iter_ == 300


def test_data_sets_have_rows_first_in_memory() -> None:
    """Sums in another order are rounded differently."""
    data = made_up()
    columns_first = np.asfortranarray(data.features)
    made = Dataset.from_arrays(columns_first, data.labels, group=data.sizes)
    assert made.features.flags.c_contiguous
    ranker = LinearRanker("ListNet()").fit(data)
    np.testing.assert_array_equal(ranker.predict(made), ranker.predict(data))


def test_weights_of_single_rows_need_a_loss_of_single_rows() -> None:
    data = made_up(10)
    weights = np.random.default_rng(0).random(data.rows)
    with pytest.raises(ArgumentError, match=r"LambdaLoss.* has no weights of single rows"):
        LinearRanker("LambdaLoss()").fit(data, sample_weight=weights)
    once = LinearRanker("SquaredError()").fit(data, sample_weight=weights)
    assert not np.allclose(once.coef_, LinearRanker("SquaredError()").fit(data).coef_, rtol=1e-3)


def test_a_risk_that_is_evaluated_elsewhere_gives_the_same_model() -> None:
    data = made_up(10)
    fitted = LinearRanker("PairLogistic()").fit(data)

    def elsewhere(names: tuple[str, ...], start: Doubles | None = None) -> LinearRanker:
        risk = BlockRisk(parse_loss("PairLogistic()"), data)
        monitor = ValidationMonitor(block_scores, "nDCG@10", None, None)
        return LinearRanker("PairLogistic()").fit_risk(risk, names, monitor=monitor, start=start)

    numbered = elsewhere(("1", "2", "3", "4", "5", "6"))
    np.testing.assert_array_equal(numbered.coef_, fitted.coef_)
    assert not hasattr(numbered, "feature_names_in_")
    assert elsewhere(("a", "b", "c", "d", "e", "f")).feature_names_in_.tolist() == list("abcdef")
    again = elsewhere(("1", "2", "3", "4", "5", "6"), start=fitted.coef_)
    assert again.n_iter_ < fitted.n_iter_ / 2


def test_sparse_rows_have_the_scores_of_dense_ones() -> None:
    data = made_up(10)
    ranker = LinearRanker("ListNet()").fit(data)
    rows = data.features * (data.features > 0.5)
    np.testing.assert_allclose(
        ranker.predict(sparse.csr_array(rows)), ranker.predict(rows), rtol=1e-6
    )


def test_a_missing_feature_of_validation_rows_is_refused() -> None:
    data, validation = made_up(10), made_up(5, seed=1)
    holes = validation.features.copy()
    holes[3, 5] = np.nan
    broken = Dataset.from_arrays(holes, validation.labels, group=validation.sizes)
    with pytest.raises(DataError, match="feature is missing"):
        LinearRanker("ListNet()").fit(data, eval_set=broken)


def test_rounded_hinges_certify_the_gap_in_few_evaluations() -> None:
    # 36 with the planes of the rounded losses; the bundle method alone takes it to 128.
    ranker = LinearRanker("PairHinge(k=5)", alpha=1e-4).fit(made_up())
    assert ranker.converged_
    assert ranker.n_iter_ < 70
