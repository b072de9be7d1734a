"""Quality flags: signs that an assessor may be tired or careless.

A flag is a reason to talk to someone, not a verdict on them. Each rule requires enough judgments
and a confidence interval entirely on the wrong side: bad luck on a few pairs flags nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import bdtrc, ndtr

from podium.studio.json_types import JsonObject
from podium.studio.messages import Message

_MIN_CHECKS = 10
_MIN_TIES = 40
_MIN_TIMES = 20
_CARELESS = 0.7
"""Careful assessors pass about nine of ten checks; an upper bound below this is flagged."""
_CHARACTERS_A_SECOND = 200.0
"""Four times as fast as the fastest readers skim."""
_FIRST_LINES = 200
"""How much of a text has to be looked at: people may well decide by its beginning."""
_CHANCE = 1e-4
_SIDES_CHANCE = 1.25e-4
"""The level of a two-sided sign test, which 14 of 14 on one side pass.

Of 1,000 assessors without a preference 0.95 are ever flagged, though each of their judgments is
followed by a test."""


@dataclass(frozen=True)
class AssessorStats:
    """Statistics of an assessor.

    Attributes:
        gold: How many gold pairs they were asked, and how many they got right.
        again: How many pairs they were asked again, and how many they answered the same.
        sides: How often they chose left, neither and right.
        recent: Their latest judgments, oldest first: when, seconds, characters of text.
    """

    gold: tuple[int, int] = (0, 0)
    again: tuple[int, int] = (0, 0)
    sides: tuple[int, int, int] = (0, 0, 0)
    recent: Sequence[Sequence[float]] = ()


def quality_flags(stats: AssessorStats) -> list[Message]:
    """The reasons to talk to an assessor, if any.

    Example:
        >>> quality_flags(AssessorStats(gold=(20, 8)))
        ['Got 8 of 20 gold pairs right; careful assessors get nearly all right.']
        >>> quality_flags(AssessorStats(gold=(4, 1)))  # far too few to decide
        []
    """
    flags = []
    asked, right = stats.gold
    if asked >= _MIN_CHECKS and wilson_upper(right, asked) < _CARELESS:
        flags.append(
            Message(
                "Got %(right)s of %(asked)s gold pairs right; careful assessors get nearly all "
                "right.",
                right=right,
                asked=asked,
            )
        )
    asked, same = stats.again
    if asked >= _MIN_CHECKS and wilson_upper(same, asked) < _CARELESS:
        flags.append(
            Message(
                "Gave the same answer for only %(same)s of %(asked)s repeated pairs.",
                same=same,
                asked=asked,
            )
        )
    flags += _one_sided(*stats.sides)
    flags += _too_fast(stats.recent)
    return flags


def shown_flags(care: JsonObject) -> list[str]:
    """The flags in a report, to be shown; reports of older versions have them in English alone."""
    return [Message.loaded(each) for each in care.get("messages", ())] or care["flags"]


def wilson_interval(hits: int, tries: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    Example:
        >>> [round(end, 2) for end in wilson_interval(5, 10)]
        [0.24, 0.76]
    """
    share = hits / tries
    middle = share + z**2 / (2 * tries)
    swing = z * sqrt(share * (1 - share) / tries + z**2 / (4 * tries**2))
    scale = 1 + z**2 / tries
    return (middle - swing) / scale, (middle + swing) / scale


def wilson_upper(hits: int, tries: int) -> float:
    """The upper end of Wilson's 95 % interval of a share.

    Example:
        >>> round(wilson_upper(5, 10), 2)
        0.76
    """
    return wilson_interval(hits, tries)[1]


def _one_sided(left: int, ties: int, right: int) -> list[Message]:
    """Sides are random, so careful assessors choose each about equally often."""
    strict, most = left + right, max(left, right)
    if most > 0.7 * strict:
        by_chance = 2 * float(bdtrc(most - 1, strict, 0.5))
        if by_chance < _SIDES_CHANCE:
            if left > right:
                return [
                    Message(
                        "Chose left in %(most)s of %(strict)s pairs; sides are drawn at random.",
                        most=most,
                        strict=strict,
                    )
                ]
            return [
                Message(
                    "Chose right in %(most)s of %(strict)s pairs; sides are drawn at random.",
                    most=most,
                    strict=strict,
                )
            ]
    total = strict + ties
    if total >= _MIN_TIES and 1 - wilson_upper(strict, total) > 0.8:
        return [Message("Judged %(ties)s of %(total)s pairs equal.", ties=ties, total=total)]
    return []


def _too_fast(recent: Sequence[Sequence[float]]) -> list[Message]:
    if len(recent) < _MIN_TIMES:
        return []
    seconds = np.array([each[1] for each in recent], float)
    characters = np.minimum([each[2] for each in recent], 2 * _FIRST_LINES)
    needed = np.maximum(characters / _CHARACTERS_A_SECOND, 0.5)
    hasty = int((seconds < needed).sum())
    if 1 - wilson_upper(len(recent) - hasty, len(recent)) > 0.4:
        return [
            Message(
                "%(hasty)s of the latest %(count)s judgments were faster than the texts can be "
                "read.",
                hasty=hasty,
                count=len(recent),
            )
        ]
    if len(recent) < 2 * _MIN_TIMES:
        return []
    earlier, latest = seconds[:-_MIN_TIMES], seconds[-_MIN_TIMES:]
    before, now = float(np.median(earlier)), float(np.median(latest))
    if now < before / 2 and _mann_whitney_p(latest, earlier) < _CHANCE:
        return [
            Message(
                "Has become much faster: %(now)s s per judgment recently, %(before)s s before.",
                now=round(now, 1),
                before=round(before, 1),
            )
        ]
    return []


def _mann_whitney_p(one: np.ndarray, other: np.ndarray) -> float:
    """How likely values are so much below others by chance (Mann and Whitney, normal form)."""
    m, n = len(one), len(other)
    wins = (one[:, None] < other).sum() + 0.5 * (one[:, None] == other).sum()
    spread = sqrt(m * n * (m + n + 1) / 12)
    return float(1 - ndtr((wins - m * n / 2 - 0.5) / spread))
