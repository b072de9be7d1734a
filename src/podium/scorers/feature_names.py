"""Names of features: bounded, and valid text."""

from __future__ import annotations

from collections.abc import Sequence

from podium.errors import DataError

MOST_FEATURES = 20_000
"""Golden rows have a value for each, so time and memory grow with it."""
MOST_CHARACTERS = 1_000
_SHOWN = 60


def shortened(text: str) -> str:
    """Cut a text that goes into a message.

    Example:
        >>> shortened("a" * 100)[-10:]
        'aaaaaaa...'
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def check_feature_count(count: int) -> None:
    """Raise a DataError for more features than are exported."""
    if count > MOST_FEATURES:
        raise DataError(
            f"has {count} features, and at most {MOST_FEATURES} can be exported",
            hint="Train it on fewer features.",
        )


def check_feature_names(names: Sequence[str]) -> None:
    """Raise a DataError for too many names, too long ones and ones that are not valid Unicode."""
    check_feature_count(len(names))
    for name in names:
        if len(name) > MOST_CHARACTERS:
            raise DataError(
                f"has a feature with a name of {len(name)} characters ({shortened(repr(name))}), "
                f"and at most {MOST_CHARACTERS} can be exported",
                hint="Give it a shorter name.",
            )
        if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
            raise DataError(
                f"has a feature whose name is not valid Unicode ({shortened(ascii(name))})",
                hint="Give it another name.",
            )
