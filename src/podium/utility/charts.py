"""Lines with intervals as SVG, for the report: they follow the reader's light or dark colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

_WIDTH, _HEIGHT = 520, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 16, 14, 66

LEARNED, FIRST, SECOND = "#0072b2", "#d55e00", "#009e73"
"""Okabe and Ito's colours, which people with colour-blindness tell apart."""


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        name: In the legend.
        values: A value for each step.
        colour: Of the line.
        low: The lower ends of intervals, or None.
        high: The upper ends.
        dashed: Whether to draw it dashed.
    """

    name: str
    values: Sequence[float]
    colour: str
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False


def line_chart(
    title: str, steps: Sequence[str], lines: Sequence[Line], *, floor: float = 0.0
) -> str:
    """Lines over named steps, with bands where intervals are known; each point can be read off.

    Args:
        title: For those who cannot see it.
        steps: What stands under each step.
        lines: At least one.
        floor: Where the scale begins.
    """
    every = [value for line in lines for value in (*line.values, *(line.high or ()))]
    top = max(1e-9, float(np.nanmax(every)), floor + 1e-9)
    tick = _tick(top - floor)
    high = floor + tick * math.ceil((top - floor) / tick - 1e-9)

    def across(place: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / len(steps)

    def up(value: float) -> float:
        share = (min(max(value, floor), high) - floor) / (high - floor)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    marks = []
    for number in range(round((high - floor) / tick) + 1):
        value = floor + number * tick
        marks.append(
            f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{up(value):.1f}' y2='{up(value):.1f}' "
            f"stroke='var(--line)' stroke-width='{1.2 if not number else 0.6}'/>"
            + _text(_LEFT - 6, up(value) + 4, f"{value:.4g}", "end")
        )
    every_so_many = -(-len(steps) // 12)
    for place, name in enumerate(steps):
        if place % every_so_many == 0:
            marks.append(_text(across(place), _HEIGHT - _BOTTOM + 17, name))
    for line in lines:
        marks += _marks(line, steps, across, up)
    marks += _legend(lines)
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' aria-label='{escape(title)}'>"
        f"{''.join(marks)}</svg>"
    )


def _marks(
    line: Line, steps: Sequence[str], across: Callable[[int], float], up: Callable[[float], float]
) -> list[str]:
    marks = []
    if line.low is not None and line.high is not None:
        there = [f"{across(at):.1f},{up(value):.1f}" for at, value in enumerate(line.high)]
        back = [f"{across(at):.1f},{up(value):.1f}" for at, value in enumerate(line.low)]
        points = " ".join((*there, *back[::-1]))
        marks.append(f"<polygon points='{points}' fill='{line.colour}' fill-opacity='0.16'/>")
    points = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in enumerate(line.values))
    dash = " stroke-dasharray='6 4'" if line.dashed else ""
    marks.append(
        f"<polyline points='{points}' fill='none' stroke='{line.colour}' stroke-width='2'{dash}/>"
    )
    for at, value in enumerate(line.values):
        ends = ""
        if line.low is not None and line.high is not None:
            ends = f" ({line.low[at]:.3f} to {line.high[at]:.3f})"
        marks.append(
            f"<circle cx='{across(at):.1f}' cy='{up(value):.1f}' r='3' fill='{line.colour}'>"
            f"<title>{escape(line.name)}, {escape(steps[at])}: {value:.3f}{ends}</title></circle>"
        )
    return marks


def _legend(lines: Sequence[Line]) -> list[str]:
    marks = []
    room = (_WIDTH - _LEFT) / len(lines)
    for place, line in enumerate(lines):
        x, y = _LEFT + place * room, _HEIGHT - 12
        dash = " stroke-dasharray='6 4'" if line.dashed else ""
        marks.append(
            f"<line x1='{x:.1f}' x2='{x + 20:.1f}' y1='{y - 4}' y2='{y - 4}' "
            f"stroke='{line.colour}' stroke-width='2'{dash}/>"
            + _text(x + 26, y, line.name, "start")
        )
    return marks


def _tick(span: float) -> float:
    """About five round steps."""
    power = float(10.0 ** np.floor(np.log10(span / 4)))
    return next(
        power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= span / 4 - 1e-12
    )


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{escape(words)}</text>"
