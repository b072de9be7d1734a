"""The frame of a report and its tables: one page, light or dark, that loads nothing else."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from html import escape
from typing import NamedTuple, TypeAlias

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5d6675; --line: #d9dee7; --page: #fff;
  --up: #1b7f5c; --down: #b3423a; --card: #f6f7fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --soft: #a0a9b8; --line: #3a4250;
  --page: #14181f; --up: #4cc39a; --down: #ef8178; --card: #1c222c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  margin: 0 auto; max-width: 1180px; padding: 24px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 8px; }
h3 { font-size: 15px; margin: 18px 0 6px; }
p, li { color: var(--soft); max-width: 80ch; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font: 13px/1.5 system-ui, sans-serif;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { text-align: right; font-weight: 600; color: var(--soft); }
td { text-align: right; } th, td { padding: 4px 8px; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
tr.first td { border-top: 2px solid var(--line); }
.up { color: var(--up); } .down { color: var(--down); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 16px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
"""


def report_page(title: str, parts: Sequence[str], *, style: str = "") -> str:
    """A whole page of parts that are HTML already, under a title that is not.

    Args:
        title: Plain text, which is escaped.
        parts: What follows it.
        style: Rules besides the common ones.

    Example:
        >>> page = report_page("A & B", ["<p>Even.</p>"])
        >>> "<h1>A &amp; B</h1>" in page, page.startswith("<!doctype html>")
        (True, True)
    """
    head = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
    ]
    return "\n".join([*head, *parts, "</body></html>"])


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


def interval_text(low: float, high: float, sign: str = "") -> str:
    """The ends of an interval with four digits, with a plus before positive ones if it is the sign.

    Example:
        >>> interval_text(0.1, 0.25, "+"), interval_text(math.nan, math.nan)
        ('+0.1000 to +0.2500', '-')
    """
    return "-" if math.isnan(low) else f"{low:{sign}.4f} to {high:{sign}.4f}"


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
