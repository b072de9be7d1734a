"""The few error types that Podium raises on purpose."""

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
        # A pool of processes hands errors over pickled; arguments by name need help there.
        return partial(type(self), hint=self.hint), (self.problem,)


class ArgumentError(PodiumError, ValueError):
    """A choice is wrong: a number out of range, an unknown name, two that do not fit.

    Example:
        >>> print(ArgumentError("k is 0", hint="Give a whole number from 1."))
        k is 0. Give a whole number from 1.
    """


class DataError(PodiumError, ValueError):
    """The data at hand are wrong: a malformed file, arrays that do not fit, a broken shard.

    Attributes:
        path: The file, if they are in one.
        line: The line of the file, from 1.

    Example:
        >>> print(DataError("label is not a number", path="train.txt", line=3, hint="Mend it."))
        train.txt, line 3: label is not a number. Mend it.
    """

    def __init__(
        self, problem: str, *, path: object = None, line: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(problem, hint=hint)
        self.path = None if path is None else str(path)
        self.line = line

    def __str__(self) -> str:
        place = ", line ".join(
            part for part in (self.path, None if self.line is None else str(self.line)) if part
        )
        return f"{place}: {super().__str__()}" if place else super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        remade = partial(type(self), path=self.path, line=self.line, hint=self.hint)
        return remade, (self.problem,)

    def at(self, path: object, line: int | None = None) -> DataError:
        """The same error of a file, and of one of its lines."""
        return DataError(self.problem, path=path, line=line, hint=self.hint)

    def further_down(self, lines: int) -> DataError:
        """The same error of a part of a file that has some lines before it."""
        return self.at(self.path, None if self.line is None else self.line + lines)


class MissingPackageError(PodiumError, ImportError):
    """A package is needed that only some users want, and is not installed.

    Example:
        >>> print(MissingPackageError("LightGBM", extra="trees"))
        LightGBM is not installed: pip install 'podium[trees]'.
    """

    def __init__(self, package: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{package} is not installed: pip install 'podium[{extra}]'.")
        self.name = package

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), extra=self.extra), (self.name,)
