"""The exception types that Podium raises on purpose."""

from __future__ import annotations

from functools import partial
from typing import Any


class PodiumError(Exception):
    """Base of every error that Podium raises on purpose; its message says what to do.

    Attributes:
        problem: What is wrong.
        hint: What to do about it, if the problem does not say so itself.
    """

    def __init__(self, problem: str, *, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(problem)

    def __str__(self) -> str:
        return f"{self.problem.rstrip('.')}. {self.hint}" if self.hint else self.problem

    def __reduce__(self) -> tuple[Any, ...]:
        # Process pools pickle exceptions; keyword-only arguments need this.
        return partial(type(self), hint=self.hint), (self.problem,)


class ArgumentError(PodiumError, ValueError):
    """An argument is invalid: out of range, an unknown name, or in conflict with another one.

    Example:
        >>> print(ArgumentError("k is 0", hint="Give an integer of at least 1."))
        k is 0. Give an integer of at least 1.
    """


class DataError(PodiumError, ValueError):
    """The data are invalid: a malformed file, arrays of different lengths, a broken shard.

    Attributes:
        path: The file, if the data come from one.
        line: The line number in the file, starting at 1.

    Example:
        >>> print(DataError("label is not a number", path="train.txt", line=3, hint="Fix it."))
        train.txt, line 3: label is not a number. Fix it.
    """

    def __init__(
        self, problem: str, *, path: object = None, line: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(problem, hint=hint)
        self.path = None if path is None else str(path)
        self.line = line

    def __str__(self) -> str:
        location = ", line ".join(
            part for part in (self.path, None if self.line is None else str(self.line)) if part
        )
        return f"{location}: {super().__str__()}" if location else super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild = partial(type(self), path=self.path, line=self.line, hint=self.hint)
        return rebuild, (self.problem,)

    def at(self, path: object, line: int | None = None) -> DataError:
        """Return the same error with a file path and, optionally, a line number."""
        return DataError(self.problem, path=path, line=line, hint=self.hint)

    def with_line_offset(self, lines: int) -> DataError:
        """Return the same error with its line number moved down by ``lines``."""
        return self.at(self.path, None if self.line is None else self.line + lines)


class MissingPackageError(PodiumError, ImportError):
    """An optional package is needed and not installed.

    Example:
        >>> print(MissingPackageError("LightGBM", extra="trees"))
        LightGBM is not installed: pip install 'podium-rank[trees]'.
    """

    def __init__(self, package: str, *, extra: str) -> None:
        self.extra = extra
        verb = "are" if " and " in package else "is"
        super().__init__(f"{package} {verb} not installed: pip install 'podium-rank[{extra}]'.")
        self.name = package

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), extra=self.extra), (self.name,)


class CoverageWarning(UserWarning):
    """A ranking has no documents for some judged queries, or many that are not judged."""
