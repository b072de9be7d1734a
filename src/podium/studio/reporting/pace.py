"""The pace of a project, and its estimated end."""

from __future__ import annotations

from dataclasses import dataclass

from podium.studio.json_types import JsonObject
from podium.studio.projects.progress import ProjectProgress

_WINDOW = 3600.0
_SHORTEST = 120.0
"""A pace over less time than this is mostly chance."""


@dataclass(frozen=True)
class Pace:
    """The pace of a project.

    Attributes:
        seconds: What a judgment takes on average; None if there is none.
        hours_left: The work that is left, in hours of one person; None if that cannot be told.
        an_hour: How many judgments an hour came in lately; None if that cannot be told.
        end: When it will be done at that pace, in seconds since 1970; None if that cannot be told.
    """

    seconds: float | None
    hours_left: float | None
    an_hour: float | None
    end: float | None


def pace_of(progress: ProjectProgress, report: JsonObject, now: float) -> Pace:
    """The pace of a project, from its progress and report.

    Example:
        >>> report = {"times": [{"judgments": 10, "seconds": 60.0}], "history": [[0.0, 0]]}
        >>> pace_of(ProjectProgress(5, 0, 10, 20.0), report, now=1800.0)
        Pace(seconds=6.0, hours_left=0.03333333333333333, an_hour=20.0, end=5400.0)
    """
    times = report.get("times", [])
    judgments = sum(each["judgments"] for each in times)
    seconds = sum(each["seconds"] for each in times) / judgments if judgments else None
    hours_left = None if seconds is None else progress.expected_left * seconds / 3600
    an_hour = end = None
    history = report.get("history", [])
    # The oldest count of the last hour, or the last one before it.
    before = next((point for point in history if point[0] >= now - _WINDOW), None)
    before = before or (history[-1] if history else None)
    if before is not None and now - before[0] >= _SHORTEST:
        an_hour = max(progress.judgments - before[1], 0) / (now - before[0]) * 3600
        if an_hour > 0:
            end = now + progress.expected_left / an_hour * 3600
    return Pace(seconds, hours_left, an_hour, end)
