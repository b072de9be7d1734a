"""What every benchmark shares: its ``--quick`` flag, fair timing, and a report that can fail."""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import NoReturn

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from podium import kernels

# What is timed is compiled code: warming up with a little must compile it.
kernels.SMALL = -1


def wants_quick(description: str | None) -> bool:
    """Read the command line, whose one flag is ``--quick``.

    Args:
        description: What ``--help`` says, usually the benchmark's ``__doc__``.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, as CI runs it")
    return bool(parser.parse_args().quick)


def median_seconds(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time functions side by side and return the median seconds of each.

    They run interleaved (A B C A B C ...), so that a machine that slows down or heats up midway
    does so for all of them. Nothing is warmed up: call a function once beforehand if its first
    call, with its compilation, should not count.

    Args:
        functions: What to time, by name.
        repeats: How many times each runs.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def run_measured(code: str) -> tuple[str, float]:
    """Run Python code in a fresh process; what it prints, and the most memory it had, in GiB.

    That is ``VmHWM`` without ``RssFile`` at the end: libraries and other mapped files, which the
    system may drop, do not count. It is read inside the process: what the system reports of a child
    counts the parent's memory at the moment it was started, too.
    """
    ask = "\nprint(open('/proc/self/status').read())"
    done = subprocess.run(
        [sys.executable, "-c", code + ask], stdout=subprocess.PIPE, text=True, check=True
    )
    printed, _, status = done.stdout.rpartition("Name:")
    kibibytes = {name: int(value) for name, value in re.findall(r"(\w+):\s+(\d+) kB", status)}
    return printed.strip(), (kibibytes["VmHWM"] - kibibytes["RssFile"]) / 2**20


class Report:
    """Collects what a benchmark measured against its targets, prints it and sets the exit code.

    Args:
        name: The benchmark's name.
        quick: Whether it runs at small sizes.
        packages: The other packages measured or relied on, whose versions are printed.
        console: Where to print; standard output by default.

    Example::

        report = Report("sorting", wants_quick(__doc__), packages=["numpy"])
        report.note("1,000,000 rows in 10,000 queries")
        report.check("speed-up over sorted()", measured=12.3, target=10)
        report.finish()
    """

    def __init__(
        self,
        name: str,
        quick: bool,
        *,
        packages: Sequence[str] = (),
        console: Console | None = None,
    ) -> None:
        # Where there is no terminal (CI, a pipe) Rich would wrap at 80 columns.
        self._console = console or Console(width=None if sys.stdout.isatty() else 120)
        self._table = Table("what", title=f"{name}{' (quick)' if quick else ''}")
        for heading in ("measured", "target", "holds"):
            self._table.add_column(heading, justify="right", no_wrap=True)
        self._name = name
        self._holds: list[bool] = []
        self.note(
            ", ".join(
                [
                    f"Python {platform.python_version()}",
                    *(f"{package} {version(package)}" for package in ("podium-rank", *packages)),
                    f"{cores()} cores",
                ]
            )
        )

    def note(self, text: str) -> None:
        """Print a line of context at once: sizes, settings, where the data come from."""
        self._console.print(escape(text), highlight=False)

    def check(
        self, what: str, measured: float, target: float, at_least: bool = True, unit: str = "x"
    ) -> None:
        """Hold a figure against its target.

        Args:
            what: What was measured, in words.
            measured: The figure; not-a-number never holds.
            target: Its bound, which itself still holds.
            at_least: Whether the target is a lower bound rather than an upper one.
            unit: Printed after both figures.
        """
        holds = measured >= target if at_least else measured <= target
        self._holds.append(holds)
        self._table.add_row(
            escape(what),
            f"{_figure(measured)} {unit}",
            f"{'≥' if at_least else '≤'} {_figure(target)} {unit}",
            "[green]yes[/]" if holds else "[bold red]NO[/]",
        )

    def finish(self) -> NoReturn:
        """Print the table and a summary; exit with 0 only if targets were set and all hold."""
        self._console.print(self._table)
        held, total = sum(self._holds), len(self._holds)
        self.note(f"{self._name}: {held} of {total} targets hold")
        sys.exit(0 if total and held == total else 1)


def _figure(value: float) -> str:
    """Write three significant digits, or whole thousands."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cores() -> int:
    """Count the cores this process may use: a container often has fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
