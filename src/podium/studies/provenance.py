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
    package = Path(podium.__file__).parent
    files = [file for room in _ROOMS for file in (package / room).rglob("*.py")]
    files += [package / "studies" / name for name in _STUDY]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return f"podium {podium.__version__} (source {digest.hexdigest()[:12]})"
