"""The history of a project's judgments: it covers all of its time with few points."""

from __future__ import annotations

import re

from podium.studio.reporting.dashboard import age_label, extended_history, history_chart


def grown(minutes):
    """The history of a project that gets one judgment a minute."""
    history = []
    for minute in range(minutes):
        history = extended_history(history, 60.0 * minute, minute)
    return history


def test_the_beginning_and_the_last_hour_stay():
    history = grown(1000)
    assert len(history) <= 200
    assert history[0] == [0.0, 0]
    last_hour = [point for point in history if point[0] >= 60.0 * 999 - 3600]
    assert last_hour == [[60.0 * minute, minute] for minute in range(939, 1000)]
    # All points are on the line that the judgments make, in order.
    assert all(time == 60 * count for time, count in history)
    assert history == sorted(history)


def test_nothing_is_added_within_a_minute():
    assert extended_history([[0.0, 1], [60.0, 5]], 119.0, 9) == [[0.0, 1], [60.0, 5]]


def test_the_chart_interpolates_between_points():
    chart = str(history_chart([[0.0, 0], [2300.0, 46]], 2300.0, 46))
    values = [float(value) for value in re.findall(r"Judgments, [^:]+: ([\d.]+)", chart)]
    assert values == [2.0 * step for step in range(24)]
    assert "now" in chart
    assert age_label(2300.0) == "-38 min"


def test_too_little_for_a_chart():
    assert history_chart([[0.0, 0]], 30.0, 3) is None
    assert history_chart([[0.0, 0]], 3000.0, 3) is None
