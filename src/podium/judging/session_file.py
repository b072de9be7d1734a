"""A session in a file: one JSON line that describes it, then one per entry.

Entries are only ever added at the end, and each is on the disk before the next is taken. A line
that a crash left unfinished never counted: it is cut off when the file is opened again.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

from podium.data.atomic import sync_folder
from podium.data.files import writing
from podium.data.journal import Journal
from podium.data.json_lines import parse_log
from podium.errors import DataError, PodiumError
from podium.judging.assignment import Overlap
from podium.judging.entries import Entry, Undo, entry_from_json, entry_to_json
from podium.judging.session import Session

_VERSION = 1
_SETTINGS = {
    "items": list,
    "k": int,
    "algorithm": str,
    "random_state": int,
    "ordered": bool,
    "overlap": dict,
    "budget": int,
}
"""The session's keys in the first line, with their types; the other keys are about the query."""


_IN_USE = "someone is judging this session"
_OVERLAP = tuple(field.name for field in fields(Overlap))


class SessionFile:
    """A session that is on disk. Use it in a ``with`` block, or close it.

    Attributes:
        session: The session.
        about: The other keys of the first line, such as the query's text.

    Example:
        >>> import tempfile
        >>> from podium.judging import Outcome, Verdict
        >>> folder = tempfile.mkdtemp()
        >>> with SessionFile.create(f"{folder}/q1.jsonl", Session(["a", "b"], k=1)) as journal:
        ...     journal.add(Verdict("a", "b", Outcome.LEFT))
        0
        >>> SessionFile.read(f"{folder}/q1.jsonl").result().top
        ('a',)
    """

    def __init__(self, file: Journal, session: Session, about: dict[str, Any]) -> None:
        self.path = file.path
        self.session = session
        self.about = about
        self._file = file

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], session: Session, about: dict[str, Any] | None = None
    ) -> Self:
        """Write a session to a new file, and keep the file open for more."""
        about = dict(about or {})
        content = _lines(_header(session, about), *map(entry_to_json, session.log))
        _check_readable(content, path, about)
        file = Journal(path, "xb", _IN_USE)
        try:
            file.add(content)
            with writing(path):
                sync_folder(file.path.resolve().parent)  # or a crash could lose its name
        except BaseException:
            file.close()
            file.path.unlink(missing_ok=True)
            raise
        return cls(file, session, about)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing session file and lock it."""
        file = Journal(path, "r+b", _IN_USE)
        try:
            content = file.read()
            session, about = _parse(content, path)
            file.cut(content.rfind(b"\n") + 1)
        except BaseException:
            file.close()
            raise
        return cls(file, session, about)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Session:
        """Read the session in a file without locking it."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise DataError(
                f"cannot be opened ({error.strerror})", path=path, hint="Choose another name."
            ) from error
        return _parse(content, path)[0]

    def add(self, entry: Entry) -> int:
        """Add an entry and return its position in the log; it is on disk when this returns."""
        self._file.require_open()
        position = self.session.add(entry)  # which refuses what could not be read again
        self._file.add(_lines(entry_to_json(entry)))
        return position

    def undo(self, assessor: str | None = None, *, at: float = 0.0) -> Undo | None:
        """Undo the last active entry, of an assessor or of anyone."""
        self._file.require_open()
        undo = self.session.undo(assessor, at=at)
        if undo is not None:
            self._file.add(_lines(entry_to_json(undo)))
        return undo

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _lines(*values: dict[str, Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def _check_readable(content: bytes, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
    """Refuse a session before it is written, not when it is opened again."""
    _, stored = _parse(content, path)
    lost = [name for name in about if name not in stored]
    if lost:
        raise DataError(
            f"{lost[0]!r} is a reserved key of a session",
            path=path,
            hint="Use another name for it.",
        )


def _header(session: Session, about: dict[str, Any]) -> dict[str, Any]:
    return {
        **about,
        "podium": "session",
        "version": _VERSION,
        "k": session.k,
        "algorithm": session.algorithm,
        "random_state": session.random_state,
        "ordered": session.ordered,
        "overlap": None if session.overlap is None else asdict(session.overlap),
        "budget": session.budget,
        "items": list(session.items),
    }


def _parse(content: bytes, path: str | os.PathLike[str]) -> tuple[Session, dict[str, Any]]:
    values, _ = parse_log(content, dict, path)
    if not values or values[0].get("podium") != "session":
        raise DataError(
            "is not a session file", path=path, hint="Its first line must describe one."
        )
    header = values[0]
    if header.get("version") != _VERSION:
        raise DataError(
            f"has version {header.get('version')!r}", path=path, hint="Install a newer Podium."
        )
    number = 1
    try:
        session = Session(**_settings(header))
        for number, value in enumerate(values[1:], 2):  # noqa: B007
            session.add(entry_from_json(value))
    except PodiumError as error:
        raise DataError(error.problem, path=path, line=number, hint=error.hint) from error
    about = {
        name: value
        for name, value in header.items()
        if name not in _SETTINGS and name not in ("podium", "version")
    }
    return session, about


def _settings(header: dict[str, Any]) -> dict[str, Any]:
    """What a session is made with, from the first line of a file that anyone may have written."""
    settings = {name: header[name] for name in _SETTINGS if header.get(name) is not None}
    for name, value in settings.items():
        if type(value) is not _SETTINGS[name]:
            raise DataError(
                f"{name!r} is {value!r}", hint=f"Give a value of type {_SETTINGS[name].__name__}."
            )
    items = settings.setdefault("items", [])
    if not all(isinstance(item, str) for item in items):
        raise DataError("an item is not a string", hint="Give item ids as strings.")
    if "overlap" in settings:
        share, assessors, random_state = (settings["overlap"].get(name) for name in _OVERLAP)
        if not (isinstance(share, int | float) and type(assessors) is type(random_state) is int):
            raise DataError(
                f"'overlap' is {settings['overlap']!r}", hint=f"Give {', '.join(_OVERLAP)}."
            )
        settings["overlap"] = Overlap(share, assessors, random_state)
    return settings
