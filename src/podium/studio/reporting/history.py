"""How a project's number of judgments grew: few points, from its beginning until now."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from markupsafe import Markup

from podium.reports.charts import COLORS, Line, line_chart
from podium.studio.messages import Message

_POINTS = 200
_POINT_EVERY = 60.0
_RECENT = 3600.0
"""The pace is measured over this time, so none of its points is dropped."""
_STEPS = 24
_UNITS = ((172_800.0, 86_400.0, "d"), (7_200.0, 3_600.0, "h"), (0.0, 60.0, "min"))

Point = list[float]
"""A time in seconds since 1970, and the number of judgments then."""


def extended_history(history: Sequence[Point], now: float, judgments: int) -> list[Point]:
    """The history with the present, if the last point is old enough; older points are thinned out.

    Example:
        >>> extended_history([[0.0, 1]], 30.0, 2), extended_history([[0.0, 1]], 60.0, 2)
        ([[0.0, 1]], [[0.0, 1], [60.0, 2]])
    """
    points = list(history)
    if not points or now - points[-1][0] >= _POINT_EVERY:
        points.append([now, judgments])
    while len(points) > _POINTS:
        older = bisect_right(points, now - _RECENT, key=lambda point: point[0])
        if older <= 2:
            return points[-_POINTS:]
        # Every second one, but never the first: it tells when the project began.
        points = points[:older:2] + points[older:]
    return points


def history_chart(
    history: Sequence[Point], now: float, judgments: int, translate: Callable[[str], str] = str
) -> Markup | None:
    """A chart of the number of judgments over time; None if there is too little to show."""
    points = [*history, [now, judgments]]
    begin = points[0][0]
    if len(points) < 3 or now - begin < _POINT_EVERY:
        return None
    times = [begin + (now - begin) * step / (_STEPS - 1) for step in range(_STEPS)]
    values = [_value_at(points, time) for time in times]
    labels = [translate(age_label(now - time)) for time in times]
    title, name = translate(Message("Judgments over time")), translate(Message("Judgments"))
    chart = line_chart(title, labels, [Line(name, values, COLORS[0])])
    return Markup(chart)  # noqa: S704  # nosec B704 - numbers and our own words


def age_label(seconds: float) -> str:
    """How long ago something was, which is the same in every time zone.

    Example:
        >>> age_label(0), age_label(90), age_label(7200), age_label(260_000)
        ('now', '-2 min', '-2 h', '-3 d')
    """
    if seconds < 30:
        return Message("now")
    unit, name = next((unit, name) for least, unit, name in _UNITS if seconds >= least)
    return f"-{round(seconds / unit)} {name}"


def _value_at(points: Sequence[Point], time: float) -> float:
    """The number of judgments at a time, along the line between two points."""
    after = bisect_right(points, time, key=lambda point: point[0])
    if after == 0 or after == len(points):
        return float(points[min(after, len(points) - 1)][1])
    (start, low), (end, high) = points[after - 1], points[after]
    return float(low + (high - low) * (time - start) / (end - start))
