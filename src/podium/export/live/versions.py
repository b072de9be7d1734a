"""Names of what Podium puts into engines, by which nothing else is ever touched."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.scorers.feature_names import shortened

VERSION = re.compile(r"podium-(?P<name>[A-Za-z][A-Za-z0-9_]{0,179})-[0-9a-f]{12}")
_FEATURE_SET = re.compile(r"podium_features_[0-9a-f]{12}")
_LEFTOVER = re.compile(r"podium-golden-[0-9a-f]{16}")


def safe_name(name: str) -> str:
    """Return a name that may be a part of a path or a query, or raise an error.

    An export may come from elsewhere: its names must not address anything else.

    Example:
        >>> safe_name("podium_2")
        'podium_2'
        >>> safe_name("../_all")
        Traceback (most recent call last):
        podium.errors.DataError: '../_all' is not a name that engines take. ...
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}", name):
        raise DataError(
            f"{name!r} is not a name that engines take",
            hint="Use letters, digits, underscores and hyphens.",
        )
    return name


def version_name(export: ExportFolder) -> str:
    """Return the name of an export's model in an engine: its name and a hash of all its files."""
    name = safe_name(export.manifest.model_name)
    digest = hashlib.sha256()
    for file, content in export.target_files().items():
        digest.update(f"{file} {len(content)}\n".encode())
        digest.update(content)
    return safe_name(f"podium-{name}-{digest.hexdigest()[:12]}")


def uploaded_name(export: ExportFolder, title: str, is_there: Callable[[str], bool]) -> str:
    """Return the version's name if an engine has it, or that of the export, uploaded by hand.

    Args:
        export: The export.
        title: The engine's name in messages.
        is_there: Whether the engine has a model of a name.

    Raises:
        DataError: If it has neither.
    """
    names = version_name(export), export.manifest.model_name
    for name in names:
        if is_there(name):
            return name
    raise DataError(
        f"{title} has no model {names[0]!r} and no {names[1]!r}",
        hint="Upload it: podium deploy put.",
    )


def model_name(version: str) -> str:
    """Return the name that searches refer to.

    Example:
        >>> model_name("podium-shop-1a2b3c4d5e6f")
        'shop'
        >>> model_name("shop")
        Traceback (most recent call last):
        podium.errors.DataError: 'shop' is not the name of a version. ...
    """
    match = VERSION.fullmatch(version)
    if match is None:
        raise DataError(
            f"{shortened(repr(version))} is not the name of a version",
            hint="Give one such as podium-shop-1a2b3c4d5e6f: podium deploy list URL prints them.",
        )
    return match["name"]


def is_feature_set(name: str) -> bool:
    """Whether a name is that of a feature set or feature store which Podium named."""
    return _FEATURE_SET.fullmatch(name) is not None


def is_leftover(name: str) -> bool:
    """Whether a name is that of something which a check needs for as long as it runs."""
    return _LEFTOVER.fullmatch(name) is not None


def is_podiums(name: str) -> bool:
    """Whether a name is one that Podium gives."""
    return VERSION.fullmatch(name) is not None or is_feature_set(name) or is_leftover(name)


def temporary_name() -> str:
    """Return a name for what a check needs for as long as it runs."""
    return f"podium-golden-{secrets.token_hex(8)}"
