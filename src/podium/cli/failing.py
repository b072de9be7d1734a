"""How a command ends when it fails: one line on standard error and an exit status."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from podium.cli.hints import for_command_line
from podium.cli.text import shown
from podium.errors import PodiumError

_TRACEBACK = "PODIUM_TRACEBACK"
"""Environment variable that shows where an error that Podium did not expect comes from."""


@contextmanager
def one_line_errors(status: int) -> Iterator[None]:
    """Turn errors inside into one line and an exit status, and warnings into lines of their own."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            yield
    except (typer.Abort, typer.Exit):  # how a command ends on purpose
        raise
    except (PodiumError, OSError) as error:
        _fail(for_command_line(str(error)), status)
    except MemoryError:
        _fail(
            "there is not enough memory. Convert the data to shards, which need not fit in it.",
            status,
        )
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        message = " ".join(str(error).split()) or "no message"
        _fail(
            f"{type(error).__name__}: {message[:500]}. Podium did not expect this error; "
            f"{_TRACEBACK}=1 in the environment shows where it comes from.",
            status,
        )


def _print_warning(message: Warning | str, *_where: object) -> None:
    text = Text.assemble(("Warning: ", "bold yellow"), shown(for_command_line(str(message))))
    Console(stderr=True).print(text, soft_wrap=True)


def _fail(message: str, status: int) -> NoReturn:
    text = Text.assemble(("Error: ", "bold red"), shown(message))
    Console(stderr=True).print(text, soft_wrap=True)
    sys.exit(status)
