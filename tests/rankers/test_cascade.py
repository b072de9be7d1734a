"""Cascades: what the base keeps, what the votes decide, and their files."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from podium.data import Dataset
from podium.errors import ArgumentError, DataError, PodiumError
from podium.measures import evaluate
from podium.rankers import CascadeRanker, LinearRanker, TreeRanker, load_ranker
from tests.rankers.made_up import made_up
from tests.rankers.one_feature import Loading, OneFeature, Recording, by_hand

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
        LinearRanker("RankCosine()"),
        [LinearRanker("ListNet()")],
        candidates=1000,
        vote_fraction=1.0,
    ).fit(train)
    alone = LinearRanker("ListNet()").fit(train).predict(test)
    for query in range(len(test)):
        rows = slice(test.offsets[query], test.offsets[query + 1])
        np.testing.assert_array_equal(
            np.argsort(-ranker.predict(test)[rows]), np.argsort(-alone[rows])
        )


def noisy_votes(queries: int = 8, size: int = 6) -> Dataset:
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
    return CascadeRanker(OneFeature(1), voters, vote_fraction=1.0, **settings)


def test_weights_are_equal_without_validation_or_if_asked_for() -> None:
    data = noisy_votes()
    assert voting().fit(data).weights_.tolist() == [1 / 3] * 3
    equal = voting(weights="uniform", base_votes=True).fit(data, eval_set=data)
    assert equal.weights_.tolist() == [1 / 4] * 4


@pytest.mark.parametrize("measure", ["nDCG@3", "RR"])
def test_weights_are_proportional_to_each_voters_measure(measure: str) -> None:
    data = noisy_votes()
    ranker = voting(measure=measure, base_votes=True).fit(data, eval_set=data)
    values = [value_of(measure, data, data.features[:, column]) for column in (0, 1, 2, 1)]
    np.testing.assert_allclose(ranker.weights_, np.array(values) / sum(values))


@pytest.mark.parametrize("measure", ["nDCG@6", "WKT(k=5)"])
def test_tuned_weights_find_the_voter_that_is_right(measure: str) -> None:
    data = noisy_votes()
    before = voting().fit(data, eval_set=data)
    assert before.weights_[0] < 0.5  # the two that are wrong have the majority
    best = value_of(measure, data, data.labels)
    assert value_of(measure, data, before.predict(data)) != pytest.approx(best)
    ranker = voting(weights="tuned", measure=measure).fit(data, eval_set=data)
    assert ranker.weights_.sum() == pytest.approx(1)
    assert ranker.weights_[0] > 0.5
    assert value_of(measure, data, ranker.predict(data)) == pytest.approx(best)


def test_weights_are_not_proportional_to_a_measure_of_which_smaller_is_better() -> None:
    with pytest.raises(ArgumentError, match=r"WKT\(k=5\).*weights='tuned'"):
        voting(measure="WKT(k=5)").fit(noisy_votes(), eval_set=noisy_votes())


def test_a_query_is_ranked_the_same_whatever_else_is_in_the_batch() -> None:
    random = np.random.default_rng(3)
    sizes = [3, 40, 7, 12, 1]
    data = Dataset.from_arrays(
        random.normal(size=(sum(sizes), 3)), random.integers(0, 3, sum(sizes)), group=sizes
    )
    voters = [OneFeature(0), OneFeature(1), OneFeature(2)]
    ranker = CascadeRanker(OneFeature(1), voters, candidates=20, vote_fraction=0.5).fit(data)
    alone = [ranker.predict(data.select(np.array([query]))) for query in range(len(data))]
    np.testing.assert_array_equal(ranker.predict(data), np.concatenate(alone))


def test_the_ballot_is_a_share_of_the_querys_own_candidates() -> None:
    """Four candidates of which each voter orders two: below those, the base order stays."""
    base = [4.0, 3.0, 2.0, 1.0]
    vote = [1.0, 2.0, 3.0, 4.0]
    features = np.column_stack([base, vote])
    both = np.concatenate([features, np.tile(features, (5, 1))])
    data = Dataset.from_arrays(both, np.arange(24) % 4, group=[4, 20])
    ranker = CascadeRanker(OneFeature(0), [OneFeature(1)], candidates=30, vote_fraction=0.5).fit(
        data
    )
    # Rows 3 and 2 are on the ballot, in this order; rows 0 and 1 follow as the base has them.
    assert ranker.predict(data)[:4].tolist() == [2.0, 1.0, 3.0, 4.0]
    least = CascadeRanker(OneFeature(0), [OneFeature(1)], vote_fraction=0.01).fit(data)
    assert least.predict(data)[:4].tolist() == [3.0, 2.0, 1.0, 4.0]


def test_a_saved_cascade_ranks_the_same(tmp_path: Path) -> None:
    data = made_up()
    mixed = CascadeRanker(
        LinearRanker(), [TreeRanker(n_estimators=5), LinearRanker(LOSSES[0])], candidates=9
    ).fit(data, eval_set=made_up(seed=3))
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
        (CascadeRanker(LinearRanker()), "a base ranker and a reranker"),
        (CascadeRanker(None, [LinearRanker()]), "base ranker"),
        (cascade(candidates=0), "at least 1"),
        (cascade(vote_fraction=0.0), "vote_fraction is"),
        (cascade(weights="guessed"), "tuned"),
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


def test_parameters_that_are_not_given() -> None:
    assert CascadeRanker().get_params() == {
        "base": None,
        "rerankers": (),
        "candidates": 100,
        "vote_fraction": 0.5,
        "base_votes": False,
        "weights": "proportional",
        "measure": "nDCG@10",
    }


def test_places_are_by_query_and_equal_scores_stay_as_given() -> None:
    """With one candidate a query there is nothing to vote on: the base order is the result."""
    data = by_hand()
    ranker = CascadeRanker(OneFeature(0), [OneFeature(1)], candidates=1).fit(data)
    # Feature 0 is 1, 3, 3, 2 and 5, 7.
    assert ranker.predict(data).tolist() == [1.0, 4.0, 3.0, 2.0, 1.0, 2.0]


def test_a_tied_vote_stays_as_the_base_has_it() -> None:
    base, vote = [2.0, 3.0, 1.0], [3.0, 2.0, 1.0]
    features = np.column_stack([base, vote, -np.array(vote)])
    data = Dataset.from_arrays(features, [0, 1, 2], group=[3])
    voters = [OneFeature(1), OneFeature(2)]
    ranker = CascadeRanker(OneFeature(0), voters, vote_fraction=1.0).fit(data)
    assert ranker.predict(data).tolist() == base


@pytest.mark.parametrize(("vote_fraction", "ordered"), [(0.3, 1), (0.4, 2), (0.7, 3), (1.0, 4)])
def test_the_ballot_is_rounded(vote_fraction: float, ordered: int) -> None:
    base, vote = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    data = Dataset.from_arrays(np.column_stack([base, vote]), [0, 1, 2, 3], group=[4])
    ranker = CascadeRanker(OneFeature(0), [OneFeature(1)], vote_fraction=vote_fraction).fit(data)
    voted = [3, 2, 1, 0][:ordered]
    order = voted + [row for row in range(4) if row not in voted]
    assert np.argsort(-ranker.predict(data)).tolist() == order


def test_a_fit_tells_each_ranker_that_is_done() -> None:
    steps: list[tuple[int, float, float | None]] = []
    voting().fit(noisy_votes(), progress=lambda *state: steps.append(state))
    assert [step for step, _, _ in steps] == [1, 2, 3, 4]
    assert np.isnan([loss for _, loss, _ in steps]).all()
    assert {value for _, _, value in steps} == {None}


def test_every_ranker_is_fitted_with_the_validation_data() -> None:
    train, held_out = noisy_votes(), noisy_votes(4)
    Recording.fits.clear()
    cascade_of = CascadeRanker(Recording(0), [Recording(1), Recording(2)], weights="uniform")
    cascade_of.fit(train, eval_set=held_out)
    assert len(Recording.fits) == 3
    assert all(data is train and valid is held_out for data, valid in Recording.fits)


class Refusing(OneFeature):
    """Has a parameter that is wrong whatever the data are."""

    def check_parameters(self) -> None:
        raise ArgumentError("column is wrong")


@pytest.mark.parametrize(
    "ranker",
    [
        CascadeRanker(Refusing(), [OneFeature()]),
        CascadeRanker(Recording(), [OneFeature(), Refusing()]),
    ],
)
def test_parameters_of_all_its_rankers_are_checked_before_any_is_fitted(
    ranker: CascadeRanker,
) -> None:
    Recording.fits.clear()
    with pytest.raises(ArgumentError, match="column is wrong"):
        ranker.fit(noisy_votes())
    assert Recording.fits == []


def test_a_cascade_streams_if_all_its_rankers_do() -> None:
    assert CascadeRanker(Recording(), [Recording(), Recording()]).streams is True
    assert CascadeRanker(Loading(), [Recording(), Recording()]).streams is False
    assert CascadeRanker(Recording(), [Recording(), Loading()]).streams is False


def test_the_limits_of_parameters_are_allowed() -> None:
    data = by_hand()
    ranker = CascadeRanker(OneFeature(0), [OneFeature(1)], candidates=1, vote_fraction=1.0).fit(
        data
    )
    assert ranker.weights_.tolist() == [1.0]
    for vote_fraction in (-0.1, 1.01):
        with pytest.raises(ArgumentError, match="vote_fraction is"):
            CascadeRanker(OneFeature(0), [OneFeature(1)], vote_fraction=vote_fraction).fit(data)


@pytest.mark.parametrize("base_votes", [False, True])
def test_a_file_with_more_or_fewer_weights_than_votes_is_refused(base_votes: bool) -> None:
    data, voters = by_hand(), [OneFeature(0), OneFeature(1)]
    ranker = CascadeRanker(OneFeature(1), voters, base_votes=base_votes).fit(data)
    right = 2 + base_votes
    assert load_ranker(BytesIO(ranker.to_bytes())).weights_.tolist() == [1 / right] * right
    for number in (right - 1, right + 1):
        ranker.weights_ = np.full(number, 1 / number)
        with pytest.raises(DataError, match="numbers of votes and weights differ"):
            load_ranker(BytesIO(ranker.to_bytes()))


def test_a_loaded_cascade_has_the_parameters_of_its_rankers_to_be_fitted_again() -> None:
    data = by_hand()
    ranker = CascadeRanker(OneFeature(1), [OneFeature(0), OneFeature(1)], candidates=3).fit(data)
    loaded = load_ranker(BytesIO(ranker.to_bytes()))
    assert isinstance(loaded, CascadeRanker)
    members = [loaded.base, *loaded.rerankers]
    assert [member.column for member in members] == [1, 0, 1]
    assert not any(member.__sklearn_is_fitted__() for member in members)
    assert [member.column for member in (loaded.base_, *loaded.rerankers_)] == [1, 0, 1]
    assert all(member.__sklearn_is_fitted__() for member in (loaded.base_, *loaded.rerankers_))
