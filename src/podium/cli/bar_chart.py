"""A bar chart as SVG, for plans: no plotting library is needed to read or write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_ROW, _LEFT, _RIGHT, _WIDTH, _TOP, _BOTTOM = 28, 110, 170, 700, 40, 36


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its length, the range drawn over its end, and what is written beside it."""

    name: str
    value: float
    low: float
    high: float
    note: str = ""


def bar_chart(title: str, bars: Sequence[Bar], caption: str = "") -> str:
    """Horizontal bars with their ranges, as the text of an SVG file.

    Example:
        >>> bar_chart("Judgments", [Bar("heap", 119, 95, 140, "91 h")]).startswith("<svg")
        True
    """
    longest = max((bar.high for bar in bars), default=1.0) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    height = _TOP + _ROW * len(bars) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="24" font-weight="bold">{escape(title)}</text>',
    ]
    for row, bar in enumerate(bars):
        top = _TOP + _ROW * row
        middle = top + _ROW / 2
        low, high = (_LEFT + scale * value for value in (bar.low, bar.high))
        parts += [
            f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(bar.name)}</text>',
            f'<rect x="{_LEFT}" y="{top + 5}" width="{scale * bar.value:.1f}" '
            f'height="{_ROW - 10}" fill="#3f51b5"/>',
            f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#ff9800" stroke-width="3"/>',
            f'<text x="{high + 8:.1f}" y="{middle + 4}">{escape(bar.note)}</text>',
        ]
    parts.append(
        f'<text x="{_LEFT}" y="{height - 12}" font-size="11" fill="#555">{escape(caption)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
