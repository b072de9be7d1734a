"""How a command ends when it fails: one line on standard error and an exit status."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from podium.cli.text import shown
from podium.errors import PodiumError

_TRACEBACK = "PODIUM_TRACEBACK"
"""Environment variable that shows where an error that Podium did not expect comes from."""
_ERROR: Final = 2
"""Exit status of every error, of usage or of data: 1 means that something asked for is not so."""
_OPTIONS: tuple[tuple[str, str], ...] = (
    (r"Name the right column with rename=\{'its name': 'query_id'\}", "Name it: --query-column"),
    (r"Name the right column with rename=\{'its name': 'label'\}", "Name it: --label-column"),
    (
        r"Name the right column with rename=\{'its name': 'document_id'\}",
        "Name it: --document-column",
    ),
    (r"Name the right column with rename=\{[^}]*\}", "Rename the column"),
    (
        r"or rename it with rename=\{'its name': '(query|document|label|score)(?:_id)?'\}",
        r"or give --\1-column",
    ),
    (
        r"cannot be inferred from its name\. Name it: ",
        "cannot be inferred from its name. Name it with --format (to read) or --to (to write): ",
    ),
    (r"with group=", "with --group"),
    (r"read it without group=", "read it without --group"),
    (r"read with keep_nonfinite=True", "read with --keep-nonfinite"),
    (r"Read with zero_based=True", "Read with --zero-based"),
    (r"Check features=", "Check --feature-columns"),
    (r"with features=", "with --feature-columns"),
    (r"document's id with rename=", "document's id with --document-column"),
    (r"Give either qid= or group=", "Give --query-column or --group"),
    (
        r"Give documents ids, or choose conventions with ties='input order'",
        "Give documents ids, or choose --conventions that do not need them, such as podium",
    ),
    (r"Give document_ids\.", "Name their column: --document-column."),
    (
        r"Choose conventions with negative='irrelevant' or negative='unjudged'",
        "Choose --conventions trec_eval (not judged) or ranx (irrelevant)",
    ),
    (
        r"Choose conventions with another rule, such as ties='input order'",
        "Choose other --conventions, such as lightgbm",
    ),
    (r"ERR\(max=…\), or highest_grade=", "-m 'ERR(max=4)'"),
    (r"Name the conventions, such as (\w+),", r"Name them, as --conventions \1,"),
    (r"Give preferences\.", "Give a file of preferences as TRUTH."),
    (r"Give labels\.", "Give qrels as TRUTH, or choose -m ppref, rpref or wpref."),
    (r"Give properties=, a table", "Give --slices, a table"),
    (r"Leave out change=", "Leave out --top-k and --normalize"),
    (r"has no option 'zero_based'", "has no option --zero-based"),
    (r"has no option 'keep_nonfinite'", "has no option --keep-nonfinite"),
    (r"has no option 'group'", "has no option --group"),
    (r"has no option 'rename'", "has no columns to name"),
    (r"has no option 'features'", "has no option --feature-columns"),
    (r"Name one: model= and rubric=, which", "Name one: --model and --rubric, which"),
    (r"Give prompt_price= and answer_price=", "Give --prices"),
    (r"Name one: read_ranking_log\(\.\.\., model=\.\.\.\)", "Name one: --model"),
    (r"Raise max_features if", "Convert it with Python's read_letor(max_features=…) if"),
)
"""Python's arguments in hints, and the options of the command line."""


printed_warnings: list[str] = []
"""What this command warned of, for its report in JSON."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors inside into one line and exit status 2, and warnings into lines of their own."""
    printed_warnings.clear()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            yield
    except (typer.Abort, typer.Exit):  # how a command ends on purpose
        raise
    except (PodiumError, OSError) as error:
        _fail(for_command_line(str(error)))
    except MemoryError:
        _fail("there is not enough memory. Convert the data to shards, which need not fit in it.")
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        message = " ".join(str(error).split()) or "no message"
        _fail(
            f"{type(error).__name__}: {message[:500]}. Podium did not expect this error; "
            f"{_TRACEBACK}=1 in the environment shows where it comes from."
        )


def _print_warning(message: Warning | str, *_where: object) -> None:
    printed_warnings.append(for_command_line(str(message)))
    text = Text.assemble(("Warning: ", "bold yellow"), shown(printed_warnings[-1]))
    Console(stderr=True).print(text, soft_wrap=True)


def _fail(message: str) -> NoReturn:
    text = Text.assemble(("Error: ", "bold red"), shown(message))
    Console(stderr=True).print(text, soft_wrap=True)
    sys.exit(_ERROR)


def for_command_line(message: str) -> str:
    """Rewrite the message of an error for users of the command line.

    Example:
        >>> for_command_line("Read with zero_based=True if indices start at 0.")
        'Read with --zero-based if indices start at 0.'
    """
    for pattern, replacement in _OPTIONS:
        message = re.sub(pattern, replacement, message)
    return message
