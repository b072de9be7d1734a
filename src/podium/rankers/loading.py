"""Rankers from their files, of any kind."""

from __future__ import annotations

import os
import tempfile
from importlib import import_module
from io import BytesIO
from pathlib import Path

from podium import rankers
from podium.errors import DataError
from podium.rankers.base import Ranker
from podium.rankers.storage import is_packed_folder, read_archive, unpack_folder


def load_ranker(source: str | os.PathLike[str] | BytesIO) -> Ranker:
    """Load a ranker that ``save`` wrote, from its file, its folder or its ``to_bytes``.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> load_ranker(BytesIO(ranker.to_bytes()))
        LinearRanker(loss='ListNet()')
    """
    if isinstance(source, BytesIO):
        if is_packed_folder(source):
            with tempfile.TemporaryDirectory(prefix="podium-ranker-") as folder:
                unpack_folder(source, Path(folder))
                return _load_text_ranker(Path(folder))
    elif Path(source).is_dir():
        return _load_text_ranker(Path(source))
    archive = read_archive(source)
    try:
        return _kind(archive.kind).from_archive(archive)
    except (KeyError, TypeError, ValueError) as error:
        hint = "Train and save it again."
        if archive.kind not in Ranker.KINDS:
            hint = "Import the module that defines it first (`--use`), or update Podium."
        raise DataError(
            f"is not a ranker of this Podium ({error})",
            path=None if isinstance(source, BytesIO) else source,
            hint=hint,
        ) from error


def _kind(name: str) -> type[Ranker]:
    """Return a class of rankers; those of this package are imported on first use."""
    if name in rankers.__all__:
        getattr(rankers, name)
    elif name == "HybridRanker":  # of a package that builds on this one
        import_module("podium.hybrid.ranker")
    return Ranker.KINDS[name]


def _load_text_ranker(folder: Path) -> Ranker:
    from podium.rankers.text import TextRanker

    return TextRanker.load(folder)
