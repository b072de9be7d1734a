"""``python -m tests.release.wheel_contents WHEEL``: its size, and what does not belong in it."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

NEEDED = (
    "podium/__init__.pyi",
    "podium/py.typed",
    "podium/studio/locale/de/LC_MESSAGES/podium.po",
    "podium/studio/web/static/built/judge.js",
)


def problems(wheel: Path) -> list[str]:
    """Return the files that do not belong in a wheel, and those that it lacks."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    metadata = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    wrong = [
        f"{name} does not belong in the wheel"
        for name in names
        if not name.startswith(("podium/", metadata)) or name.endswith((".pyc", ".ts", ".map"))
    ]
    return wrong + [f"{name} is missing" for name in NEEDED if name not in names]


def main() -> int:
    """Print the wheel's size and what is wrong with it."""
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as archive:
        unpacked = sum(each.file_size for each in archive.infolist())
        count = len(archive.infolist())
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.2f} MB, {count} files, {unpacked / 1e6:.2f} MB unpacked")
    wrong = problems(wheel)
    for problem in wrong:
        print(problem)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
