"""Tables of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def report_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain text, which is escaped; it scrolls sideways where it is too wide.

    Example:
        >>> report_table(["id"], [["<q>"]])
        "<div class='wide'><table><tr><th>id</th></tr><tr><td>&lt;q&gt;</td></tr></table></div>"
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>"
