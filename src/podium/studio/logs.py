"""Errors of the studio for its log."""

from __future__ import annotations

import traceback


def describe_error(error: BaseException) -> dict[str, str]:
    """An error for the log, without its words: databases quote the values that they refuse.

    Example:
        >>> describe_error(ValueError("ann@example.org"))
        {'error': 'ValueError', 'sqlstate': '', 'trace': ''}
    """
    frames = traceback.extract_tb(error.__traceback__)
    origin = getattr(error, "orig", None)
    return {
        "error": type(origin or error).__name__,
        "sqlstate": getattr(origin, "sqlstate", None) or "",
        "trace": " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames)),
    }
