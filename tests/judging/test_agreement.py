"""Agreement, against the formulas and against other people's packages."""

import gzip
from collections import Counter
from itertools import product

import krippendorff as peer_krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap
from scipy.stats import chi2_contingency
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as peer_fleiss

from podium.data import read_pairs
from podium.errors import ArgumentError, DataError
from podium.judging import Grade, Mark, Outcome, Verdict
from podium.judging.agreement import Agreement, Ratings, inferred_verdicts
from podium.judging.agreement.coefficients import (
    bootstrap_agreement,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
)
from podium.judging.agreement.matrix import compare_agreement, self_consistency
from podium.judging.entries import Undo
from tests.data.shared_files import shared

LEFT, TIE, RIGHT = Outcome.LEFT, Outcome.TIE, Outcome.RIGHT
NAN = float("nan")
VOTES = st.sampled_from([1.0, 0.0, -1.0])


def tables(votes):
    return st.integers(2, 5).flatmap(
        lambda people: st.lists(
            st.lists(votes, min_size=people, max_size=people), min_size=2, max_size=12
        )
    )


@given(tables(VOTES))
def test_fleiss_is_that_of_statsmodels(table):
    counts = np.array([[row.count(value) for value in (1, 0, -1)] for row in table])
    assume((counts.sum(axis=0) > 0).sum() > 1)
    assert fleiss_kappa(Ratings.from_table(table)) == pytest.approx(peer_fleiss(counts))


@given(
    tables(st.sampled_from([1.0, 0.0, -1.0, 2.0, NAN])),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_is_that_of_krippendorff(table, level):
    values = np.array(table)
    kept = values[(~np.isnan(values)).sum(axis=1) > 1]
    assume(len(np.unique(kept[~np.isnan(kept)])) > 1)
    expected = peer_krippendorff.alpha(kept.T, level_of_measurement=level)
    assert krippendorff_alpha(Ratings.from_table(kept), level) == pytest.approx(expected)
    if level == "nominal":  # values that only single votes hold change nothing
        assert krippendorff_alpha(Ratings.from_table(values)) == pytest.approx(expected)


@given(st.lists(st.tuples(VOTES, VOTES), min_size=2, max_size=20))
def test_cohen_is_that_of_scikit_learn(pairs):
    one, other = zip(*pairs, strict=True)
    assume(len({*one, *other}) > 1)
    assert cohen_kappa(one, other) == pytest.approx(cohen_kappa_score(one, other))


def test_one_value_only_is_full_agreement():
    same = Ratings.from_table([[1, 1], [1, 1]])
    assert fleiss_kappa(same) == krippendorff_alpha(same) == cohen_kappa([1, 1], [1, 1]) == 1


def test_the_matrix_counts_every_two_people_both_ways():
    agreement = Agreement.of(Ratings.from_table([[1, 1, 0], [-1, 1, NAN], [0, NAN, NAN]]))
    # the first pair: left-left twice, left-tie twice, tie-left twice; the second: opposite, twice
    assert agreement.table.tolist() == [[2, 2, 1], [2, 0, 0], [1, 0, 0]]
    np.testing.assert_allclose(agreement.rows, [[2 / 5, 2 / 5, 1 / 5], [1, 0, 0], [1, 0, 0]])
    assert agreement.ratio() == (1, 3)
    assert agreement.overall == 1 / 4
    assert agreement.ratio(ties=False) == (1, 1)
    assert agreement.without_ties == 1 / 2


def test_single_votes_say_nothing_about_agreement():
    alone = Ratings.from_table([[1, NAN], [NAN, -1]])
    assert np.isnan(Agreement.of(alone).overall)
    assert Agreement.of(alone).rows.tolist() == np.zeros((3, 3)).tolist()
    with pytest.raises(DataError, match="judged by two people"):
        fleiss_kappa(alone)


def test_chi_square_of_two_methods():
    one = Agreement(np.diag([300, 200, 200]) + 50)
    other = Agreement(np.diag([100, 100, 100]) + 60)
    peer = chi2_contingency([one.ratio(), other.ratio()], correction=False)
    comparison = compare_agreement(one, other)
    assert comparison.statistic == pytest.approx(peer.statistic)
    assert comparison.p_value == pytest.approx(peer.pvalue)
    assert compare_agreement(one, other, ties=False).statistic != comparison.statistic
    with pytest.raises(DataError, match="nothing to compare"):
        compare_agreement(one, Agreement(np.zeros((3, 3), int)))


def test_preferences_inferred_from_grades():
    log = [
        Grade("a", 1, "ann"),
        Grade("b", 3, "ann"),
        Grade("a", 3, "ann"),  # a change of mind
        Grade("a", 0, "bob"),
        Grade("b", 2, "bob"),
        Grade("c", 4, "bob"),
        Undo(5, "bob"),
        Mark("c"),
    ]
    assert inferred_verdicts(log) == [
        Verdict("a", "b", TIE, "ann"),
        Verdict("a", "b", RIGHT, "bob"),
    ]
    assert inferred_verdicts(log, []) == []
    assert inferred_verdicts(log, [("b", "a"), ("c", "a")]) == [
        Verdict("b", "a", TIE, "ann"),
        Verdict("b", "a", LEFT, "bob"),
    ]


def test_ballots_from_logs_take_each_persons_last_word():
    log = [
        Verdict("b", "a", LEFT, "ann"),
        Verdict("a", "b", TIE, "bob"),
        Verdict("a", "b", LEFT, "ann"),
        Verdict("a", "c", LEFT, "bob"),
        Undo(3),
    ]
    ballots = Ratings.from_logs({"q1": log, "q2": [Verdict("a", "b", RIGHT, "cem")]})
    assert ballots.unit_names == (("q1", "a", "b"), ("q2", "a", "b"))
    assert ballots.rater_names == ("ann", "bob", "cem")
    rows = zip(ballots.units, ballots.raters, ballots.values, strict=True)
    assert sorted((int(unit), int(rater), value) for unit, rater, value in rows) == [
        (0, 0, 1.0),
        (0, 1, 0.0),
        (1, 2, -1.0),
    ]


def test_self_consistency_knows_sides():
    log = [
        Verdict("a", "b", LEFT, "ann"),
        Verdict("b", "a", RIGHT, "ann"),
        Verdict("a", "b", TIE, "ann"),
        Verdict("a", "b", LEFT, "bob"),
    ]
    assert self_consistency({"q": log}) == {"ann": (2, 1)}


def test_the_bootstrap_draws_units_with_all_their_votes():
    ballots = Ratings.from_table([[1, 1, 1], [0, NAN, 0], [-1, 1, NAN]])
    again = ballots.take(np.array([2, 0, 2]))
    assert again.units.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert again.values.tolist() == [-1, 1, 1, 1, 1, -1, 1]


def test_the_bootstrap_covers_the_truth():
    """Two people agree on 70 % of pairs; about 95 of 100 intervals should say so."""
    random = np.random.default_rng(0)
    covered = 0
    for trial in range(100):
        agreed = random.random(80) < 0.7
        ballots = Ratings.from_table(np.where(agreed[:, None], [1, 1], [1, -1]))
        interval = bootstrap_agreement(
            lambda votes: Agreement.of(votes).overall, ballots, draws=200, random_state=trial
        )
        assert interval.value == agreed.mean()
        covered += interval.low <= 0.7 <= interval.high
    assert 88 <= covered <= 100


def test_samples_without_overlap_are_left_out():
    """One of three pairs was judged once: one sample in 27 has only that pair."""
    ballots = Ratings.from_table([[1, 1], [0, 1], [1, NAN]])
    interval = bootstrap_agreement(fleiss_kappa, ballots, draws=2000)
    assert interval.draws == pytest.approx(2000 * 26 / 27, abs=4 * np.sqrt(2000 * 26 / 27**2))
    assert interval.value == fleiss_kappa(ballots)
    assert interval.high == 1.0  # only the pair that two agree on
    as_nan = bootstrap_agreement(lambda votes: Agreement.of(votes).overall, ballots, draws=2000)
    assert as_nan.draws == interval.draws


def test_where_most_samples_have_no_figure_there_is_no_interval():
    """One pair of ten was judged by two: (9/10)^10 = 35 % of samples lack it; of forty, 36 %."""
    one_of_ten = Ratings.from_table([[1, 1]] + [[1, NAN]] * 9)
    share = 1 - 0.9**10
    interval = bootstrap_agreement(fleiss_kappa, one_of_ten, draws=1000)
    assert interval.draws == pytest.approx(
        1000 * share, abs=4 * np.sqrt(1000 * share * (1 - share))
    )

    def strict(votes):
        """A figure that asks for two such pairs, which 26 % of samples have."""
        return fleiss_kappa(votes) if (votes.counts().sum(axis=1) > 1).sum() > 1 else NAN

    with pytest.raises(DataError, match=r"only 2\d\d of 1000 samples have the figure"):
        bootstrap_agreement(strict, one_of_ten, draws=1000)


def test_the_interval_has_the_quantiles_of_all_samples():
    """Four pairs have 4^4 samples, all as likely: their exact quantiles, counted out."""
    table = np.array([[1, 1], [0, 0], [1, -1], [1, 0]])
    same = table[:, 0] == table[:, 1]
    every = np.sort([same[list(sample)].mean() for sample in product(range(4), repeat=4)])
    # Shares agreed of 0, 1/4, ..., 1 have chances 1, 4, 6, 4, 1 of 16.
    assert Counter(every.tolist()) == {0: 16, 0.25: 64, 0.5: 96, 0.75: 64, 1: 16}
    for confidence, ends in ((0.95, (0.0, 1.0)), (0.8, (0.25, 0.75)), (0.3, (0.5, 0.5))):
        interval = bootstrap_agreement(
            lambda votes: Agreement.of(votes).overall,
            Ratings.from_table(table),
            draws=3000,
            confidence=confidence,
        )
        exact = np.quantile(every, [(1 - confidence) / 2, (1 + confidence) / 2])
        assert (interval.low, interval.high) == tuple(exact) == ends
        assert (interval.value, interval.draws) == (0.5, 3000)


def test_the_interval_is_scipys_percentile_interval():
    random = np.random.default_rng(3)
    agreed = random.random(300) < 0.8
    ballots = Ratings.from_table(np.where(agreed[:, None], [1, 1], [1, -1]))
    interval = bootstrap_agreement(
        lambda votes: Agreement.of(votes).overall, ballots, draws=4000, confidence=0.9
    )
    theirs = scipy_bootstrap(
        (agreed.astype(float),),
        np.mean,
        n_resamples=20_000,
        confidence_level=0.9,
        method="percentile",
        random_state=0,
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx(tuple(theirs), abs=0.004)


def test_the_same_seed_draws_the_same_samples():
    ballots = Ratings.from_table(np.random.default_rng(0).choice([1.0, 0.0, -1.0], (40, 3)))
    once, again, other = (
        bootstrap_agreement(fleiss_kappa, ballots, draws=50, random_state=s) for s in (1, 1, 2)
    )
    assert once == again
    assert (once.low, once.high) != (other.low, other.high)


@pytest.mark.parametrize(("draws", "confidence"), [(0, 0.95), (10, 0.0), (10, 1.0), (10, 95)])
def test_nonsense_intervals_are_refused(draws, confidence):
    with pytest.raises(ArgumentError, match=f"{draws} draws at confidence {confidence}"):
        bootstrap_agreement(
            fleiss_kappa, Ratings.from_table([[1, 1]]), draws=draws, confidence=confidence
        )


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Ratings.from_table([1, 2]), "not a table"),
        (lambda: Agreement.of(Ratings.from_table([[2, 2]])), "not 1, 0 or -1"),
        (lambda: cohen_kappa([1], [1, 2]), "do not fit"),
        (lambda: bootstrap_agreement(fleiss_kappa, Ratings.from_logs({})), "no votes"),
        (lambda: Ratings(np.array([0]), np.array([0]), np.array([np.inf]), ("a",)), "not a finite"),
        (lambda: Ratings(np.array([0]), np.array([0]), np.array([1.0, 0]), ("a",)), "unequal"),
    ],
)
def test_what_makes_no_sense_is_refused(make, problem):
    with pytest.raises(DataError, match=problem):
        make()


def image_votes():
    """Three people's verdicts on pairs of images, 1 for left, strength left out."""
    with gzip.open(shared("preferences/image-search/image_pairs_annotation.gz"), "rt") as lines:
        next(lines)
        rows = [line.rstrip("\n").split("\t")[-3:] for line in lines]
    return -np.sign(np.array(rows, float))


def test_image_search_agreement():
    table = image_votes()
    ballots = Ratings.from_table(table)
    assert table.shape == (41538, 3)
    counts = np.array([(table == value).sum(axis=1) for value in (1, 0, -1)]).T
    assert fleiss_kappa(ballots) == pytest.approx(peer_fleiss(counts))
    expected = peer_krippendorff.alpha(table.T, level_of_measurement="ordinal")
    assert krippendorff_alpha(ballots, "ordinal") == pytest.approx(expected)
    agreement = Agreement.of(ballots)
    same = sum((table[:, one] == table[:, other]).sum() for one, other in [(0, 1), (0, 2), (1, 2)])
    assert agreement.ratio() == (same, 3 * len(table) - same)
    assert agreement.without_ties > agreement.overall


@pytest.mark.parametrize("name", ["trec-dl21/human", "trec-cast19/crowd"])
def test_trec_pairs_that_two_people_judged(name):
    pairs = read_pairs(shared(f"preferences/{name}.pref"))
    log = {}
    for query, left, right, verdict in zip(
        pairs.query_id_of_row().to_pylist(),
        pairs.left.to_pylist(),
        pairs.right.to_pylist(),
        pairs.verdicts.tolist(),
        strict=True,
    ):
        entries = log.setdefault(query, [])
        entries.append(Verdict(left, right, Outcome(verdict), f"vote {len(entries)}"))
    agreement = Agreement.of(Ratings.from_logs(log))
    assert 0.5 < agreement.overall == agreement.without_ties < 0.6  # only hard pairs came back
