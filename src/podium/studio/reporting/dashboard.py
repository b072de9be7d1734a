"""What the dashboard shows: how judgments grew, the pace, agreement in words."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from markupsafe import Markup
from sqlalchemy import BigInteger, Connection, and_, cast, func, select
from sqlalchemy.orm import aliased

from podium.reports.charts import COLORS, Line, line_chart
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.projects.progress import ProjectProgress
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.tables import LogEntry, ProjectQuery

_JUDGMENTS = [kind.value for kind in (Kind.VERDICT, Kind.BAD, Kind.GRADE, Kind.SIDE_BY_SIDE)]

_POINTS = 200
_RECENT = 3600.0
"""The pace is measured over this time, so each of its minutes is kept."""
_STEPS = 60
_LABELS = 12
"""How many of the steps of a chart have a label."""
_SHORTEST_CHART = 120.0
_UNITS = ((7_200.0, 3_600.0, "h"), (120.0, 60.0, "min"), (0.0, 1, "s"))
_LONG_CHART = 129_600.0
"""From this time on, a day and a half, a chart has dates instead of ages."""

Point = list[float]
"""A time in seconds since 1970, and the number of judgments then."""


def judgment_history(connection: Connection, project_id: int, now: float) -> list[Point]:
    """How many of the judgments that count had been made at up to 200 times, and in the last hour.

    The times are those of the log.
    """
    minute = cast(LogEntry.at, BigInteger) // 60
    judged = (
        ProjectQuery.project_id == project_id,
        ProjectQuery.withdrawn.is_(False),
        LogEntry.kind.in_(_JUDGMENTS),
        LogEntry.counts,
        LogEntry.part == 0,
        LogEntry.purpose != Purpose.MODEL.value,
    )
    of_query = ProjectQuery.id == LogEntry.query_id
    judged_at = connection.execute(
        select(minute, func.count()).join(ProjectQuery, of_query).where(*judged).group_by(minute)
    )
    undo, restored = aliased(LogEntry), aliased(LogEntry)
    undone = connection.execute(
        select(minute, func.count(LogEntry.id.distinct()))
        .join(ProjectQuery, of_query)
        .join(undo, and_(undo.query_id == LogEntry.query_id, undo.undoes == LogEntry.position))
        .outerjoin(
            restored,
            and_(restored.query_id == undo.query_id, restored.undoes == undo.position),
        )
        .where(*judged, undo.kind == Kind.UNDO.value, restored.id.is_(None))
        .group_by(minute)
    )
    by_minute = Counter({row[0]: row[1] for row in judged_at})
    by_minute.subtract({row[0]: row[1] for row in undone})
    times = sorted(at for at, count in by_minute.items() if count)
    if not times:
        return []
    counts = list(accumulate(by_minute[at] for at in times))
    begin = 60.0 * times[0]
    at_most = [begin + (now - begin) * step / _POINTS for step in range(_POINTS)]
    minutes = [60.0 * (at + 1) for at in times if 60.0 * (at + 1) >= now - _RECENT]
    chosen = sorted({*(at for at in at_most if at < now - _RECENT), begin, *minutes})
    ends = [60.0 * (at + 1) for at in times]
    totals = [0, *counts]
    return [[at, totals[bisect_right(ends, at)]] for at in chosen]


def history_chart(
    history: Sequence[Point], now: float, judgments: int, translate: Callable[[str], str] = str
) -> Markup | None:
    """A chart of the number of judgments over time; None if there is too little to show."""
    if not history or now - history[0][0] < _SHORTEST_CHART:
        return None
    begin = history[0][0]
    times = [begin + (now - begin) * step / (_STEPS - 1) for step in range(_STEPS)]
    made = [bisect_right(history, at, key=lambda point: point[0]) - 1 for at in times[:-1]]
    values = [*(float(history[index][1]) for index in made), float(judgments)]
    if now - begin < _LONG_CHART:
        labels = [translate(age_label(now - at, now - begin)) for at in times]
    else:  # which `web/page.ts` shows in the reader's zone and language
        labels = [time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(at)) for at in times]
    title, name = translate(Message("Judgments over time")), translate(Message("Judgments"))
    chart = line_chart(title, labels, [Line(name, values, COLORS[0])], width=1040, height=260)
    return Markup(chart)  # noqa: S704  # nosec B704 - numbers and our own words


def age_label(seconds: float, longest: float) -> str:
    """How long ago something was, which is the same in every time zone.

    Args:
        seconds: How long ago.
        longest: The largest age of the chart: all ages have one unit, in which no two of its dozen
            labels are the same.

    Example:
        >>> age_label(0, 90), age_label(90, 90), age_label(7200, 9000), age_label(100_000, 120_000)
        ('now', '-90 s', '-120 min', '-28 h')
    """
    if seconds < 1:
        return Message("now")
    unit, name = next(
        (unit, name) for _, unit, name in _UNITS if longest >= _LABELS * unit or unit == 1
    )
    return f"-{round(seconds / unit)} {name}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> duration(42.4), duration(150), duration(9000), duration(260_000)
        ('42 s', '2 min', '2 h', '72 h')
    """
    unit, name = next((unit, name) for least, unit, name in _UNITS if seconds >= least)
    return f"{round(seconds / unit)} {name}"


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


def leading_coefficient(agreement: JsonObject) -> tuple[float, list[float] | None]:
    """The coefficient that fits a report's answers, and its interval.

    Where answers have an order it is Krippendorff's alpha: to Fleiss' kappa neighbouring grades
    are as different as the best and the worst.
    """
    name = "alpha" if "alpha_interval" in agreement else "fleiss"
    return agreement[name], agreement.get(f"{name}_interval")


def is_low(agreement: JsonObject) -> bool:
    """Whether people agree fairly at best: the whole interval is below 0.4.

    Example:
        >>> is_low({"fleiss": 0.1, "fleiss_interval": [0.0, 0.3]})
        True
        >>> is_low({"fleiss": 0.1, "fleiss_interval": [-0.3, 0.5]})
        False
    """
    value, interval = leading_coefficient(agreement)
    return (value if interval is None else interval[1]) < _LOW


def agreement_words(agreement: JsonObject) -> Message:
    """A report's agreement as a sentence, with the range that its interval allows.

    Example:
        >>> agreement_words({"fleiss": 0.5, "fleiss_interval": [0.3, 0.7]})
        'Agreement beyond chance is moderate; it may be as low as fair or as high as substantial.'
        >>> agreement_words({"fleiss": 0.5, "fleiss_interval": [0.45, 0.55]})
        'Agreement beyond chance is moderate.'
        >>> agreement_words({"fleiss": 0.1, "fleiss_interval": None})
        'Agreement beyond chance is slight.'
        >>> agreement_words({"fleiss": 0.5, "alpha": 0.9, "alpha_interval": None})  # has an order
        'Agreement beyond chance is almost perfect.'
    """
    value, interval = leading_coefficient(agreement)
    word = kappa_word(value)
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


_LOW = 0.4
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
    before = next((point for point in history if point[0] >= now - _RECENT), None)
    before = before or (history[-1] if history else None)
    if before is not None and now - before[0] >= _SHORTEST:
        judgments_per_hour = max(progress.judgments - before[1], 0) / (now - before[0]) * 3600
        if judgments_per_hour > 0 and progress.expected_left:
            end = now + progress.expected_left / judgments_per_hour * 3600
    return Pace(seconds, hours_left, judgments_per_hour, end)
