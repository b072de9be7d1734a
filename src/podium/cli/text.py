"""Showing text that comes from files."""

from __future__ import annotations

from rich.text import Text


def shown(text: str) -> Text:
    r"""Escape text for the terminal: no markup, no control characters.

    Example:
        >>> shown("[red]\x1b[2J").plain
        '[red]\ufffd[2J'
    """
    return Text("".join(char if char.isprintable() else "\ufffd" for char in text))
