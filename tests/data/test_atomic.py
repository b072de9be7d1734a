"""Files that are written whole or not at all, and what is not a plain file is written to.

Nothing here names a device of the machine: as root, a mistake would break it. Tests make their
own, in a folder of their own.
"""

import errno
import gzip
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.data import atomic
from podium.data.atomic import atomic_write
from podium.data.files import open_write
from podium.errors import DataError

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root makes devices and gives files away")
not_root = pytest.mark.skipif(ROOT, reason="root may write everything")


def put(path: str | os.PathLike[str], content: bytes) -> None:
    with open_write(path, compress=False) as write:
        write(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@needs_root
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    null = tmp_path / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"no device can be made here ({error.strerror})")
    put(null, b"gone")
    status = null.stat()
    assert stat.S_ISCHR(status.st_mode)
    assert status.st_rdev == os.makedev(1, 3)
    (tmp_path / "link").symlink_to("null")
    put(tmp_path / "link", b"gone")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_ISCHR(null.stat().st_mode)
    assert names(tmp_path) == ["link", "null"]


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """A named pipe, and what comes out of it until it is closed."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()), daemon=True)
    reader.start()
    yield path, received
    if reader.is_alive():  # it still waits for someone to write
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    reader.join(timeout=60)


def wait_for(received: list[bytes]) -> bytes:
    for _ in range(3000):
        if received:
            return received[0]
        threading.Event().wait(0.01)
    raise AssertionError("nothing came out of the pipe")


def test_a_pipe_is_written_to(pipe: tuple[Path, list[bytes]]) -> None:
    path, received = pipe
    put(path, b"through")
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert wait_for(received) == b"through"
    assert names(path.parent) == ["pipe"]


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_an_open_descriptor_is_written_to_where_it_stands(tmp_path: Path, name: str) -> None:
    if not Path(name.format(0)).parent.is_dir():
        pytest.skip(f"there is no {name}")
    file = tmp_path / "log.txt"
    file.write_bytes(b"first\n")
    number = file.stat().st_ino
    with file.open("ab") as stream:
        put(name.format(stream.fileno()), b"second\n")
        stream.write(b"third\n")
    assert file.read_bytes() == b"first\nsecond\nthird\n"
    assert file.stat().st_ino == number
    reading, writing = os.pipe()
    try:
        put(name.format(writing), b"through")
        assert os.read(reading, 100) == b"through"
    finally:
        os.close(reading)
        os.close(writing)


def test_standard_output_by_name_keeps_what_was_printed_before(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from podium.data.files import open_write\n"
        "print('before')\n"
        "with open_write(sys.argv[1]) as write:\n"
        "    write(b'within\\n')\n"
        "print('after')\n"
    )
    out, link = tmp_path / "out.txt", tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")  # what /dev/stdout is
    with out.open("wb") as stream:
        subprocess.run([sys.executable, "-c", code, link], stdout=stream, check=True)
    assert out.read_text() == "before\nwithin\nafter\n"
    assert link.is_symlink()
    assert names(tmp_path) == ["out.txt", "stdout"]


@pytest.mark.parametrize("there", [True, False])
def test_the_target_of_a_link_is_replaced_and_not_the_link(tmp_path: Path, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "real.txt"
    if there:
        target.write_bytes(b"old")
    (tmp_path / "second").symlink_to("folder/real.txt")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    put(tmp_path / "first", b"new")
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path / "folder") == ["real.txt"]


def test_links_that_go_round_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DataError, match=r"cannot be written .*symbolic links"):
        put(tmp_path / "a", b"x")
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_write(path) as file:
        (unfinished,) = tmp_path.glob("*.partial")
        assert stat.S_IMODE(unfinished.stat().st_mode) == mode  # nobody may read it meanwhile
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_mode_that_open_gives_it(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        put(tmp_path / "a.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


@needs_root
def test_the_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    path.chmod(0o2640)
    put(path, b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o2640)


@pytest.mark.parametrize(
    ("gives", "mode"), [("owner and group", 0o6664), ("group", 0o664), ("nothing", 0o604)]
)
def test_who_cannot_keep_the_owner_gives_nobody_else_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives: str, mode: int
) -> None:
    """What the kernel allows is up to the user; what follows from it is up to us."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    changed: list[tuple[int, int]] = []
    modes: list[int] = []

    def change(_descriptor: int, user: int, group: int) -> None:
        if gives == "nothing" or (gives == "group" and user != -1):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        changed.append((user, group))

    monkeypatch.setattr(os, "fchown", change)
    monkeypatch.setattr(os, "fchmod", lambda _descriptor, mode: modes.append(mode))
    values = list(path.stat())
    values[0], values[4], values[5] = stat.S_IFREG | 0o6664, 4321, 5432
    with path.open("r+b") as stream:
        atomic._keep_owner_and_mode(stream.fileno(), os.stat_result(values))
    assert modes == [mode]
    expected = {"owner and group": [(4321, 5432)], "group": [(-1, 5432)], "nothing": []}
    assert changed == expected[gives]


@not_root
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(DataError, match="Permission denied"):
        put(path, b"new")
    assert path.read_bytes() == b"old"


def test_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_write(path) as one, atomic_write(path) as other:
        one.write(b"1" * 10)
        other.write(b"2" * 20)
        one.write(b"1" * 10)
        assert not path.exists()
        assert len(list(tmp_path.glob("a.txt.*.partial"))) == 2
    assert path.read_bytes() == b"1" * 20  # the block that ends last
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, OSError])
def test_an_error_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, suffix: str, error: type[BaseException]
) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(b"before")

    def half() -> None:
        with open_write(path) as write:
            write(b"half")
            raise error

    with pytest.raises(DataError if error is OSError else error):
        half()
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == [path.name]


def test_everything_is_on_the_disk_before_the_name_is_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt.gz"
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            assert status.st_ino == tmp_path.stat().st_ino
            steps.append("folder synced")
        else:
            (unfinished,) = tmp_path.glob("*.partial")
            assert status.st_ino == unfinished.stat().st_ino
            assert gzip.decompress(unfinished.read_bytes()) == b"whole" * 1000
            steps.append("file synced")
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        steps.append("renamed")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    with open_write(path) as write:
        write(b"whole" * 1000)
    assert steps == ["file synced", "renamed", "folder synced"]
    assert gzip.decompress(path.read_bytes()) == b"whole" * 1000


def test_a_disk_that_fails_at_the_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a.txt").write_bytes(b"before")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=r"a\.txt: cannot be written \(Input/output error\)"):
        put(tmp_path / "a.txt", b"after")
    assert (tmp_path / "a.txt").read_bytes() == b"before"
    assert names(tmp_path) == ["a.txt"]


def test_folders_are_synced_where_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = errno.EINVAL

    def fail(_descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    atomic.sync_folder(tmp_path)  # a file system that has no such thing
    code = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        atomic.sync_folder(tmp_path)


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    name = "ö" * 125 + ".txt"  # 254 bytes
    put(tmp_path / name, b"x")
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["a.txt/", "new.txt/", "new.txt.gz/"])
def test_a_slash_at_the_end_names_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_bytes(b"before")
    with pytest.raises(DataError, match=rf"{name}: cannot be written \(a slash at the end names"):
        put(f"{tmp_path}/{name}", b"after")
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"before"


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"before")
    code = (
        "import os, signal, sys\n"
        "from podium.data.files import open_write\n"
        "with open_write(sys.argv[1]) as write:\n"
        "    write(b'half' * 100000)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode < 0
    assert path.read_bytes() == b"before"
    put(path, b"after")  # what the killed one left is in nobody's way
    assert path.read_bytes() == b"after"
