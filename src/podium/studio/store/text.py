"""Text as the database can keep it."""

from __future__ import annotations


def storable(text: str) -> str:
    r"""Text as PostgreSQL can keep it: without NUL, and without halves of characters.

    Example:
        >>> storable("a\x00b")
        'ab'
    """
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
