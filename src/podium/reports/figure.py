"""A chart as an object: shown by notebooks, saved as an SVG file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from podium.errors import ArgumentError

# Rules for this element only: a notebook has other pictures on the same page.
_STYLE = (
    ".podium-figure { --line: #d9dee7; --up: #1b7f5c; --down: #b3423a; background: #fff; } "
    ".podium-figure text { font: 12px system-ui, sans-serif; fill: #1c2330; }"
)

_TITLE = 28
"""The height of the title."""


@dataclass(frozen=True, repr=False)
class Figure:
    """An SVG picture with a white page, which notebooks show.

    Attributes:
        title: What it shows.
        svg: The text of the SVG file.

    Example:
        >>> figure = Figure.of_chart("Empty", "<svg viewBox='0 0 9 9' role='img'></svg>")
        >>> figure
        Figure('Empty')
        >>> figure.svg.startswith("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='37'")
        True
    """

    title: str
    svg: str

    @classmethod
    def of_chart(cls, title: str, chart: str) -> Figure:
        """Make a chart, which takes its colors from a page, a picture of its own."""
        size = re.match(r"<svg viewBox='0 0 (\d+) (\d+)'", chart)
        if size is None:
            raise ValueError("not a chart of podium.reports.charts")
        width, height = int(size[1]), int(size[2])
        inner = chart.replace("<svg ", f"<svg y='{_TITLE}' width='{width}' height='{height}' ", 1)
        svg = (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height + _TITLE}' "
            f"viewBox='0 0 {width} {height + _TITLE}' class='podium-figure'>"
            f"<style>{_STYLE}</style><text x='12' y='19'>{escape(title)}</text>{inner}</svg>"
        )
        return cls(title, svg)

    def __repr__(self) -> str:
        return f"Figure({self.title!r})"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the picture as an SVG file, which browsers and office programs open."""
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise ArgumentError(
                f"{target.name} is not the name of an SVG file", hint="Let it end in .svg."
            )
        target.write_text(self.svg + "\n", encoding="utf-8")
