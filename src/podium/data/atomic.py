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

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]+)")
"""The name of a file that this process has open."""

_LONGEST_NAME = 200
"""Bytes of a file name kept in its temporary file's name: file systems allow 255 in total."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` when the block ends without an error.

    What has the name before is replaced as a whole; its mode and owner are kept. If the name is a
    symbolic link, its target is replaced. The file and its folder are synced to the disk, so that
    after a crash the name has either the old contents or the new ones. Each call has a temporary
    file of its own, ``NAME.*.partial``, which is removed on an error, and which a process that is
    killed leaves.

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
    names = [Path(path)]
    if names[0].is_symlink():  # as /dev/stdout is
        names.append(names[0].parent / names[0].readlink())
    for name in names:
        if descriptor := _DESCRIPTOR.fullmatch(str(name)):
            return int(descriptor[1])
    return Path(os.path.realpath(path))


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
        yield path, descriptor
    finally:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()


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
