"""What is asked of every file of the package."""

from pathlib import Path

import podium

PACKAGE = Path(podium.__file__).parent
MOST_LINES = 400


def test_files_are_short() -> None:
    # A file that needs a table of contents is two files.
    lengths = {
        str(file.relative_to(PACKAGE)): len(file.read_text().splitlines())
        for file in PACKAGE.rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}
