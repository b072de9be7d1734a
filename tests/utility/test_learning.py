"""What DCGLearn finds: the truth, gains and discounts in their units, measures and losses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data import Dataset
from podium.errors import DataError, PodiumError
from podium.losses import LambdaLoss
from podium.measures import DCG, compare, evaluate, nDCG
from podium.measures.names import parse_measure
from podium.utility import DCGLearn, RankingPreferences, utility_report
from podium.utility.bootstrap import bootstrap_utility, position_test
from podium.utility.learn import choose_C, folds_of, held_out_leads
from podium.utility.learned_utility import accuracy
from podium.utility.next_pair import next_positions
from podium.utility.utility_tables import factor, similarity, usual_table
from tests.utility.people import judged, preferences, random_pairs

DISCOUNTS = np.array([1.0, 0.7, 0.5, 0.2])
GAINS = np.array([0.0, 0.4, 1.0])


@pytest.mark.parametrize("form", ["rank-one", "by-position"])
def test_the_truth_is_found(form: str) -> None:
    table = np.outer(DISCOUNTS, GAINS)
    pairs = judged(random_pairs(3000), table)
    learned = DCGLearn(100.0, form, tie_weight=0.0).fit(pairs).learned_  # type: ignore[arg-type]
    assert learned.gains == pytest.approx(GAINS, abs=0.02)
    assert learned.discounts == pytest.approx(DISCOUNTS, abs=0.02)
    assert learned.accuracy(judged(random_pairs(3000, seed=9), table)) > 0.99
    assert similarity(learned.table, table) > 0.999


def test_gains_and_discounts_are_in_their_units() -> None:
    learned = DCGLearn(1.0).fit(judged(random_pairs(200), np.outer(DISCOUNTS, GAINS))).learned_
    assert (learned.gains[0], learned.gains[-1], learned.discounts[0]) == (0.0, 1.0, 1.0)
    assert np.all(np.diff(learned.gains) >= 0)
    assert np.all(learned.table[:, 0] == 0)


@given(
    st.lists(st.floats(0.1, 10), min_size=1, max_size=5),
    st.lists(st.floats(0.1, 10), min_size=1, max_size=5),
    st.lists(st.floats(-5, 5), min_size=5, max_size=5),
)
def test_factor_undoes_a_product_whatever_is_added_at_a_position(
    discounts: list[float], rises: list[float], offsets: list[float]
) -> None:
    gains = np.concatenate(([0.0], np.cumsum(rises)))
    table = np.outer(discounts, gains) + np.array(offsets)[: len(discounts), None]
    found_gains, found_discounts = factor(table)
    assert found_gains == pytest.approx(gains / gains[-1], abs=1e-6)
    assert found_discounts == pytest.approx(np.array(discounts) / discounts[0], rel=1e-6)


def test_a_table_of_nothing_has_no_factors() -> None:
    with pytest.raises(DataError, match="determine no gains"):
        factor(np.full((3, 2), 7.0))


def test_the_measure_is_the_utility() -> None:
    """Leads by the table and differences of the measure are the same up to one factor."""
    learned = DCGLearn(10.0).fit(judged(random_pairs(500), np.outer(DISCOUNTS, GAINS))).learned_
    pairs = random_pairs(50, seed=3)
    values = [
        evaluate(
            learned.measure,
            side.ravel(),
            -np.tile(np.arange(4.0), 50),
            group=[4] * 50,
        )[learned.measure]
        for side in (pairs.left, pairs.right)
    ]
    expected = pairs.leads(learned.table) / learned.table[0, -1]
    assert values[0] - values[1] == pytest.approx(expected, abs=1e-5)
    assert parse_measure(repr(learned.measure)) == learned.measure
    assert (learned.measure.name, learned.ndcg.name) == ("DCG", "nDCG")


def test_the_measure_compares_systems_and_the_loss_trains() -> None:
    learned = DCGLearn(10.0).fit(judged(random_pairs(500), np.outer(DISCOUNTS, GAINS))).learned_
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 200)
    data = Dataset.from_arrays(random.random((200, 2)), labels=labels, group=[10] * 20)
    actual = compare(
        [learned.ndcg, learned.dcg], data, {"bad": random.random(200), "good": labels + 0.0}
    )
    assert actual.against_baseline[repr(learned.ndcg)]["good"].difference.mean > 0
    for form in ("rank-one", "by-position"):
        loss = (
            DCGLearn(10.0, form)
            .fit(  # type: ignore[arg-type]
                judged(random_pairs(500), np.outer(DISCOUNTS, GAINS))
            )
            .learned_.loss
        )
        assert isinstance(loss, LambdaLoss)
        result = loss.evaluate([0.0, 1.0, 0.0], [2, 0, 1], [0, 3])
        assert result.total > 0
        assert result.gradient[0] < 0


def test_normalized_learning_asks_for_leads_relative_to_the_ideal() -> None:
    """Twice as good documents make leads twice as large: relative to the ideal they are equal."""
    random = np.random.default_rng(1)
    small, large = random.integers(0, 2, (2, 400, 3)), 2 * random.integers(0, 2, (2, 400, 3))
    sides = np.concatenate((small, large), axis=1)
    pairs = RankingPreferences.from_arrays(*sides, grades=3)
    pairs = judged(pairs, np.outer([1, 0.6, 0.4], [0, 0.5, 1]))
    learned = DCGLearn(1.0, normalized=True).fit(pairs).learned_
    assert learned.measure.name == "nDCG"
    plain = DCGLearn(1.0).fit(pairs).learned_
    leads = np.abs(pairs.leads(learned.table))[pairs.strict]
    assert leads.shape == np.abs(pairs.leads(plain.table))[pairs.strict].shape
    assert learned.accuracy(pairs) > 0.97
    # A margin of the poorer queries is as good as one of the richer: their gain is not inflated.
    assert learned.gains[1] < plain.gains[1]


def test_ties_bring_utilities_together() -> None:
    """Figure 20: the mean difference of tied pairs falls as their weight grows."""
    truth = np.outer(DISCOUNTS, GAINS)
    pairs = random_pairs(600, seed=4)
    seen = pairs.leads(truth) + 0.3 * np.random.default_rng(0).logistic(size=600)
    pairs = pairs.with_choices(np.where(np.abs(seen) < 0.5, 0, np.sign(seen)))
    tied = pairs.take(~pairs.strict)
    apart = []
    for ties in (0.0, 1.0, 10.0):
        learned = DCGLearn(1.0, "by-position", tie_weight=ties).fit(pairs).learned_
        apart.append(float(np.abs(tied.leads(learned.table)).mean()))
    assert apart[0] > apart[1] > apart[2]


def test_much_better_asks_for_a_larger_lead() -> None:
    pairs = RankingPreferences.from_arrays([[1, 0]], [[0, 0]], [2])
    leads = [
        float(pairs.leads(DCGLearn(1e6, much=much).fit(pairs).learned_.table)[0])
        for much in (1.0, 3.0)
    ]
    assert leads == pytest.approx([1.0, 3.0], rel=1e-4)


@given(preferences())
def test_folds_part_no_query_and_miss_no_pair(pairs: RankingPreferences) -> None:
    queries = np.arange(len(pairs)) // 2
    if len(np.unique(queries)) < 3:
        return
    grouped = RankingPreferences.from_arrays(
        pairs.left, pairs.right, pairs.choices, queries=queries, grades=pairs.grades
    )
    held = []
    for train, test in folds_of(grouped, 3, random_state=1):
        assert not set(train.queries) & set(test.queries)
        held += test.queries.tolist()
    assert sorted(held) == queries.tolist()


def test_cross_validation_chooses_a_c_that_predicts() -> None:
    """With a third of the verdicts reversed a small C is best, and held-out accuracy says so."""
    pairs = judged(random_pairs(400), np.outer(DISCOUNTS, GAINS))
    pairs = pairs.take(pairs.strict)
    wrong = np.random.default_rng(0).random(len(pairs)) < 0.33
    noisy = pairs.with_choices(np.where(wrong, -pairs.choices, pairs.choices))
    model = DCGLearn(form="by-position")
    assert choose_C(model, noisy) <= 0.1
    leads = held_out_leads(model, noisy)
    assert accuracy(pairs, leads) > 0.9  # of what they really think
    test = judged(random_pairs(4000, seed=8), np.outer(DISCOUNTS, GAINS))
    assert DCGLearn().fit(noisy).learned_.accuracy(test) > 0.9


def test_too_few_queries_for_the_folds_are_refused() -> None:
    with pytest.raises(DataError, match="2 queries for 5 folds"):
        DCGLearn().fit(RankingPreferences.from_arrays([[1], [1]], [[0], [0]], [1, 1]))


def test_usual_tables_are_the_usual_measures() -> None:
    labels = np.array([2, 0, 1])
    for gains, measure in (("exponential", DCG @ 3), ("linear", DCG(gains="linear") @ 3)):
        table = usual_table(3, 3, gains)
        value = evaluate(measure, labels, [3, 2, 1], group=[3]).means[measure]
        assert table[np.arange(3), labels].sum() == pytest.approx(value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0.0}, "C is 0.0"),
        ({"C": float("nan")}, "C is nan"),
        ({"form": "rank-two"}, "form is 'rank-two'"),
        ({"tie_weight": -1.0}, "tie_weight is -1.0"),
        ({"much": 0.5}, "much is 0.5"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(PodiumError, match=message):
        DCGLearn(**settings)


def test_ties_alone_teach_nothing() -> None:
    pairs = RankingPreferences.from_arrays([[1, 0]], [[0, 1]], [0])
    with pytest.raises(DataError, match="determine no gains"):
        DCGLearn(1.0).fit(pairs)
    with pytest.raises(DataError, match="no strict preference"):
        accuracy(pairs, np.zeros(1))


def test_ndcg_of_a_learned_utility_is_1_for_the_best_order() -> None:
    learned = DCGLearn(10.0).fit(judged(random_pairs(500), np.outer(DISCOUNTS, GAINS))).learned_
    result = evaluate(learned.ndcg, [2, 1, 0, 1], [4, 3, 1, 2], group=[4])
    assert result.means[learned.ndcg] == pytest.approx(1.0)
    assert learned.ndcg != nDCG @ 4


def test_fit_returns_the_model_and_leaves_its_parameters_alone():
    pairs = judged(random_pairs(200), np.outer(DISCOUNTS, GAINS))
    model = DCGLearn(random_state=3)
    assert model.fit(pairs) is model
    assert model.C is None
    assert choose_C(model, pairs) == model.learned_.C
    assert model == DCGLearn(random_state=3)


def test_studies_of_a_model_do_not_refit_it():
    pairs = judged(random_pairs(200), np.outer(DISCOUNTS, GAINS))
    model = DCGLearn(1.0).fit(pairs)
    learned = model.learned_
    choose_C(model, pairs, (0.1, 1.0))
    held_out_leads(model, pairs)
    bootstrap_utility(model, pairs, learned, resamples=2)
    position_test(model, pairs, resamples=1)
    utility_report(pairs, model, resamples=2, test_position=False)
    next_positions(random_pairs(50), pairs, model)
    assert model.learned_ is learned
