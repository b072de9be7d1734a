"""Posterior from verdicts that may be wrong, and what to ask next."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from podium.errors import ArgumentError, DataError
from podium.judging import (
    Grade,
    Mark,
    Outcome,
    Overlap,
    Session,
    SimulatedAssessor,
    Verdict,
    judge_session,
)
from podium.judging.active_sampling import by_expected_gain, expected_gains, most_informative_pairs
from podium.judging.agreement import Ratings, dawid_skene
from podium.judging.assessors.simulated import Habits
from podium.judging.bradley_terry import Duels, Posterior, fit_bradley_terry, prior_strengths
from podium.judging.entries import majority
from podium.judging.kndcg import k_ndcg

ITEMS = 6
ROWS = st.lists(
    st.tuples(
        st.integers(0, ITEMS - 1),
        st.integers(1, ITEMS - 1),
        st.sampled_from([1, 0, -1]),
        st.integers(0, 2),
    ).map(lambda row: (row[0], (row[0] + row[1]) % ITEMS, row[2], row[3])),
    max_size=40,
)


def minus_log_posterior(means, duels, tie, spread):
    """Minus the log posterior, from the formulas of Rao and Kupper spelled out."""
    lead = means[duels.left] - means[duels.right]
    left = 1 / (1 + np.exp(-(lead - tie)))
    right = 1 / (1 + np.exp(lead + tie))
    chances = np.select(
        [duels.outcomes == 1, duels.outcomes == -1], [left, right], 1 - left - right
    )
    return (means**2).sum() / (2 * spread**2) - np.log(chances).sum()


@given(ROWS, st.floats(0.1, 2), st.floats(0.5, 3))
@settings(max_examples=50)
def test_the_fit_is_the_most_probable(rows, tie, spread):
    duels = Duels.of(rows)
    posterior = fit_bradley_terry(ITEMS, duels, tie=tie, spread=spread)
    best = minimize(minus_log_posterior, np.zeros(ITEMS), (duels, tie, spread), tol=1e-10)
    np.testing.assert_allclose(posterior.means, best.x, atol=2e-3)


@given(ROWS)
@settings(max_examples=20)
def test_the_precision_is_the_curvature(rows):
    duels = Duels.of(rows)
    posterior = fit_bradley_terry(ITEMS, duels, tie=0.7, spread=1.3)

    def gradient(means):
        return approx_fprime(means, minus_log_posterior, 1e-5, duels, 0.7, 1.3)

    curvature = np.array(
        [
            approx_fprime(posterior.means, lambda at, row=row: gradient(at)[row], 1e-3)
            for row in range(ITEMS)
        ]
    )
    np.testing.assert_allclose(posterior.precision, curvature, atol=0.02)


def crowd(people, seed=0, items=30, votes=3000):
    """Verdicts of people with slopes, on items of known worth."""
    random = np.random.default_rng(seed)
    strengths = 2 * random.standard_normal(items)
    left = random.integers(0, items, votes)
    right = (left + random.integers(1, items, votes)) % items
    raters = random.integers(0, len(people), votes)
    seems = np.array(people)[raters] * (strengths[left] - strengths[right]) + random.logistic(
        size=votes
    )
    outcomes = np.sign(seems) * (abs(seems) > 1)
    return strengths, Duels(left, right, outcomes.astype(int), raters)


def test_strengths_and_the_tie_width_are_recovered():
    strengths, duels = crowd([1.0])
    posterior = fit_bradley_terry(len(strengths), duels, spread=2.0)
    assert posterior.tie == pytest.approx(1.0, abs=0.1)
    assert np.corrcoef(posterior.means, strengths)[0, 1] > 0.99
    # Only differences can be told: errors and their spread are taken relative to the mean.
    relative = np.eye(len(strengths)) - 1 / len(strengths)
    spread = np.sqrt(np.diag(relative @ np.linalg.inv(posterior.precision) @ relative))
    errors = abs(relative @ (posterior.means - strengths))
    assert np.mean(errors < 2 * spread) > 0.85  # about 95 % of two standard deviations
    assert 0.2 < np.mean(errors < 0.6745 * spread) < 0.8  # and half of a probable error


def test_reliability_tells_guessers_from_those_who_know():
    strengths, duels = crowd([1.5, 1.0, 0.5, 0.0, 0.0], votes=1500)
    plain = fit_bradley_terry(len(strengths), duels)
    posterior = fit_bradley_terry(len(strengths), duels, reliability=True)
    assert posterior.slopes.argsort().tolist()[::-1][:3] == [0, 1, 2]
    assert max(abs(posterior.slopes[3:])) < 0.3
    assert np.corrcoef(posterior.means, strengths)[0, 1] > np.corrcoef(plain.means, strengths)[0, 1]


def test_a_side_that_is_known_does_not_count_as_worth():
    rows = [(0, 1, 1, 0), (1, 0, 1, 0)] * 10  # left always wins
    assert abs(fit_bradley_terry(2, Duels.of(rows)).means).max() < 1e-3
    rows = [(0, 1, 1, 0)] * 10
    assert (
        fit_bradley_terry(2, Duels.of(rows), side=3.0).means[0]
        < fit_bradley_terry(2, Duels.of(rows)).means[0]
    )


def test_a_prior_ranking():
    means, spread = prior_strengths(9, trust=0.6, spread=2.0)
    assert means[4] == pytest.approx(0, abs=1e-9)
    assert spread == pytest.approx(2 * 0.8)
    assert (np.diff(means) < 0).all()
    posterior = fit_bradley_terry(9, Duels.of([(8, 0, 1, 0)]), means=means, spread=spread)
    assert posterior.means[8] > means[8]
    assert posterior.means[0] < means[0]


def test_verdicts_on_items_that_do_not_exist():
    with pytest.raises(DataError, match="does not exist"):
        fit_bradley_terry(2, Duels.of([(0, 2, 1, 0)]))


def test_draws_have_the_posteriors_mean_and_covariance():
    strengths = fit_bradley_terry(4, Duels.of([(0, 1, 1, 0), (1, 2, 1, 0), (2, 3, 0, 0)]))
    drawn = strengths.draws(200_000, random_state=1)
    np.testing.assert_allclose(drawn.mean(axis=1), strengths.means, atol=0.02)
    covariance = strengths.covariance(np.arange(4))
    np.testing.assert_allclose(np.cov(drawn), covariance, atol=0.05)
    np.testing.assert_allclose(covariance @ strengths.precision, np.eye(4), atol=1e-9)


def test_expected_gains_are_those_of_the_labels():
    sure = Posterior(np.array([3.0, 9.0, 6.0, 0.0]), np.eye(4) * 1e9, 0.1, np.ones(1))
    gains = expected_gains(sure, 2) * 2**2  # they come as shares of 2^k
    assert gains[:, 0] == pytest.approx([0, 2**2 - 1, 2**1 - 1, 0])
    assert by_expected_gain(gains)[:2].tolist() == [1, 2]
    left = expected_gains(sure, 2, out=[1]) * 2**2
    assert left[:, 0] == pytest.approx([2**1 - 1, 0, 2**2 - 1, 0])
    assert not expected_gains(sure, 2, out=range(4)).any()


def test_expected_gains_are_the_mean_of_many_draws():
    random = np.random.default_rng(3)
    rows = [
        (*pair, int(random.choice([1, 1, -1, 0])), 0)
        for pair in (sorted(random.choice(20, 2, replace=False).tolist()) for _ in range(60))
    ]
    posterior = fit_bradley_terry(20, Duels.of(rows))
    expected = expected_gains(posterior, 10)[:, 0]
    drawn = expected_gains(posterior, 10, draws=50_000).mean(axis=1)
    top = np.argsort(-drawn)[:10]
    np.testing.assert_allclose(expected[top], drawn[top], rtol=0.1)
    assert expected.sum() == pytest.approx(drawn.sum(), rel=0.02)


def test_the_largest_k_overflows_nothing():
    items = [f"d{number:04d}" for number in range(1200)]
    session = Session(items, 1100, log=[Verdict("d0001", "d0000", Outcome.LEFT)])
    assert len(session.result().top) == 1100
    assert k_ndcg(range(1200), range(1200, 0, -1), 1100) == 1
    with pytest.raises(ArgumentError, match="k is 1000"):
        Session(["a"], 10**400)


def test_telling_pairs_leave_out_what_they_are_told_to():
    strengths = fit_bradley_terry(8, Duels.of([(0, 1, 1, 0), (2, 3, 1, 0), (4, 5, 1, 0)]))
    pairs = most_informative_pairs(strengths, 3, count=10)
    assert len(pairs) == 3  # a pair for each place of the top three
    items = [item for pair in pairs for item in pair]
    assert len(set(items)) == len(items)
    others = most_informative_pairs(strengths, 3, count=1, without=[pairs[0][::-1]], out=[6, 7])
    assert set(others[0]) != set(pairs[0])
    assert not {6, 7} & set(others[0])
    assert most_informative_pairs(strengths, 3, out=range(1, 8)) == []


def careful_session(strengths, habits, budget, **settings):
    names = {f"d{index:02d}": worth for index, worth in enumerate(strengths)}
    judge = SimulatedAssessor(names, habits, random_state=3)
    session = Session(list(names), 5, algorithm="careful", budget=budget, **settings)
    while not session.done:
        pair = session.open_pairs()[0]
        session.add(Verdict(*pair, judge(*pair), f"person {len(session.log)}"))
    return session


def test_a_careful_session_ends_with_its_budget_and_gets_better_with_it():
    queries = np.random.default_rng(5).standard_normal((6, 25))
    mean_hits = {}
    for budget in (20, 150):
        hits = []
        for strengths in queries:
            session = careful_session(strengths, Habits(flips=0.15), budget)
            assert len(session.log) == budget
            assert session.expected_left() == 0
            assert session.result().complete
            best = {f"d{item:02d}" for item in np.argsort(-strengths)[:5]}
            hits.append(len(best & set(session.result().top)))
        mean_hits[budget] = np.mean(hits)
    assert mean_hits[150] > max(mean_hits[20], 4)


def test_a_careful_session_asks_nobody_the_same_pair_twice():
    session = Session(["a", "b", "c"], 2, algorithm="careful", budget=50)
    while pairs := session.open_pairs("ann"):
        session.add(Verdict(*pairs[0], Outcome.LEFT, "ann"))
    asked = sorted(tuple(sorted((entry.left, entry.right))) for entry in session.log)
    assert asked == [("a", "b"), ("a", "c"), ("b", "c")]
    assert session.done  # nobody who judges has anything left to say
    assert session.open_pairs("bob")


def test_a_careful_session_with_overlap_asks_nobody_twice_either():
    session = Session(
        [f"d{n}" for n in range(6)], 2, algorithm="careful", budget=40, overlap=Overlap(1.0, 2)
    )
    for _ in range(12):
        pair = session.open_pairs("ann")[0]
        assert all({*pair} != {entry.left, entry.right} for entry in session.log)
        session.add(Verdict(*pair, Outcome.LEFT, "ann"))


def test_a_careful_session_heeds_grades_marks_and_a_prior():
    items = [f"d{number}" for number in range(8)]
    session = Session(items, 2, algorithm="careful", budget=10)
    for number, item in enumerate(items):
        session.add(Grade(item, min(number, 4), "ann"))
    session.add(Grade("d5", 4, "bob"))
    assert session.result().top[0] in items[4:]
    assert {item for pair in session.open_pairs() for item in pair} & set(items[4:])
    ordered = Session(items, 2, algorithm="careful", ordered=True)
    assert ordered.budget == 24
    ordered.add(Mark("d0"))
    assert "d0" not in ordered.result().top
    assert all("d0" not in pair for pair in ordered.open_pairs())
    assert Session(["a"], 1, algorithm="careful").done


def test_dawid_and_skene_beat_the_majority():
    random = np.random.default_rng(0)
    truth = random.choice([1.0, 0.0, -1.0], 2000)
    skill = [0.95, 0.9, 0.34, 0.34, 0.34]
    votes = np.array(
        [
            np.where(random.random(2000) < one, truth, random.choice([1.0, 0.0, -1.0], 2000))
            for one in skill
        ]
    ).T
    votes[random.random(votes.shape) < 0.3] = np.nan
    consensus = dawid_skene(Ratings.from_table(votes))
    most = [majority([Outcome(int(vote)) for vote in row if not np.isnan(vote)]) for row in votes]
    assert (consensus.values == truth).mean() > (np.array(most) == truth).mean() + 0.05
    assert consensus.reliability.argsort()[::-1][:2].tolist() == [0, 1]
    # Who guesses otherwise says what is true a third of the time anyway.
    expected = np.array(skill) + (1 - np.array(skill)) / 3
    np.testing.assert_allclose(consensus.reliability, expected, atol=0.05)
    np.testing.assert_allclose(consensus.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(consensus.confusion.sum(axis=2), 1)
    with pytest.raises(DataError, match="no votes"):
        dawid_skene(Ratings.from_table(np.full((2, 2), np.nan)))


def test_an_estimate_hears_those_who_know_and_not_those_who_guess():
    """Five judge every pair and three of them guess: that misleads the majority only."""
    ahead = []
    for seed in range(8):
        strengths = np.random.default_rng(seed).standard_normal(12)
        names = {f"d{index:02d}": worth for index, worth in enumerate(strengths)}
        people = [
            SimulatedAssessor(
                names, Habits(flips=flips), name=f"person {number}", random_state=seed
            )
            for number, flips in enumerate([0.02, 0.02, 0.5, 0.5, 0.5])
        ]
        session = Session(list(names), 5, overlap=Overlap(1.0, assessors=5), random_state=seed)
        judge_session(session, people)
        indices = {name: index for index, name in enumerate(names)}
        quality = [
            k_ndcg([indices[item] for item in result.top], strengths, 5)
            for result in (session.estimate(), session.result())
        ]
        ahead.append(quality[0] - quality[1])
    assert np.mean(ahead) > 0.1


def test_an_estimate_makes_more_of_ties_than_the_algorithm_does():
    """People who see no small differences: the estimate hears the ties too."""
    gains = []
    for seed in range(12):
        strengths = np.random.default_rng(seed).standard_normal(30)
        names = {f"d{index:02d}": worth for index, worth in enumerate(strengths)}
        session = Session(list(names), 5)
        judge_session(session, [SimulatedAssessor(names, Habits(ties=0.7), random_state=seed)])
        indices = {name: index for index, name in enumerate(names)}
        quality = [
            k_ndcg([indices[item] for item in result.top], strengths, 5)
            for result in (session.estimate(), session.result())
        ]
        assert session.estimate().complete
        gains.append(quality[0] - quality[1])
    assert np.mean(gains) > 0.05
