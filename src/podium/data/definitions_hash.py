"""The hash of the definitions that features follow: data, rankers and exports carry it.

Two of them that carry different hashes do not belong together, whatever their columns are called.
What has no hash, such as a LETOR file, fits everything.
"""

from __future__ import annotations

import re

from podium.errors import DataError

_HASH = re.compile(r"[0-9a-f]{64}")
_SHOWN = 12


def checked_hash(value: object) -> str | None:
    """Return a hash from a file, or None; a DataError if it is something else.

    Example:
        >>> checked_hash(None), checked_hash("a" * 64) == "a" * 64
        (None, True)
    """
    if value is None or (isinstance(value, str) and _HASH.fullmatch(value)):
        return value
    raise DataError(
        "has a malformed hash of feature definitions", hint="Write the file again with Podium."
    )


def require_same_definitions(first: str | None, second: str | None, one: str, other: str) -> None:
    """Raise a DataError if two hashes are known and differ.

    Args:
        first: The hash of one side.
        second: The hash of the other.
        one: What the first side is, in words, such as ``the ranker``.
        other: What the second is.

    Example:
        >>> require_same_definitions("a" * 64, None, "the ranker", "the data")
        >>> require_same_definitions("a" * 64, "b" * 64, "the ranker", "the data")
        Traceback (most recent call last):
        podium.errors.DataError: the features of the data (definitions bbbbbbbbbbbb) are not ...
    """
    if first is not None and second is not None and first != second:
        raise DataError(
            f"the features of {other} (definitions {second[:_SHOWN]}) are not those of {one} "
            f"(definitions {first[:_SHOWN]})",
            hint="Log the features again by the definitions of the ranker, or train a ranker on "
            "the new ones.",
        )


def common_hash(hashes: list[str | None], what: str) -> str | None:
    """Return the hash of parts that become one; None if a part has none.

    Example:
        >>> common_hash(["a" * 64, None], "the blocks")
    """
    known = {value for value in hashes if value is not None}
    if len(known) > 1:
        first, second = sorted(known)[:2]
        raise DataError(
            f"{what} follow different feature definitions ({first[:_SHOWN]} and {second[:_SHOWN]})",
            hint="Log all of them by the same definitions.",
        )
    return next(iter(known)) if known and None not in hashes else None
