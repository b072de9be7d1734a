"""SVG charts, drawn without a plotting library.

Charts go into reports that a core install writes, follow the reader's light or dark colors, and
show the value under the pointer; Matplotlib can do neither of the last two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's colors, which people with color-blindness distinguish."""

_WIDE, _NARROW = 900, 380
_LEFT, _RIGHT, _TOP = 48, 14, 12
_MOST_BARS = 600


def difference_chart(
    differences: NDArray[np.float64], query_ids: Sequence[str], *, larger_is_better: bool = True
) -> str:
    """Bars of the differences, largest gain first; very many queries are drawn as every n-th."""
    height, bottom = 220, 28
    order = np.argsort(-differences if larger_is_better else differences, kind="stable")
    shown = order[:: -(-len(order) // _MOST_BARS)]
    ticks = _ticks(min(0.0, float(differences.min())), max(0.0, float(differences.max())))
    low, high = ticks[0], ticks[-1]

    def across(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (height - _TOP - bottom)

    step = (_NARROW - _LEFT - _RIGHT) / len(shown)
    marks = _horizontal_lines(ticks, across, _NARROW)
    for index, query in enumerate(shown):
        value = float(differences[query])
        top, end = sorted((across(value), across(0.0)))
        tone = "var(--up)" if (value > 0) == larger_is_better else "var(--down)"
        marks.append(
            f"<rect x='{_LEFT + index * step:.2f}' y='{top:.2f}' "
            f"width='{max(step * 0.85, 0.6):.2f}' height='{max(end - top, 0.6):.2f}' fill='{tone}'>"
            f"<title>{escape(query_ids[query])}: {value:+.4f}</title></rect>"
        )
    middle = (_LEFT + _NARROW - _RIGHT) / 2
    marks.append(_text(middle, height - 8, f"{len(order)} queries, by difference"))
    return _svg(_NARROW, height, marks, "Differences per query")


def curve_chart(
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    *,
    title: str = "Means over cut-offs",
    axis: str = "cut-off",
) -> str:
    """One line per system: its mean over the cut-offs, or over the steps of another axis."""
    legend = 18 * -(-len(curves) // 4)
    height, bottom = 300 + legend, 46 + legend
    every = [mean for _, means in curves.values() for mean in means]
    cut_offs = next(iter(curves.values()))[0]
    ticks = _ticks(min(every), max(every))
    low, high = ticks[0], ticks[-1]
    span = max(cut_offs[-1] - cut_offs[0], 1)

    def across(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (height - _TOP - bottom)

    def along(cut_off: int) -> float:
        return _LEFT + (cut_off - cut_offs[0]) / span * (_WIDE - _LEFT - _RIGHT)

    marks = _horizontal_lines(ticks, across, _WIDE)
    floor = height - bottom
    labeled = cut_offs if len(cut_offs) <= 10 else cut_offs[:: -(-len(cut_offs) // 10)]
    marks += [_text(along(cut_off), floor + 16, str(cut_off)) for cut_off in labeled]
    marks.append(_text((_LEFT + _WIDE - _RIGHT) / 2, floor + 32, axis))
    for index, (name, (cuts, means)) in enumerate(curves.items()):
        color = COLORS[index % len(COLORS)]
        dash = _DASHED if index >= len(COLORS) else ""
        points = " ".join(
            f"{along(at):.1f},{across(mean):.1f}" for at, mean in zip(cuts, means, strict=True)
        )
        marks.append(
            f"<polyline points='{points}' fill='none' stroke='{color}' stroke-width='2'{dash}>"
            f"<title>{escape(name)}</title></polyline>"
        )
        x, y = _LEFT + (index % 4) * 205, floor + 52 + 18 * (index // 4)
        marks.append(_legend_entry(x, y, name[:26], color, dash))
    return _svg(_WIDE, height, marks, title)


def grid_chart(
    values: NDArray[np.float64],
    rows: Sequence[float],
    columns: Sequence[float],
    row_title: str,
    column_title: str,
) -> str:
    """A grid of differences: green where the first system is ahead, red where it is behind."""
    height, bottom, left = 260, 40, 52
    largest = float(np.max(np.abs(values))) or 1.0
    width = (_NARROW - left - _RIGHT) / len(columns)
    depth = (height - _TOP - bottom) / len(rows)
    marks = []
    for row, base in enumerate(rows):
        for column, steepness in enumerate(columns):
            value = float(values[row, column])
            tone = "var(--up)" if value > 0 else "var(--down)"
            shade = 0.12 + 0.88 * abs(value) / largest if value else 0.0
            marks.append(
                f"<rect x='{left + column * width:.1f}' y='{_TOP + row * depth:.1f}' "
                f"width='{width - 1:.1f}' height='{depth - 1:.1f}' fill='{tone}' "
                f"fill-opacity='{shade:.2f}'><title>{escape(row_title)} {base:g}, "
                f"{escape(column_title)} {steepness:g}: {value:+.4f}</title></rect>"
            )
        if row % 4 == 0:
            marks.append(_text(left - 6, _TOP + (row + 0.5) * depth + 4, f"{base:g}", "end"))
    for column, steepness in enumerate(columns):
        if column % 4 == 0:
            marks.append(
                _text(left + (column + 0.5) * width, height - bottom + 15, f"{steepness:g}")
            )
    marks.append(_text((left + _NARROW - _RIGHT) / 2, height - 8, column_title))
    across = _TOP + (height - _TOP - bottom) / 2
    marks.append(
        f"<text transform='translate(14 {across}) rotate(-90)' text-anchor='middle'>"
        f"{escape(row_title)}</text>"
    )
    return _svg(_NARROW, height, marks, "Differences over gains and discounts")


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        name: In the legend.
        values: A value for each step.
        color: The color of the line.
        low: The lower ends of intervals, or None.
        high: The upper ends.
        dashed: Whether to draw it dashed.
    """

    name: str
    values: Sequence[float]
    color: str
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False


def line_chart(
    title: str,
    steps: Sequence[str],
    lines: Sequence[Line],
    *,
    floor: float = 0.0,
    width: int = 520,
    height: int = 330,
) -> str:
    """Lines over named steps, with bands where intervals are known; each point has a tooltip.

    Args:
        title: The accessible name.
        steps: The label under each step.
        lines: At least one.
        floor: The lower end of the scale; one below 0 is rounded, so that 0 has a line.
        width: The width, to which the page scales it.
        height: The height.
    """
    right, bottom = 16, 66
    values = [value for line in lines for value in (*line.values, *(line.high or ()))]
    top = max(1e-9, float(np.nanmax(values)), floor + 1e-9)
    step = _tick_step(top - floor)
    if floor < 0:
        floor = math.floor(floor / step) * step
    count = math.ceil((top - floor) / step - 1e-9)
    high = floor + count * step

    def across(index: int) -> float:
        return _LEFT + (width - _LEFT - right) * (index + 0.5) / len(steps)

    def up(value: float) -> float:
        share = (min(max(value, floor), high) - floor) / (high - floor)
        return height - bottom - share * (height - _TOP - bottom)

    ticks = [floor + number * step for number in range(count + 1)]
    marks = _horizontal_lines(ticks, up, width)
    every = -(-len(steps) // 12)
    for index in range(0, len(steps), every):
        marks.append(_text(across(index), height - bottom + 17, steps[index]))
    for line in lines:
        marks += _line_marks(line, steps, across, up)
    entry_width = (width - _LEFT) / len(lines)
    for index, line in enumerate(lines):
        dash = _DASHED if line.dashed else ""
        marks.append(
            _legend_entry(_LEFT + index * entry_width, height - 12, line.name, line.color, dash)
        )
    return _svg(width, height, marks, title)


def _line_marks(
    line: Line, steps: Sequence[str], across: Callable[[int], float], up: Callable[[float], float]
) -> list[str]:
    marks = []
    if line.low is not None and line.high is not None:
        upper = [f"{across(at):.1f},{up(value):.1f}" for at, value in enumerate(line.high)]
        lower = [f"{across(at):.1f},{up(value):.1f}" for at, value in enumerate(line.low)]
        points = " ".join((*upper, *lower[::-1]))
        marks.append(f"<polygon points='{points}' fill='{line.color}' fill-opacity='0.16'/>")
    points = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in enumerate(line.values))
    dash = _DASHED if line.dashed else ""
    marks.append(
        f"<polyline points='{points}' fill='none' stroke='{line.color}' stroke-width='2'{dash}/>"
    )
    for at, value in enumerate(line.values):
        ends = ""
        if line.low is not None and line.high is not None:
            ends = f" ({line.low[at]:.3f} to {line.high[at]:.3f})"
        marks.append(
            f"<circle cx='{across(at):.1f}' cy='{up(value):.1f}' r='3' fill='{line.color}'>"
            f"<title>{escape(line.name)}, {escape(steps[at])}: {value:.3f}{ends}</title></circle>"
        )
    return marks


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its length, the interval drawn over its end, and a note beside it."""

    name: str
    value: float
    low: float
    high: float
    note: str = ""


def signed_bar_chart(title: str, bars: Sequence[Bar], *, width: int = _NARROW) -> str:
    """Horizontal bars on both sides of 0, with their intervals where they have any.

    Long names are cut to a third of the width.

    Example:
        >>> "0.5" in signed_bar_chart("Importance", [Bar("bm25", 0.5, 0.4, 0.6, "0.5")])
        True
    """
    row_height, top = 22, 4
    shown = [_shortened(bar.name, width // 21) for bar in bars]
    left = 12 + 7 * max((len(text) for text in shown), default=0)
    right = 14 + 7 * max((len(bar.note) for bar in bars), default=0)
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if math.isfinite(end)]
    lowest, highest = min([0.0, *ends]), max([0.0, *ends])
    scale = (width - left - right) / ((highest - lowest) or 1.0)

    def along(value: float) -> float:
        return left + (value - lowest) * scale

    height = top + row_height * len(bars) + 6
    marks = [
        f"<line x1='{along(0):.1f}' x2='{along(0):.1f}' y1='0' y2='{height}' "
        "stroke='var(--line)' stroke-width='1.2'/>"
    ]
    for row, (bar, text) in enumerate(zip(bars, shown, strict=True)):
        middle = top + row_height * (row + 0.5)
        first, last = sorted((along(0), along(bar.value)))
        tone = "var(--up)" if bar.value >= 0 else "var(--down)"
        marks += [
            _text(left - 8, middle + 4, text, "end"),
            f"<rect x='{first:.1f}' y='{middle - 7}' width='{max(last - first, 0.6):.1f}' "
            f"height='14' fill='{tone}'><title>{escape(bar.name)}: {bar.value:+.6g}</title></rect>",
            _text(width - right + 8, middle + 4, bar.note, "start"),
        ]
        if math.isfinite(bar.low) and bar.low < bar.high:
            marks.append(
                f"<path d='M{along(bar.low):.1f} {middle}H{along(bar.high):.1f}' "
                f"stroke='{COLORS[4]}' stroke-width='3'/>"
            )
    return _svg(width, height, marks, title)


def bar_chart_file(title: str, bars: Sequence[Bar], caption: str = "") -> str:
    """Horizontal bars with their intervals, as the text of an SVG file of its own.

    Example:
        >>> bar_chart_file("Judgments", [Bar("heap", 119, 95, 140, "91 h")]).startswith("<svg")
        True
    """
    row_height, left, right, width, top, bottom = 28, 110, 170, 700, 40, 36
    longest = max((bar.high for bar in bars), default=1.0) or 1.0
    scale = (width - left - right) / longest
    height = top + row_height * len(bars) + bottom
    marks = [
        f"<style>{_FILE_STYLE}</style>",
        f"<rect class='page' width='{width}' height='{height}'/>",
        f"<text class='title' x='12' y='24'>{escape(title)}</text>",
    ]
    for row, bar in enumerate(bars):
        middle = top + row_height * (row + 0.5)
        low, high = (left + scale * value for value in (bar.low, bar.high))
        marks += [
            _text(left - 8, middle + 4, bar.name, "end"),
            f"<rect x='{left}' y='{middle - 9}' width='{scale * bar.value:.1f}' height='18' "
            f"fill='{COLORS[0]}'/>",
            f"<path d='M{low:.1f} {middle}H{high:.1f}' stroke='{COLORS[4]}' stroke-width='3'/>",
            _text(high + 8, middle + 4, bar.note, "start"),
        ]
    marks.append(f"<text class='caption' x='{left}' y='{height - 12}'>{escape(caption)}</text>")
    return _svg(width, height, marks, title, alone=True) + "\n"


_FILE_STYLE = (
    "text { font: 13px system-ui, sans-serif; fill: #1c2330; } .title { font-weight: bold; } "
    ".caption { font-size: 11px; fill: #5d6675; } .page { fill: #fff; } "
    "@media (prefers-color-scheme: dark) { text { fill: #e7eaf0; } "
    ".caption { fill: #a0a9b8; } .page { fill: #14181f; } }"
)
"""For a file of its own, which has no page to take its colors from."""


_DASHED = " stroke-dasharray='6 4'"


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers that enclose a range."""
    if high - low < 1e-12:
        low, high = low - 0.05, high + 0.05
    step = _tick_step(high - low)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [float(number * step) for number in np.arange(first, last + 1)]


def _tick_step(span: float) -> float:
    """A round number of which about four make a span."""
    power = float(10.0 ** np.floor(np.log10(span / 4)))
    factors = (1, 2, 2.5, 5, 10)
    return next(power * factor for factor in factors if power * factor >= span / 4 - 1e-12)


def _horizontal_lines(
    ticks: Sequence[float], across: Callable[[float], float], width: int
) -> list[str]:
    marks = []
    for tick in ticks:
        y = across(tick)
        weight = 1.2 if abs(tick) < 1e-12 else 0.6
        marks.append(
            f"<line x1='{_LEFT}' x2='{width - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}' "
            f"stroke='var(--line)' stroke-width='{weight}'/>"
        )
        marks.append(_text(_LEFT - 6, y + 4, f"{tick:.4g}", "end"))
    return marks


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{escape(words)}</text>"


def _legend_entry(x: float, y: float, name: str, color: str, dash: str) -> str:
    return (
        f"<line x1='{x:.1f}' x2='{x + 20:.1f}' y1='{y - 4}' y2='{y - 4}' stroke='{color}' "
        f"stroke-width='2'{dash}/>" + _text(x + 26, y, name, "start")
    )


def _svg(width: int, height: int, marks: Sequence[str], title: str, *, alone: bool = False) -> str:
    file = f" xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'" if alone else ""
    return (
        f"<svg{file} viewBox='0 0 {width} {height}' role='img' aria-label='{escape(title)}'>"
        f"{''.join(marks)}</svg>"
    )
