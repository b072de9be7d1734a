"""Which code computed a result: its version, and a digest of the source that figures depend on."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import podium

_PACKAGES = ("kernels", "data", "measures", "losses", "aggregation", "rankers")
_LEADERBOARD = ("collections.py", "leaderboard_models.py", "leaderboard.py", "peers.py")
_STUDIES = Path(__file__).parent


@cache
def leaderboard_code() -> str:
    """The version of Podium and a digest of all source that trains, tunes and measures.

    Example:
        >>> leaderboard_code().startswith(f"podium {podium.__version__} (source ")
        True
    """
    return _version(_PACKAGES, [_STUDIES / name for name in _LEADERBOARD])


@cache
def study_code() -> str:
    """The same for the other studies, which depend on more packages and on all study modules.

    Example:
        >>> study_code() == leaderboard_code()
        False
    """
    return _version((*_PACKAGES, "judging", "utility"), list(_STUDIES.glob("*.py")))


def _version(packages: tuple[str, ...], study_files: list[Path]) -> str:
    root = Path(podium.__file__).parent
    files = {f"studies/{file.name}": file for file in study_files}
    for package in packages:
        for file in (root / package).rglob("*.py"):
            files[f"podium/{file.relative_to(root).as_posix()}"] = file
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0".encode() + files[name].read_bytes())
    return f"podium {podium.__version__} (source {digest.hexdigest()[:12]})"
