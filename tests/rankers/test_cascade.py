"""Cascades: what the base keeps, what the votes decide, and their files."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from podium.data import Dataset
from podium.errors import ArgumentError, DataError, PodiumError
from podium.measures import evaluate
from podium.rankers import CascadeRanker, LinearRanker, Ranker, TreeRanker, load_ranker
from podium.rankers.storage import Archive
from tests.rankers.made_up import made_up

LOSSES = ["SquaredError()", "PairHinge(k=5)", "ListNet(k=5)"]


def cascade(**settings: object) -> CascadeRanker:
    base = LinearRanker("StructuralHinge('ndcg', 'slack', k=5)")
    return CascadeRanker(base, [LinearRanker(loss) for loss in LOSSES], **settings)


def test_documents_that_the_base_does_not_keep_stay_below_in_its_order() -> None:
    train, test = made_up(), made_up(10, seed=1)
    ranker = cascade(candidates=7).fit(train)
    first, scores = ranker.base_.predict(test), ranker.predict(test)
    for query in range(len(test)):
        rows = slice(test.offsets[query], test.offsets[query + 1])
        by_base = np.argsort(-first[rows], kind="stable")
        by_cascade = np.argsort(-scores[rows], kind="stable")
        assert set(by_base[:7]) == set(by_cascade[:7])
        np.testing.assert_array_equal(by_base[7:], by_cascade[7:])
        assert sorted(scores[rows]) == list(range(1, len(by_base) + 1))


def test_one_reranker_decides_alone() -> None:
    train, test = made_up(), made_up(10, seed=1)
    ranker = CascadeRanker(
        LinearRanker("RankCosine()"), [LinearRanker("ListNet()")], candidates=1000, ballot=1.0
    ).fit(train)
    alone = LinearRanker("ListNet()").fit(train).predict(test)
    for query in range(len(test)):
        rows = slice(test.offsets[query], test.offsets[query + 1])
        np.testing.assert_array_equal(
            np.argsort(-ranker.predict(test)[rows]), np.argsort(-alone[rows])
        )


class OneFeature(Ranker):
    """Scores are a feature: a voter whose vote is known."""

    streams = True

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def _fit(self, data: object, validation: object, progress: object) -> None:
        pass

    def _predict(self, features: np.ndarray) -> np.ndarray:
        return features[:, self.column].astype(np.float64)

    def _archive(self) -> Archive:
        return Archive("", {})

    def _restore(self, archive: Archive) -> None:
        pass


def told(queries: int = 8, size: int = 6) -> Dataset:
    """Feature 0 is the label; features 1 and 2 are the same noise, so they outvote it together."""
    random = np.random.default_rng(5)
    labels = np.concatenate([random.permutation(size) for _ in range(queries)])
    noise = random.normal(size=len(labels)) + 0.4 * labels
    return Dataset.from_arrays(
        np.column_stack([labels, noise, noise]), labels=labels, group=[size] * queries
    )


def value_of(measure: str, data: Dataset, scores: np.ndarray) -> float:
    return float(next(iter(evaluate(measure, data, scores).means.values())))


def voting(**settings: object) -> CascadeRanker:
    voters = [OneFeature(0), OneFeature(1), OneFeature(2)]
    return CascadeRanker(OneFeature(1), voters, ballot=1.0, **settings)


def test_weights_are_equal_without_validation_or_if_asked_for() -> None:
    data = told()
    assert voting().fit(data).weights_.tolist() == [1 / 3] * 3
    equal = voting(weighing="equal", base_votes=True).fit(data, validation=data)
    assert equal.weights_.tolist() == [1 / 4] * 4


@pytest.mark.parametrize("measure", ["nDCG@3", "RR"])
def test_weights_are_proportional_to_each_voters_measure(measure: str) -> None:
    data = told()
    ranker = voting(measure=measure, base_votes=True).fit(data, validation=data)
    values = [value_of(measure, data, data.features[:, column]) for column in (0, 1, 2, 1)]
    np.testing.assert_allclose(ranker.weights_, np.array(values) / sum(values))


@pytest.mark.parametrize("measure", ["nDCG@6", "WKT(k=5)"])
def test_tuned_weights_find_the_voter_that_is_right(measure: str) -> None:
    data = told()
    before = voting().fit(data, validation=data)
    assert before.weights_[0] < 0.5  # the two that are wrong have the majority
    best = value_of(measure, data, data.labels)
    assert value_of(measure, data, before.predict(data)) != pytest.approx(best)
    ranker = voting(weighing="tuned", measure=measure).fit(data, validation=data)
    assert ranker.weights_.sum() == pytest.approx(1)
    assert ranker.weights_[0] > 0.5
    assert value_of(measure, data, ranker.predict(data)) == pytest.approx(best)


def test_weights_are_not_proportional_to_a_measure_of_which_smaller_is_better() -> None:
    with pytest.raises(ArgumentError, match=r"WKT\(k=5\).*weighing='tuned'"):
        voting(measure="WKT(k=5)").fit(told(), validation=told())


def test_a_query_is_ranked_the_same_whatever_else_is_in_the_batch() -> None:
    random = np.random.default_rng(3)
    sizes = [3, 40, 7, 12, 1]
    data = Dataset.from_arrays(
        random.normal(size=(sum(sizes), 3)), random.integers(0, 3, sum(sizes)), group=sizes
    )
    voters = [OneFeature(0), OneFeature(1), OneFeature(2)]
    ranker = CascadeRanker(OneFeature(1), voters, candidates=20, ballot=0.5).fit(data)
    alone = [ranker.predict(data.select(np.array([query]))) for query in range(len(data))]
    np.testing.assert_array_equal(ranker.predict(data), np.concatenate(alone))


def test_the_ballot_is_a_share_of_the_querys_own_candidates() -> None:
    """Four candidates of which each voter orders two: below those, the base order stays."""
    base = [4.0, 3.0, 2.0, 1.0]
    vote = [1.0, 2.0, 3.0, 4.0]
    features = np.column_stack([base, vote])
    both = np.concatenate([features, np.tile(features, (5, 1))])
    data = Dataset.from_arrays(both, np.arange(24) % 4, group=[4, 20])
    ranker = CascadeRanker(OneFeature(0), [OneFeature(1)], candidates=30, ballot=0.5).fit(data)
    # Rows 3 and 2 are on the ballot, in this order; rows 0 and 1 follow as the base has them.
    assert ranker.predict(data)[:4].tolist() == [2.0, 1.0, 3.0, 4.0]
    least = CascadeRanker(OneFeature(0), [OneFeature(1)], ballot=0.01).fit(data)
    assert least.predict(data)[:4].tolist() == [3.0, 2.0, 1.0, 4.0]


def test_a_saved_cascade_ranks_the_same(tmp_path: Path) -> None:
    data = made_up()
    mixed = CascadeRanker(
        LinearRanker(), [TreeRanker(n_estimators=5), LinearRanker(LOSSES[0])], candidates=9
    ).fit(data, validation=made_up(seed=3))
    mixed.save(tmp_path / "model")
    loaded = load_ranker(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(data), mixed.predict(data))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    assert isinstance(loaded, CascadeRanker)
    assert loaded.candidates == 9
    assert [type(one) for one in clone(loaded).rerankers] == [TreeRanker, LinearRanker]


@pytest.mark.parametrize(
    ("ranker", "hint"),
    [
        (CascadeRanker(LinearRanker()), "at least one reranker"),
        (CascadeRanker(None, [LinearRanker()]), "base ranker"),
        (cascade(candidates=0), "at least 1"),
        (cascade(ballot=0.0), "share"),
        (cascade(weighing="guessed"), "tuned"),
    ],
)
def test_what_does_not_fit_is_refused(ranker: CascadeRanker, hint: str) -> None:
    with pytest.raises(PodiumError, match=hint):
        ranker.fit(made_up(5))


def test_an_array_is_refused_since_it_does_not_say_where_queries_begin() -> None:
    ranker = cascade().fit(made_up())
    with pytest.raises(DataError, match="Dataset"):
        ranker.predict(np.zeros((3, 6)))
    with pytest.raises(DataError, match="features"):
        ranker.predict(Dataset.from_arrays([[1.0]], labels=[0], qid=["a"]))
