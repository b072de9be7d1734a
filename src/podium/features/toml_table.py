"""A table of a TOML file whose values are checked; a mistake is an error with its line and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from podium.errors import DataError


@dataclass(frozen=True)
class TomlTable:
    """One table of a file.

    Attributes:
        values: What the table has, by key.
        title: What it is in messages, such as ``feature 'bm25'``; empty for the whole file.
        file: The file.
        lines: The lines of the file.
        header: The line at which the table begins, counted from 1; None if it is not known.
        read_nested: Reads the file of definitions that a table names, one level deeper.
    """

    values: Mapping[str, Any]
    title: str
    file: Path
    lines: Sequence[str]
    header: int | None
    read_nested: Callable[[TomlTable], Any]

    def text(self, key: str, pattern: re.Pattern[str], what: str) -> str:
        """Return a string that matches a pattern, described by ``what``."""
        value = self.values.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            shown = "is missing" if value is None else f"{str(value)[:60]!r} is not valid"
            self.fail(shown, f"Give {what}.", key)
        return value

    def choice(self, key: str, choices: Sequence[Any], default: Any = None) -> Any:
        """Return one of several values."""
        value = self.values.get(key, default)
        if value not in choices:
            shown = "is missing" if value is None else f"{str(value)[:60]!r} is unknown"
            self.fail(shown, f"Give one of {', '.join(choices)}.", key)
        return value

    def file_beside(self, key: str) -> Path:
        """Return a file in or below the folder of this file: they are copied together."""
        text = self.values.get(key)
        if not isinstance(text, str) or not text:
            self.fail("is not the name of a file", "Give a path relative to this file.", key)
        path = Path(text)
        if path.is_absolute() or ".." in path.parts:
            self.fail(
                f"{text!r} is outside the folder of this file", "Put the file beside this one.", key
            )
        return self.file.parent / path

    def only_keys(self, keys: Sequence[str]) -> None:
        """Refuse other keys."""
        unknown = sorted(set(self.values) - set(keys))
        if unknown:
            self.fail("is unknown here", f"Known: {', '.join(keys)}.", unknown[0])

    @contextmanager
    def problems_of(self, key: str) -> Iterator[None]:
        """Name the key in errors about its value."""
        try:
            yield
        except DataError as error:
            self.fail(error.problem, error.hint, key)

    def fail(self, problem: str, hint: str, key: str = "") -> NoReturn:
        """Raise the error for a mistake."""
        location = f"{self.title}, {key}" if self.title and key else self.title or key
        text = f"{location}: {problem}" if location else problem
        raise DataError(text, path=self.file, line=self._line(key), hint=hint)

    def _line(self, key: str) -> int | None:
        """Return the line of a key, or of the header."""
        if self.header is None:
            return None
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]")
        for number in range(self.header + 1, len(self.lines) + 1):
            line = self.lines[number - 1]
            if line.lstrip().startswith("["):
                break
            if key and pattern.match(line):
                return number
        return self.header
