"""Which code made a result: its version, and a digest of the source that figures depend on."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import podium

UNNAMED = "a version that did not name itself"
"""What results from before results were named are called."""

_ROOMS = ("kernels", "data", "measures", "losses", "aggregation", "rankers")
_STUDY = ("collections.py", "entries.py", "leaderboard.py", "peers.py")


@cache
def code_name() -> str:
    """The version of Podium and a digest of all source that trains, chooses and measures.

    Example:
        >>> code_name().startswith(f"podium {podium.__version__} (source ")
        True
    """
    studies = Path(podium.__file__).parent / "studies"
    return _named(_ROOMS, [studies / name for name in _STUDY])


@cache
def study_code() -> str:
    """The same for the other studies: with what judges and learns utilities, and all studies.

    Example:
        >>> study_code() == code_name()
        False
    """
    studies = Path(podium.__file__).parent / "studies"
    return _named((*_ROOMS, "judging", "utility"), list(studies.glob("*.py")))


def _named(rooms: tuple[str, ...], files: list[Path]) -> str:
    package = Path(podium.__file__).parent
    files = files + [file for room in rooms for file in (package / room).rglob("*.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return f"podium {podium.__version__} (source {digest.hexdigest()[:12]})"
