"""Atomic file writes: a file appears complete or not at all.

Only regular files are written this way: to a temporary file in the same folder, which is
renamed once everything is on disk. Devices, pipes and open descriptors (``/dev/null``,
``/dev/fd/3``, ``>(gzip)``) are written to directly: a rename would replace them by a plain file.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

_MOST_LINKS = 40
"""Linux follows this many symbolic links before it gives up."""

_LONGEST_NAME = 200
"""Bytes of a file name kept in its temporary file's name: file systems allow 255 in total."""

_STALE_SECONDS = 24 * 60 * 60
"""After how long without a write a temporary file may be that of a killed process."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` when the block ends without an error.

    What has the name before is replaced as a whole; its mode and owner are kept. If the name is a
    symbolic link, its target is replaced. The file and its folder are synced to the disk, so that
    after a crash the name has either the old contents or the new ones. Each call has a temporary
    file of its own, ``NAME.*.partial``, which is removed on an error. A process that is killed
    leaves it; the next write to the same name removes it once it is a day old.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with atomic_write(folder / "a.txt") as file:
        ...     written = file.write(b"hello")
        >>> (folder / "a.txt").read_bytes()
        b'hello'
    """
    if names_folder(path):
        raise OSError(errno.EISDIR, "a slash at the end names a folder", os.fspath(path))
    target = _target(path)
    if isinstance(target, int):
        if sys.stdout is not None:
            sys.stdout.flush()  # keep the order of what was printed before
        with os.fdopen(os.dup(target), "wb") as file:
            yield file
        return
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        # Without O_CREAT: if it vanishes in the meantime, no plain file replaces it.
        with os.fdopen(os.open(target, os.O_WRONLY), "wb") as file:
            yield file
        return
    if before is not None and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    with _temporary(target, before) as (unfinished, descriptor):
        with os.fdopen(os.dup(descriptor), "wb") as file:  # codecs close what they write to
            yield file
        os.fsync(descriptor)
        unfinished.replace(target)
    sync_folder(target.parent)


def names_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path ends with a slash: ``Path`` would leave it out, and name a file."""
    return os.fspath(path).endswith(tuple(filter(None, (os.sep, os.altsep))))


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Sync a folder's entries to disk: syncing a file does not sync its name."""
    if os.name == "nt":  # folders cannot be opened there
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder may allow new files and not allow listing them
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot sync folders
            raise
    finally:
        os.close(descriptor)


def try_lock(stream: IO[Any] | int) -> bool:
    """Lock an open file until it is closed, or say that another process has it."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _target(path: str | os.PathLike[str]) -> Path | int:
    """Resolve a path through all symbolic links to a file or to an open descriptor's number."""
    target = Path(path)
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(target.parent)
        if folder in (f"/proc/{os.getpid()}/fd", "/dev/fd") and target.name.isdecimal():
            return int(target.name)
        if (folder.startswith("/proc/") and folder.endswith("/fd")) or not target.is_symlink():
            return target
        target = target.parent / target.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


@contextmanager
def _temporary(target: Path, before: os.stat_result | None) -> Iterator[tuple[Path, int]]:
    """Create a temporary file beside a file, with its mode and owner; removed unless renamed."""
    name = os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])
    path = target.with_name(f"{name}.{secrets.token_hex(8)}.partial")
    # Nobody else may read it before it has the mode of what it replaces.
    mode = 0o666 if before is None else 0o600
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        if before is not None and os.name != "nt":
            _keep_owner_and_mode(descriptor, before)
        with suppress(OSError):  # some network file systems have no locks
            try_lock(descriptor)  # so that nobody takes it for stale, however long this lasts
        _remove_stale(path.parent, name, os.fstat(descriptor).st_mtime)
        yield path, descriptor
    finally:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()


def _remove_stale(folder: Path, name: str, now: float) -> None:
    """Remove what killed processes left of a file: temporary files that are old and not locked.

    Args:
        folder: Where the file is.
        name: Its name, as in the names of its temporary files.
        now: The time on the clock of the file system, which may not be ours.
    """
    temporary = re.compile(re.escape(name) + r"\.[0-9a-f]{16}\.partial")
    # Cleaning up is a courtesy: what may not be listed, opened or removed stays.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not temporary.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                continue
            if now - entry.stat(follow_symlinks=False).st_mtime < _STALE_SECONDS:
                continue
            with suppress(OSError), Path(entry.path).open("rb") as file:
                if try_lock(file):
                    Path(entry.path).unlink()


def _keep_owner_and_mode(descriptor: int, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode)
    created = os.fstat(descriptor)
    if (created.st_uid, created.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(descriptor, before.st_uid, before.st_gid)
        except PermissionError:  # only root may change the owner
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
            try:
                os.fchown(descriptor, -1, before.st_gid)
            except PermissionError:
                mode &= ~stat.S_IRWXG  # our group must not get the other group's rights
    os.fchmod(descriptor, mode)
