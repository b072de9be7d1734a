"""Cascades: what the base keeps, what the votes decide, and their files."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from podium.data import Dataset
from podium.errors import DataError, PodiumError
from podium.measures import evaluate
from podium.rankers import CascadeRanker, LinearRanker, TreeRanker, load_ranker
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


@pytest.mark.parametrize("weighing", ["proportional", "tuned", "equal"])
def test_weights_come_from_validation_queries(weighing: str) -> None:
    train, held_out, test = made_up(60), made_up(20, seed=2), made_up(40, seed=1)
    useless = LinearRanker("ListNet()", penalty=1e6)
    ranker = CascadeRanker(
        LinearRanker(), [useless, LinearRanker()], weighing=weighing, base_votes=True
    ).fit(train, validation=held_out)
    assert ranker.weights_.sum() == pytest.approx(1)
    assert len(ranker.weights_) == 3
    if weighing == "equal":
        assert np.ptp(ranker.weights_) == 0
    if weighing == "tuned":
        before = clone(ranker).set_params(weighing="proportional").fit(train, validation=held_out)
        values = [
            next(iter(evaluate("nDCG@10", held_out, each.predict(held_out)).means.values()))
            for each in (ranker, before)
        ]
        assert values[0] >= values[1]
    value = next(iter(evaluate("nDCG@5", test, ranker.predict(test)).means.values()))
    assert value > 0.75


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
