"""What all engines need of an export: safe names, its version, and golden rows as documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.folder import ExportFolder
from podium.export.targets.base import version_number
from podium.kernels import Doubles

BATCH = 1000
"""The number of rows that are scored by one request."""


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


def row_documents(names: Sequence[str], values: Doubles) -> Iterator[dict[str, float]]:
    """Yield each row as the fields of a document; a field is absent where a value is.

    Example:
        >>> list(row_documents(["a", "b"], np.array([[1.0, np.nan]])))
        [{'a': 1.0}]
    """
    for row in values.tolist():
        fields = zip(names, row, strict=True)
        yield {name: value for name, value in fields if not np.isnan(value)}


def require_version(export: ExportFolder, server: object) -> tuple[int, ...]:
    """Refuse a server that is older than the version that was exported for; return its version."""
    text = re.match(r"\d+(\.\d+)*", str(server))
    oldest = export.manifest.engine_version
    try:
        version = version_number(text[0] if text else "")
        new_enough = version >= version_number(oldest)
    except ArgumentError as error:
        raise DataError(f"the server's version is unknown: {str(server)[:50]!r}") from error
    if not new_enough:
        raise DataError(
            f"the server has version {server}, and the export is for version {oldest} or later",
            hint="Export for the server's version.",
        )
    return version
