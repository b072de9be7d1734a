"""A document of titled sections, written as Markdown or as an HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from podium.reports.page import report_page, report_table

_STYLE = (
    "th, td { text-align: left; white-space: normal; overflow-wrap: break-word; } "
    ".card { max-width: 640px; margin-bottom: 14px; }"
)
"""Cells are text."""


@dataclass(frozen=True)
class ReportSection:
    """A part of a document: plain text, and a table if it has any rows.

    Attributes:
        title: Its heading.
        paragraphs: Its text.
        headings: The headings of its table.
        rows: The rows of its table.
        bullets: Sentences that are a list.
        figure: A chart as SVG, which pages have and Markdown does not.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    bullets: tuple[str, ...] = ()
    figure: str = ""


@dataclass(frozen=True)
class ReportDocument:
    r"""A title and sections; everything is plain text, which is escaped.

    Example:
        >>> section = ReportSection("Size", headings=("what", "count"), rows=(("a|b", "3"),))
        >>> print(ReportDocument("Card", (section,)).as_markdown())
        # Card
        <BLANKLINE>
        ## Size
        <BLANKLINE>
        | what | count |
        | --- | --- |
        | a\|b | 3 |
        <BLANKLINE>
    """

    title: str
    sections: tuple[ReportSection, ...] = field(default=())

    def as_markdown(self) -> str:
        """Format the document as Markdown."""
        blocks = [f"# {_markdown(self.title)}"]
        for section in self.sections:
            blocks.append(f"## {_markdown(section.title)}")
            blocks += [_markdown(text) for text in section.paragraphs]
            if section.rows:
                table = [section.headings, ["---"] * len(section.headings), *section.rows]
                blocks.append("\n".join(_row(cells, index) for index, cells in enumerate(table)))
            if section.bullets:
                blocks.append("\n".join(f"- {_markdown(text)}" for text in section.bullets))
        return "\n\n".join(blocks) + "\n"

    def as_html(self) -> str:
        """Format the document as a page that loads nothing from elsewhere."""
        parts = []
        for section in self.sections:
            parts.append(f"<h2>{escape(section.title)}</h2>")
            parts += [f"<p>{escape(text)}</p>" for text in section.paragraphs]
            if section.figure:
                parts.append(f"<div class='card'>{section.figure}</div>")
            if section.rows:
                parts.append(report_table(section.headings, section.rows))
            if section.bullets:
                items = "".join(f"<li>{escape(text)}</li>" for text in section.bullets)
                parts.append(f"<ul>{items}</ul>")
        return report_page(self.title, parts, style=_STYLE)


def _row(cells: Sequence[str], index: int) -> str:
    shown = cells if index == 1 else [_markdown(cell) for cell in cells]
    return f"| {' | '.join(shown)} |"


def _markdown(text: str) -> str:
    """Escape what Markdown, or HTML within it, would take for its own."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return re.sub(r"([\\`*\[\]<>|#~]|(?<!\w)_|_(?!\w)|&(?=\w|#))", r"\\\1", line)
