"""The Java installations of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path


class NoJavaError(RuntimeError):
    """No installation has the required version."""


def java_home(oldest: int, newest: int | None = None) -> Path:
    """Return the newest installation of Java in a range of versions."""
    homes = [
        *Path("/usr/lib/jvm").glob("*"),
        *map(Path, filter(None, [os.environ.get("JAVA_HOME")])),
    ]
    installations = {version: home for home in homes if (version := _version(home)) is not None}
    fitting = [each for each in installations if oldest <= each <= (newest or each)]
    if not fitting:
        bound = f" to {newest}" if newest else " or later"
        raise NoJavaError(
            f"Java {oldest}{bound} is missing: install a JDK below /usr/lib/jvm or set JAVA_HOME"
        )
    return installations[max(fitting)]


def _version(home: Path) -> int | None:
    """The major version of a JDK with a compiler, as its file `release` says."""
    release = home / "release"
    if not release.is_file() or not (home / "bin/javac").exists():
        return None
    number = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
    return int(number[1]) if number else None
