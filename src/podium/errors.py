"""The few error types that Podium raises on purpose."""

from __future__ import annotations

from functools import partial
from typing import Any


class PodiumError(Exception):
    """Base of every error that Podium raises on purpose; its message says what to do."""


class DataError(PodiumError, ValueError):
    """The data at hand are wrong: a malformed file, arrays that do not fit, a broken shard.

    Example:
        >>> print(DataError("label is not a number", path="train.txt", line=3, hint="Mend it."))
        train.txt, line 3: label is not a number. Mend it.
    """

    def __init__(
        self, problem: str, *, path: object = None, line: int | None = None, hint: str = ""
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.hint = hint
        super().__init__(problem, path, line, hint)

    def __str__(self) -> str:
        place = ", line ".join(
            part for part in (self.path, None if self.line is None else str(self.line)) if part
        )
        text = f"{place}: {self.problem}" if place else self.problem
        if self.hint:
            text = f"{text.rstrip('.')}. {self.hint}"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        # A pool of processes hands errors over pickled; arguments by name need help there.
        remade = partial(type(self), path=self.path, line=self.line, hint=self.hint)
        return remade, (self.problem,)

    def at(self, path: object, line: int | None = None) -> DataError:
        """The same error of a file, and of one of its lines."""
        return DataError(self.problem, path=path, line=line, hint=self.hint)

    def further_down(self, lines: int) -> DataError:
        """The same error of a part of a file that has some lines before it."""
        line = None if self.line is None else self.line + lines
        return DataError(self.problem, path=self.path, line=line, hint=self.hint)
