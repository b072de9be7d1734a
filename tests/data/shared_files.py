"""Where the real data sets lie that tests read and that are not part of the project."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared(path: str) -> Path:
    """A file or folder of the shared data; the test is skipped where they are absent."""
    file = SHARED / path
    if not file.exists():
        pytest.skip(f"{file} is not here: the shared data sets are not part of the repository")
    return file
