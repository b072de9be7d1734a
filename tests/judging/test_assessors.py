"""Simulated assessors, what they are calibrated from, grading, and planning."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from podium.data import read_pairs
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, DataError, PodiumError
from podium.judging import (
    HABITS,
    Grade,
    Mark,
    Outcome,
    Overlap,
    Session,
    SessionFile,
    SideBySide,
    SimulatedAssessor,
    Verdict,
    judge_session,
)
from podium.judging.algorithms import ALGORITHMS
from podium.judging.assessors.calibrate import calibrate
from podium.judging.assessors.simulated import Habits
from podium.judging.entries import Undo
from podium.judging.grading import GradingSession, side_by_side_totals
from podium.judging.workload import estimate_workload
from tests.data.shared_files import shared

PERFECT, REAL, CROWD = HABITS["perfect"], HABITS["real"], HABITS["crowd"]
LEFT, TIE, RIGHT = Outcome.LEFT, Outcome.TIE, Outcome.RIGHT


def shares(habits, difference, count=4000, **settings):
    """How often an assessor says left, tie and right of items that are so far apart."""
    assessor = SimulatedAssessor([difference, 0.0], habits, **settings)
    outcomes = [assessor(0, 1) for _ in range(count)]
    return np.array([outcomes.count(outcome) for outcome in (LEFT, TIE, RIGHT)]) / count


def logistic(value):
    return 1 / (1 + np.exp(-value))


def test_a_perfect_assessor():
    assessor = SimulatedAssessor({"a": 1.0, "b": 0.0, "c": 1.0}, PERFECT)
    assert (assessor("a", "b"), assessor("b", "a"), assessor("a", "c")) == (LEFT, RIGHT, TIE)


@pytest.mark.parametrize("difference", [-1.0, 0.0, 0.4])
@pytest.mark.parametrize("habits", [REAL, CROWD, HABITS["tie-prone"], HABITS["sided"]])
def test_verdicts_follow_the_law(habits, difference):
    seems, noise = difference + habits.side, habits.noise
    left = logistic((seems - habits.ties) / noise)
    right = logistic((-seems - habits.ties) / noise)
    expected = [left, 1 - left - right, right]
    np.testing.assert_allclose(shares(habits, difference), expected, atol=4 * 0.5 / np.sqrt(4000))


def test_flips_do_not_care_for_distance():
    np.testing.assert_allclose(shares(Habits(flips=0.25), 9.0), [0.75, 0, 0.25], atol=0.03)


def test_the_tired_make_more_mistakes():
    assessor = SimulatedAssessor([0.5, 0.0], Habits(noise=0.2, tiring=5.0))
    right = [assessor(0, 1) is LEFT for _ in range(2000)]
    assert np.mean(right[:100]) > np.mean(right[-1000:]) + 0.2


def test_the_same_seed_and_name_say_the_same():
    def verdicts(name, seed):
        assessor = SimulatedAssessor([0.5, 0.0], CROWD, name=name, random_state=seed)
        return [assessor(0, 1) for _ in range(50)]

    assert verdicts("ann", 1) == verdicts("ann", 1)
    assert verdicts("ann", 1) != verdicts("bob", 1)
    assert verdicts("ann", 1) != verdicts("ann", 2)


def test_grades():
    relevance = list(range(100))
    assert [SimulatedAssessor(relevance, PERFECT).grade(item) for item in relevance] == [
        item // 20 for item in relevance
    ]
    wrong = SimulatedAssessor(relevance, Habits(flips=0.25))
    rate = np.mean([wrong.grade(item) != item // 20 for item in relevance * 40])
    assert rate == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("habits", [{"noise": -1.0}, {"flips": 1.5}])
def test_habits_that_cannot_be(habits):
    with pytest.raises(ArgumentError):
        Habits(**habits)


def test_calibration_finds_the_habits_again():
    random = np.random.default_rng(0)
    rows = []
    habits = Habits(noise=0.4, ties=0.6, side=0.2)
    for query in range(30):
        judge = SimulatedAssessor(random.standard_normal(12).tolist(), habits, random_state=query)
        rows += [
            (f"q{query}", f"d{left}", f"d{right}", int(judge(left, right)))
            for left in range(12)
            for right in range(12)
            if left != right
        ]
    estimated = calibrate(Preferences.from_columns(*zip(*rows, strict=True))).habits()
    assert estimated.noise == pytest.approx(0.4, rel=0.1)
    assert estimated.ties == pytest.approx(0.6, rel=0.1)
    assert estimated.side == pytest.approx(0.2, rel=0.15)


@pytest.mark.slow
def test_the_real_habits_are_those_of_the_real_data():
    rows = []
    with gzip.open(shared("preferences/image-search/image_pairs_annotation.gz"), "rt") as lines:
        next(lines)
        for line in lines:
            query, pair, *tags = line.rstrip("\n").split("\t")
            rows += [(query, *pair.split(","), -int(np.sign(float(tag)))) for tag in tags]
    habits = calibrate(Preferences.from_columns(*zip(*rows, strict=True))).habits()
    assert (round(habits.noise, 2), round(habits.ties, 2), round(habits.side, 2)) == (
        REAL.noise,
        REAL.ties,
        REAL.side,
    )
    crowd = calibrate(read_pairs(shared("preferences/trec-dl21/human.pref"))).habits()
    assert (round(crowd.noise, 2), round(crowd.side, 2)) == (
        CROWD.noise,
        CROWD.side,
    )
    assert crowd.ties == pytest.approx(0, abs=0.001)


def test_a_panel_judges_a_session_and_its_journal(tmp_path):
    relevance = {f"d{number}": float(number) for number in range(12)}
    panel = [SimulatedAssessor(relevance, PERFECT, name=name) for name in ("ann", "bob", "cem")]
    session = Session(list(relevance), 4, overlap=Overlap(0.5, assessors=3))
    assert judge_session(session, panel, max_judgments=5) == 5
    assert len(session.log) == 5
    done = judge_session(session, panel, max_workers=4)
    assert session.done
    assert len(session.log) == 5 + done
    assert session.result().top == ("d11", "d10", "d9", "d8")
    with SessionFile.create(tmp_path / "s.jsonl", Session(list(relevance), 4)) as journal:
        judge_session(journal, panel[:1])
    log = SessionFile.read(tmp_path / "s.jsonl").log
    assert Session(list(relevance), 4, log=log).done
    assert all(entry.assessor == "ann" and entry.seconds > 0 for entry in log)


def test_a_panel_too_small_for_the_overlap_stops():
    session = Session(["a", "b"], 1, overlap=Overlap(1.0, assessors=3))
    one = SimulatedAssessor({"a": 1.0, "b": 0.0}, PERFECT)
    assert judge_session(session, [one]) == 1
    assert not session.done


def test_grading_sessions():
    session = GradingSession(["a", "b", "c"], people=2)
    session.add(Grade("a", 4, "ann"))
    session.add(Grade("a", 1, "bob"))
    session.add(Grade("b", 3, "ann"))
    session.add(Grade("b", 2, "ann"))  # a change of mind
    session.add(Mark("c", "ann"))
    assert session.open_items() == ["b", "c"]
    assert session.open_items("ann") == []
    assert session.open_items("bob") == ["b", "c"]
    assert session.labels().tolist() == [(4 + 1) / 2, 2, 0]
    session.add(Undo(1))
    assert session.labels().tolist() == [4, 2, 0]
    assert not session.done
    again = GradingSession(session.items, people=2, log=session.log)
    assert again.grades() == session.grades()
    for item in ("a", "b", "c"):
        again.add(Grade(item, 0, "cem"))
    assert again.done
    with pytest.raises(DataError, match="not an item"):
        session.add(Grade("x", 1))
    with pytest.raises(DataError, match="repeated"):
        GradingSession(["a", "a"])


def test_side_by_side_verdicts_are_counted_the_right_way_round():
    log = [SideBySide("x", "y", 2), SideBySide("y", "x", 2), SideBySide("x", "y", 0), Undo(2)]
    assert side_by_side_totals(log) == {("x", "y"): [1, 0, 0, 0, 1]}


def test_a_plan_counts_what_a_session_would():
    work = estimate_workload(500, 30, k=5, habits=PERFECT, runs=40)
    counts = []
    for seed in range(40):
        relevance = np.random.default_rng(seed).standard_normal(30)
        session = Session([str(item) for item in range(30)], 5, random_state=seed)
        named = {str(item): worth for item, worth in enumerate(relevance)}
        counts.append(judge_session(session, [SimulatedAssessor(named, PERFECT)]))
    assert work.per_query == pytest.approx(np.mean(counts), rel=0.05)
    assert work.total == 500 * work.per_query
    assert work.hours == pytest.approx(work.total * 5.51 / 3600)
    low, high = work.hours_within(0.9)
    assert low < work.hours < high
    assert work.people(hours_each=2) == int(np.ceil(work.hours / 2))
    twice = replace(work, overlap=Overlap(0.2, assessors=3))
    assert twice.total == pytest.approx(work.total * (1 + 0.2 * 2))


@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"tournament"}))
def test_a_prior_saves_work(name):
    with_prior = estimate_workload(1, 40, k=5, algorithm=name, prior=0.97, habits=PERFECT, runs=30)
    without = estimate_workload(1, 40, k=5, algorithm=name, habits=PERFECT, runs=30)
    assert with_prior.per_query < without.per_query


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"prior": 2.0}, "correlation"),
        ({"runs": 0}, "at least 1"),
        ({"algorithm": "guess"}, "no algorithm"),
    ],
)
def test_plans_that_cannot_be(arguments, problem):
    with pytest.raises(PodiumError, match=problem):
        estimate_workload(10, 20, **arguments)
    with pytest.raises(ArgumentError, match="too few"):
        estimate_workload(1, 5, k=1, runs=1).people(0)


def test_verdicts_say_who_and_how_long():
    ann = SimulatedAssessor({"a": 1.0, "b": 0.0}, replace(PERFECT, seconds=8.0), name="ann")
    pair = Session(["a", "b"], 1).open_pairs()[0]
    verdicts = [ann.verdict(pair, at=7.0) for _ in range(300)]
    assert all(
        isinstance(one, Verdict) and one.assessor == "ann" and one.at == 7 for one in verdicts
    )
    assert np.mean([one.seconds for one in verdicts]) == pytest.approx(8.0, rel=0.15)
