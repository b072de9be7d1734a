"""Tables of a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import NamedTuple, TypeAlias


class Cell(NamedTuple):
    """A cell that looks different from others.

    Attributes:
        text: What it says.
        tone: The name of a style, such as ``up`` and ``down``.
        title: What it says under the pointer.
    """

    text: str
    tone: str = ""
    title: str = ""


Row: TypeAlias = Sequence[str | Cell]


def report_table(headings: Row, rows: Sequence[Row], *, first: Collection[int] = ()) -> str:
    """A table of plain text, which is escaped; it scrolls sideways where it is too wide.

    Args:
        headings: A cell above each column; none for a table without headings.
        rows: The cells.
        first: The rows that begin a group.

    Example:
        >>> report_table(["id"], [["<q>"]])
        "<div class='wide'><table><tr><th>id</th></tr><tr><td>&lt;q&gt;</td></tr></table></div>"
    """
    head = _row("th", headings) if headings else ""
    body = "".join(_row("td", row, "first" if at in first else "") for at, row in enumerate(rows))
    return f"<div class='wide'><table>{head}{body}</table></div>"


def _row(tag: str, cells: Row, tone: str = "") -> str:
    return f"<tr{_attribute('class', tone)}>{''.join(_cell(tag, each) for each in cells)}</tr>"


def _cell(tag: str, cell: str | Cell) -> str:
    text, tone, title = (cell, "", "") if isinstance(cell, str) else cell
    attributes = _attribute("class", tone) + _attribute("title", title)
    return f"<{tag}{attributes}>{escape(text)}</{tag}>"


def _attribute(name: str, value: str) -> str:
    return f" {name}='{escape(value)}'" if value else ""
