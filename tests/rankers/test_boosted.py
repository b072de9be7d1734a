"""Boosting against a search that looks at every threshold and every pair."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset
from podium.errors import DataError, PodiumError
from podium.losses import PairExponential
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.rankers import BoostedRanker, load_ranker
from podium.rankers.storage import read_archive, write_archive
from tests.rankers.made_up import made_up


@st.composite
def small_sets(draw: st.DrawFn) -> Dataset:
    """A few short queries with tied and missing feature values, and a preference in each."""
    sizes = draw(st.lists(st.integers(2, 6), min_size=1, max_size=3))
    rows = sum(sizes)
    values = st.sampled_from([0.0, 0.5, 1.0, 2.0, np.nan])
    features = draw(
        st.lists(
            st.tuples(values, st.sampled_from([-1.0, 3.0])),  # the second never misses
            min_size=rows,
            max_size=rows,
        )
    )
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)))
    starts = np.cumsum([0, *sizes[:-1]])
    labels[starts], labels[starts + 1] = 3, 0
    table = np.array(features, np.float32)
    table[:2, 1] = 3.0, -1.0  # and splits
    return Dataset.from_arrays(table, labels=labels, group=sizes)


def outputs(data: Dataset) -> list[np.ndarray]:
    """Every two-valued ranking that a threshold can give, both ways round."""
    found = []
    for column in data.features.T:
        for value in np.unique(column[~np.isnan(column)]):
            for above in (column >= value, column > value):
                if 0 < above.sum() < len(column):
                    found += [above.astype(float), -above.astype(float)]
    return found


def pairs_of(data: Dataset) -> list[tuple[int, int]]:
    """All (preferred, other) rows."""
    query = data.query_of_row
    return [
        (one, other)
        for one in range(data.rows)
        for other in range(data.rows)
        if query[one] == query[other] and data.labels[one] > data.labels[other]
    ]


def half_log_odds(edge: float) -> float:
    edge = min(edge, 1 - 1e-9)
    return 0.5 * np.log((1 + edge) / (1 - edge))


@settings(max_examples=150)
@given(small_sets())
def test_rankboost_takes_the_best_of_all_thresholds(data: Dataset) -> None:
    ranker = BoostedRanker(n_estimators=3, early_stopping_rounds=None).fit(data)
    pairs = pairs_of(data)
    scores = np.zeros(data.rows)
    for place in range(len(ranker.estimator_weights_)):
        odds = np.array([np.exp(scores[v] - scores[u]) for u, v in pairs])
        shares = odds / odds.sum()
        edges = [
            sum(share * (h[u] - h[v]) for share, (u, v) in zip(shares, pairs, strict=True))
            for h in outputs(data)
        ]
        assert abs(ranker.estimator_weights_[place]) == pytest.approx(
            half_log_odds(max(edges)), abs=1e-6
        )
        above = data.features[:, ranker.feature_indices_[place]] > ranker.thresholds_[place]
        scores += ranker.estimator_weights_[place] * above
    np.testing.assert_allclose(ranker.predict(data), scores, atol=1e-9)


@settings(max_examples=150)
@given(small_sets(), st.sampled_from(["AP", "nDCG", "nDCG@3"]))
def test_adarank_takes_the_best_of_all_thresholds(data: Dataset, lists: str) -> None:
    ranker = BoostedRanker(beta=1, list_measure=lists, n_estimators=1).fit(data)
    measure = parse_measure(lists)
    best = max(evaluate(measure, data, output)[measure].mean() for output in outputs(data))
    assert abs(ranker.estimator_weights_[0]) == pytest.approx(half_log_odds(best), abs=1e-6)


@settings(max_examples=150)
@given(small_sets(), st.floats(0.1, 0.9))
def test_focusedboost_adds_both_worths(data: Dataset, beta: float) -> None:
    """Lists are the documents above the lowest label; pairs go across that edge."""
    ranker = BoostedRanker(beta=beta, list_measure="nDCG", n_estimators=1)
    kept = data.labels > 0
    sizes = np.bincount(data.query_of_row[kept], minlength=len(data))
    if not (sizes > 1).any():
        with pytest.raises(PodiumError, match="no list has a relevant"):
            ranker.fit(data)
        return
    ranker.fit(data)
    lists = Dataset.from_arrays(data.features[kept], labels=data.labels[kept], group=sizes)
    measure = parse_measure("nDCG")
    pairs = [(u, v) for u, v in pairs_of(data) if data.labels[v] == 0]
    tied = evaluate(measure, lists, np.zeros(lists.rows))[measure][sizes > 1].mean()
    edges = [
        beta * (evaluate(measure, lists, h[kept])[measure][sizes > 1].mean() - tied)
        + (1 - beta) * np.mean([h[u] - h[v] for u, v in pairs])
        for h in outputs(data)
    ]
    if max(edges) > 1e-9:
        assert abs(ranker.estimator_weights_[0]) == pytest.approx(
            half_log_odds(max(edges)), abs=1e-6
        )


def test_every_round_of_rankboost_lowers_the_loss() -> None:
    data = made_up(noise=1.0)
    losses: list[float] = []
    ranker = BoostedRanker(n_estimators=30, k=5).fit(
        data, progress=lambda _step, loss, _v: losses.append(loss)
    )
    assert len(losses) == 30
    assert np.all(np.diff([1.0, *losses]) < 0)
    pairs, reached = (
        PairExponential(k=5).evaluate(scores, data.labels, data.offsets).total
        for scores in (np.zeros(data.rows), ranker.predict(data))
    )
    assert losses[-1] == pytest.approx(reached / pairs)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"k": 5},
        {"beta": 1.0, "list_measure": "AP"},
        {"beta": 1.0, "list_measure": "nDCG@5"},
        {"beta": 1.0, "weak_ranker": "feature"},
        {"beta": 0.4, "k": 5},
    ],
    ids=str,
)
def test_it_learns(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    train, held_out, test = made_up(80), made_up(30, seed=2), made_up(30, seed=1)
    ranker = BoostedRanker(n_estimators=60, **settings).fit(train, eval_set=held_out)
    value = next(iter(evaluate("nDCG@5", test, ranker.predict(test)).means.values()))
    by_chance = evaluate("nDCG@5", test, np.zeros(test.rows))
    assert value > next(iter(by_chance.means.values())) + 0.25
    monkeypatch.setenv("PODIUM_THREADS", "1")
    alone = BoostedRanker(n_estimators=60, **settings).fit(train, eval_set=held_out)
    np.testing.assert_array_equal(alone.estimator_weights_, ranker.estimator_weights_)


def test_a_feature_that_changes_nothing_is_not_chosen_for_ever() -> None:
    ranker = BoostedRanker(
        beta=1, weak_ranker="feature", n_estimators=6, early_stopping_rounds=None
    ).fit(made_up())
    assert len(set(ranker.feature_indices_)) > 1


def test_an_order_of_two_thousand_documents() -> None:
    """Gains of 2^2000 are beyond any double."""
    random = np.random.default_rng(0)
    features = random.random((2000, 2)).astype(np.float32)
    order = np.argsort(np.argsort(features[:, 0])) + 1
    data = Dataset.from_arrays(features, labels=order, group=[2000])
    ranker = BoostedRanker(beta=1, list_measure="nDCG@10", n_estimators=5).fit(data)
    assert np.isfinite(ranker.estimator_weights_).all()
    assert ranker.feature_indices_[0] == 0


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"beta": 1.5}, "from 0 to 1"),
        ({"weak_ranker": "trees"}, "'threshold' or 'feature'"),
        ({"weak_ranker": "feature", "beta": 0.5}, "beta=1"),
        ({"beta": 1, "list_measure": "ERR@10"}, "Give AP, nDCG"),
        ({"beta": 1, "list_measure": "AP@5"}, "without a cut-off"),
        ({"beta": 0.5, "list_measure": "AP"}, "list_measure='nDCG'"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, object], hint: str) -> None:
    with pytest.raises(PodiumError, match=hint):
        BoostedRanker(**settings).fit(made_up(5))


def test_a_query_without_a_preference_counts_for_nothing() -> None:
    data = made_up(10)
    flat = Dataset.from_arrays(
        np.concatenate([data.features, data.features[:4]]),
        labels=np.concatenate([data.labels, np.ones(4)]),
        group=[*data.sizes, 4],
    )
    for beta, lists in ((0.0, "nDCG"), (0.5, "nDCG"), (1.0, "nDCG")):
        settings = {"beta": beta, "k": 5, "list_measure": lists, "n_estimators": 4}
        alone, both = (BoostedRanker(**settings).fit(each) for each in (data, flat))
        if beta < 1:  # a whole list of equal labels is as good in any order
            np.testing.assert_allclose(alone.estimator_weights_, both.estimator_weights_)


def test_labels_without_a_preference_are_refused() -> None:
    data = Dataset.from_arrays([[1.0], [2.0]], labels=[1, 1], group=[2])
    with pytest.raises(PodiumError, match="preferred"):
        BoostedRanker().fit(data)
    with pytest.raises(DataError, match="missing"):
        BoostedRanker(beta=1, weak_ranker="feature").fit(
            Dataset.from_arrays([[np.nan], [2.0]], labels=[1, 0], group=[2])
        )


def test_a_file_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    BoostedRanker(n_estimators=3).fit(made_up(5)).save(tmp_path / "model")
    archive = read_archive(tmp_path / "model")
    archive.arrays["features"][0] = 99
    write_archive(archive, tmp_path / "model")
    with pytest.raises(DataError, match="out of range"):
        load_ranker(tmp_path / "model")


def test_fitting_compares_as_predicting_does() -> None:
    # Neighbors in single precision: the number between them is rounded to the upper one.
    X = np.array([[16777218.0], [16777220.0]], np.float32)
    data = Dataset.from_arrays(X, [0, 1], group=[2])
    ranker = BoostedRanker(n_estimators=3).fit(data, eval_set=data)
    values = ranker.evals_result_["valid_0"]["nDCG@10"]
    assert evaluate("nDCG@10", data, ranker.predict(data)).means["nDCG@10"] == 1.0
    assert values == [1.0] * len(values)
