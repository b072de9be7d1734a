"""Styles, pictures and scripts: browsers keep them until they change."""

from __future__ import annotations

import hashlib
import os
import shlex
from functools import lru_cache
from pathlib import Path

from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from podium.errors import DataError

_FOLDER = Path(__file__).parent / "static"


def asset(path: str) -> str:
    """The address of a file in ``static/``; it changes with what is in the file.

    Example:
        >>> asset("studio.css").partition("?")[0]
        '/static/studio.css'
    """
    file = _FOLDER / path
    if not file.exists():  # scripts are built; see hatch_build.py
        return f"/static/{path}"
    return f"/static/{path}?{_digest(file, file.stat().st_mtime_ns)}"


def require_scripts() -> None:
    """Raise an error that says how to build the scripts of pages if they are missing."""
    if (_FOLDER / "built" / "judge.js").exists():
        return
    root = Path(__file__).resolve().parents[4]
    if (root / "package.json").exists():  # an editable install: the clone is right here
        folder = shlex.quote(str(root))
        command = f"npm --prefix {folder} ci && npm --prefix {folder} run build"
    else:
        command = "python -m pip install --force-reinstall --no-deps ."
    raise DataError(
        "the pages of Podium Studio have no scripts, because Podium was installed without Node.js",
        hint=f"Install Node.js 18 or later, then run in the clone of Podium: {command}",
    )


@lru_cache(maxsize=100)
def _digest(file: Path, _changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


class Assets(StaticFiles):
    """Serves the files; those asked for by their `asset` address never change."""

    def __init__(self) -> None:
        super().__init__(directory=_FOLDER)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """A file, to be kept if the address names its content."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if scope["query_string"] and response.status_code == 200:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response
