"""Progress on standard error: a bar for work of known size, a spinner for the rest.

Nothing is shown where standard error is not a terminal; it disappears when the work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.status import Status

from podium.data.files import Reporter


@contextmanager
def byte_progress(title: str) -> Iterator[Reporter]:
    """Yield a function to call with the bytes done and the total."""
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with _shown(progress):
        task = progress.add_task(title, total=None)

        def report(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield report


@contextmanager
def stage_progress() -> Iterator[Callable[[str], Reporter]]:
    """Yield a function that starts a titled bar, to call with the steps done and the total."""
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with _shown(bars):

        def stage(title: str) -> Reporter:
            task = bars.add_task(title, total=None)
            return lambda done, total: bars.update(task, completed=done, total=total)

        yield stage


def _shown(progress: Progress) -> AbstractContextManager[object]:
    """Show bars on a terminal alone: in old Rich even a disabled one ends with an empty line."""
    return progress if progress.console.is_terminal else nullcontext()


def spinner(title: str) -> AbstractContextManager[Status]:
    """Show that work is in progress."""
    return Console(stderr=True).status(title)


@contextmanager
def step_progress(title: str, measure: str | None) -> Iterator[Callable[..., None]]:
    """Yield a function to call with the step of a fit, its loss and the validation measure."""
    with Console(stderr=True).status(title) as status:

        def report(step: int, loss: float, value: float | None) -> None:
            text = f"{title}: step {step}, loss {loss:.6g}"
            status.update(text if value is None else f"{text}, {measure} {value:.4f}")

        yield report
