"""Cells of CSV files that no spreadsheet takes for a formula."""

from __future__ import annotations

import unicodedata


def harmless_cell(text: str) -> str:
    """A cell with an apostrophe before it if a spreadsheet could take it for a formula.

    Example:
        >>> harmless_cell("=HYPERLINK(1)"), harmless_cell("shoes")
        ("'=HYPERLINK(1)", 'shoes')
    """
    return f"'{text}" if _is_formula(text) else text


def restored_cell(text: str) -> str:
    """The text of a cell that `harmless_cell` wrote.

    Example:
        >>> restored_cell("'=1"), restored_cell("'90s")
        ('=1', "'90s")
    """
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def _is_formula(text: str) -> bool:
    """Whether the first visible character begins a formula; some programs drop others before it."""
    if text[:1] in ("\t", "\r", "\n"):
        return True
    first = next((each for each in text if unicodedata.category(each)[0] not in "CZ"), "")
    # Full-width characters are read as ordinary ones.
    return unicodedata.normalize("NFKC", first) in ("=", "+", "-", "@")
