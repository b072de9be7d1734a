"""What a request is refused with, and what the log says of errors."""

from __future__ import annotations

import traceback

from pydantic import ValidationError

from podium.errors import PodiumError
from podium.studio.messages import Message, Value


class RefusedError(PodiumError):
    """A request that cannot be carried out, with the HTTP status that says why.

    Args:
        status: The HTTP status.
        problem: Why, as a `Message`: with ``%(name)s`` for each value.
        values: The values.

    Example:
        >>> RefusedError(404, "The project does not exist.").status
        404
    """

    def __init__(self, status: int, problem: str, /, **values: Value) -> None:
        message = problem if isinstance(problem, Message) else Message(problem, **values)
        super().__init__(message)
        self.status = status
        self.problem: Message = message


def first_problem(error: ValidationError) -> str:
    """What is wrong with values that do not fit a model, in one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    problem = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {problem}" if where else problem


def describe_error(error: BaseException) -> dict[str, str]:
    """An error for the log, without its words: databases quote the values that they refuse.

    Example:
        >>> describe_error(ValueError("ann@example.org"))
        {'error': 'ValueError', 'sqlstate': '', 'trace': ''}
    """
    frames = traceback.extract_tb(error.__traceback__)
    origin = getattr(error, "orig", None)
    return {
        "error": type(origin or error).__name__,
        "sqlstate": getattr(origin, "sqlstate", None) or "",
        "trace": " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames)),
    }
