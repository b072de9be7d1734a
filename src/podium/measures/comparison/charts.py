"""The three plots of a comparison, drawn as SVG without a plotting library.

They go into reports that a core install writes, follow the reader's light or dark colours, and
show the query under the pointer; Matplotlib can do neither of the last two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's colours, which people with colour-blindness tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_WIDE, _NARROW = 900, 380
_LEFT, _RIGHT, _TOP = 48, 14, 12
_MOST_BARS = 600


def difference_chart(differences: NDArray[np.float64], query_ids: Sequence[str]) -> str:
    """Bars of the differences, largest gain first; very many queries are drawn as every n-th."""
    height, bottom = 220, 28
    order = np.argsort(-differences, kind="stable")
    shown = order[:: -(-len(order) // _MOST_BARS)]
    ticks = _ticks(min(0.0, float(differences.min())), max(0.0, float(differences.max())))
    low, high = ticks[0], ticks[-1]

    def across(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (height - _TOP - bottom)

    step = (_NARROW - _LEFT - _RIGHT) / len(shown)
    marks = _horizontal_lines(ticks, across, _NARROW)
    for place, query in enumerate(shown):
        value = float(differences[query])
        top, end = sorted((across(value), across(0.0)))
        tone = "var(--up)" if value > 0 else "var(--down)"
        marks.append(
            f"<rect x='{_LEFT + place * step:.2f}' y='{top:.2f}' "
            f"width='{max(step * 0.85, 0.6):.2f}' height='{max(end - top, 0.6):.2f}' fill='{tone}'>"
            f"<title>{escape(query_ids[query])}: {value:+.4f}</title></rect>"
        )
    middle = (_LEFT + _NARROW - _RIGHT) / 2
    marks.append(_text(middle, height - 8, f"{len(order)} queries, by difference"))
    return _svg(_NARROW, height, marks, "Differences per query")


def curve_chart(curves: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> str:
    """A line a system: its mean over the cut-offs."""
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
    wanted = cut_offs if len(cut_offs) <= 10 else cut_offs[:: -(-len(cut_offs) // 10)]
    marks += [_text(along(cut_off), floor + 16, str(cut_off)) for cut_off in wanted]
    marks.append(_text((_LEFT + _WIDE - _RIGHT) / 2, floor + 32, "cut-off"))
    for place, (name, (places, means)) in enumerate(curves.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        dash = " stroke-dasharray='6 4'" if place >= len(_COLOURS) else ""
        points = " ".join(
            f"{along(at):.1f},{across(mean):.1f}" for at, mean in zip(places, means, strict=True)
        )
        marks.append(
            f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'{dash}>"
            f"<title>{escape(name)}</title></polyline>"
        )
        x, y = _LEFT + (place % 4) * 205, floor + 52 + 18 * (place // 4)
        marks.append(
            f"<line x1='{x}' y1='{y - 4}' x2='{x + 18}' y2='{y - 4}' stroke='{colour}' "
            f"stroke-width='2'{dash}/>" + _text(x + 24, y, name[:26], "start")
        )
    return _svg(_WIDE, height, marks, "Means over cut-offs")


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


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers that hold a range between them."""
    if high - low < 1e-12:
        low, high = low - 0.05, high + 0.05
    rough = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [float(number * step) for number in np.arange(first, last + 1)]


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


def _svg(width: int, height: int, marks: Sequence[str], title: str) -> str:
    return (
        f"<svg viewBox='0 0 {width} {height}' role='img' aria-label='{escape(title)}'>"
        f"{''.join(marks)}</svg>"
    )
