"""A progress bar for work over a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from podium.data.files import Reporter


@contextmanager
def byte_progress(title: str) -> Iterator[Reporter]:
    """Give a function to call with bytes done and bytes in all; the bar is on standard error.

    Nothing is shown where standard error is no terminal, and the bar is gone when the work is.
    """
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        task = progress.add_task(title, total=None)

        def report(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield report
