"""Who is flagged, and who is not."""

from __future__ import annotations

import random

import numpy as np

from podium.studio.projects.progress import ProjectProgress
from podium.studio.reporting.dashboard import pace_of
from podium.studio.reporting.flags import AssessorStats, quality_flags


def times(*seconds, characters=400.0):
    return [[float(position), each, characters] for position, each in enumerate(seconds)]


def test_few_judgments_flag_nobody():
    for seconds in (0.1, 100.0):
        recent = times(*[seconds] * 19)
        assert quality_flags(AssessorStats((9, 0), (9, 0), (13, 0, 0), recent)) == []
    assert quality_flags(AssessorStats(sides=(0, 39, 0))) == []


def test_careful_people_are_hardly_ever_flagged():
    rng = random.Random(1)
    flagged = 0
    for _ in range(500):
        gold = sum(rng.random() < 0.9 for _ in range(20))
        again = sum(rng.random() < 0.85 for _ in range(20))
        left = sum(rng.random() < 0.5 for _ in range(80))
        recent = times(*[rng.lognormvariate(2.5, 0.6) for _ in range(60)])
        flagged += bool(
            quality_flags(AssessorStats((20, gold), (20, again), (left, 20, 80 - left), recent))
        )
    assert flagged <= 5


def test_one_of_a_thousand_without_a_preference_is_ever_flagged_for_a_side():
    """Looked at after each judgment: the exact odds of a fair coin, and a simulation of them."""
    odds, flagged = {0: 1.0}, 0.0
    rules = {}
    for judged in range(1, 401):
        following: dict[int, float] = {}
        for left, chance in odds.items():
            for now in (left, left + 1):
                following[now] = following.get(now, 0.0) + chance / 2
        rules[judged] = {
            left
            for left in following
            if max(left, judged - left) > 0.7 * judged
            and quality_flags(AssessorStats(sides=(left, 0, judged - left)))
        }
        flagged += sum(following.pop(left) for left in rules[judged])
        odds = following
    assert 0.0008 < flagged < 0.001
    people = 20_000
    lefts = np.random.default_rng(1).integers(0, 2, (people, 400)).cumsum(axis=1)
    ever = np.zeros(people, bool)
    for judged, wrong in rules.items():
        ever |= np.isin(lefts[:, judged - 1], list(wrong))
    assert 5 <= ever.sum() <= 35  # 18.9 expected


def test_fourteen_of_fourteen_on_one_side_are_flagged():
    (flag,) = quality_flags(AssessorStats(sides=(14, 0, 0)))
    assert flag == "Chose left in 14 of 14 pairs; sides are drawn at random."
    (flag,) = quality_flags(AssessorStats(sides=(0, 5, 14)))
    assert "Chose right in 14 of 14" in flag


def test_careless_people_are():
    (flag,) = quality_flags(AssessorStats(gold=(20, 8)))
    assert "8 of 20 gold pairs" in flag
    (flag,) = quality_flags(AssessorStats(again=(30, 15)))
    assert "15 of 30 repeated pairs" in flag
    (flag,) = quality_flags(AssessorStats(sides=(45, 3, 5)))
    assert "Chose left in 45 of 50" in flag
    (flag,) = quality_flags(AssessorStats(sides=(1, 99, 1)))
    assert "Judged 99 of 101 pairs equal" in flag
    (flag,) = quality_flags(AssessorStats(recent=times(*[0.8] * 30)))
    assert "faster than the texts" in flag
    assert (
        quality_flags(AssessorStats(recent=times(*[0.8] * 30, characters=40.0))) == []
    )  # they are short


def test_who_has_become_much_quicker():
    steady = [9.0, 12.0, 15.0, 11.0, 10.0, 14.0, 13.0, 8.0] * 5
    hurried = [4.2, 4.4, 4.8, 4.1, 4.6] * 4
    (flag,) = quality_flags(AssessorStats(recent=times(*steady, *hurried)))
    assert "much faster: 4.4 s" in flag
    assert quality_flags(AssessorStats(recent=times(*steady, *steady[:20]))) == []


def test_the_pace_of_a_project():
    standing = ProjectProgress(10, 2, 120, 60.0)
    assert pace_of(standing, {}, 0.0).end is None
    history = [[0.0, 0], [5000.0, 90], [8590.0, 119]]
    report = {"times": [{"judgments": 100, "seconds": 500.0}], "history": history}
    pace = pace_of(standing, report, 8600.0)  # the last hour begins with the second count
    assert pace.judgments_per_hour == (120 - 90) / 3600 * 3600
    assert pace.end == 8600.0 + 60 / 30 * 3600
    assert pace.hours_left == 60 * 5 / 3600
    assert pace_of(standing, report | {"history": [[8599.0, 1]]}, 8600.0).end is None
