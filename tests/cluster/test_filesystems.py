"""Files that are written to folders by the cluster's workers, on this machine's disk."""

import os
import stat
import threading
from pathlib import Path

import pytest

from podium.cluster.filesystems import exists, read_bytes, write_bytes
from podium.errors import DataError


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    folder = str(tmp_path / "new" / "folder")
    write_bytes(b"first", folder, "table.parquet")
    path = Path(folder) / "table.parquet"
    path.chmod(0o640)
    write_bytes(b"second", folder, "table.parquet")
    assert read_bytes(folder, "table.parquet") == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert exists(folder, "table.parquet")
    assert [each.name for each in Path(folder).iterdir()] == ["table.parquet"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_bytes(b"through", str(pipe))
    reader.join(timeout=60)
    assert received == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        write_bytes(b"x", str(tmp_path), "table.parquet")
    with pytest.raises(TypeError):
        write_bytes(5, str(tmp_path), "other")
    assert [each.name for each in tmp_path.iterdir()] == ["table.parquet"]
