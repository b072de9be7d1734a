"""What the dashboard shows: how judgments grew, the pace, agreement in words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from podium.reports.charts import COLORS, Line, line_chart
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.projects.progress import ProjectProgress

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
        # Every second one, but never the first: it is when the project began.
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


_WORDS = (
    (0.0, Message("poor")),
    (0.2, Message("slight")),
    (0.4, Message("fair")),
    (0.6, Message("moderate")),
    (0.8, Message("substantial")),
)
_MOST = Message("almost perfect")


def kappa_word(kappa: float) -> Message:
    """The word for a kappa.

    Example:
        >>> kappa_word(-0.1), kappa_word(0.5), kappa_word(0.9)
        ('poor', 'moderate', 'almost perfect')
    """
    return next((word for most, word in _WORDS if kappa < most), _MOST)


def agreement_words(agreement: JsonObject) -> Message:
    """A report's agreement as a sentence, with the range that its interval allows.

    Example:
        >>> agreement_words({"fleiss": 0.5, "fleiss_interval": [0.3, 0.7]})
        'Agreement beyond chance is moderate; it may be as low as fair or as high as substantial.'
        >>> agreement_words({"fleiss": 0.5, "fleiss_interval": [0.45, 0.55]})
        'Agreement beyond chance is moderate.'
        >>> agreement_words({"fleiss": 0.1, "fleiss_interval": None})
        'Agreement beyond chance is slight.'
    """
    word = kappa_word(agreement["fleiss"])
    interval = agreement.get("fleiss_interval")
    low, high = (word, word) if interval is None else map(kappa_word, interval)
    if low != word and high != word:
        return Message(
            "Agreement beyond chance is %(word)s; it may be as low as %(low)s or as high as "
            "%(high)s.",
            word=word,
            low=low,
            high=high,
        )
    if low != word:
        return Message(
            "Agreement beyond chance is %(word)s; it may be as low as %(low)s.", word=word, low=low
        )
    if high != word:
        return Message(
            "Agreement beyond chance is %(word)s; it may be as high as %(high)s.",
            word=word,
            high=high,
        )
    return Message("Agreement beyond chance is %(word)s.", word=word)


_WINDOW = 3600.0
_SHORTEST = 120.0
"""A pace over less time than this is mostly chance."""


@dataclass(frozen=True)
class Pace:
    """The pace of a project.

    Attributes:
        seconds: What a judgment takes on average; None if there is none.
        hours_left: The work that is left, in hours of one person; None if unknown.
        judgments_per_hour: How many judgments per hour came in lately; None if unknown.
        end: When it will be done at that pace, in seconds since 1970; None if unknown.
    """

    seconds: float | None
    hours_left: float | None
    judgments_per_hour: float | None
    end: float | None


def pace_of(progress: ProjectProgress, report: JsonObject, now: float) -> Pace:
    """The pace of a project, from its progress and report.

    Example:
        >>> report = {"times": [{"judgments": 10, "seconds": 60.0}], "history": [[0.0, 0]]}
        >>> pace_of(ProjectProgress(5, 0, 10, 20.0), report, now=1800.0)
        Pace(seconds=6.0, hours_left=0.03333333333333333, judgments_per_hour=20.0, end=5400.0)
    """
    times = report.get("times", [])
    judgments = sum(each["judgments"] for each in times)
    seconds = sum(each["seconds"] for each in times) / judgments if judgments else None
    hours_left = None if seconds is None else progress.expected_left * seconds / 3600
    judgments_per_hour = end = None
    history = report.get("history", [])
    # The oldest count of the last hour, or the last one before it.
    before = next((point for point in history if point[0] >= now - _WINDOW), None)
    before = before or (history[-1] if history else None)
    if before is not None and now - before[0] >= _SHORTEST:
        judgments_per_hour = max(progress.judgments - before[1], 0) / (now - before[0]) * 3600
        if judgments_per_hour > 0:
            end = now + progress.expected_left / judgments_per_hour * 3600
    return Pace(seconds, hours_left, judgments_per_hour, end)
