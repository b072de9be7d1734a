"""``podium compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from podium.cli.evaluate import (
    ConventionName,
    Measure,
    Truth,
    TruthFormat,
    read_rankings,
    read_truth,
    unique_name,
)
from podium.cli.progress import spinner
from podium.cli.text import shown
from podium.data import Rankings
from podium.data.files import open_write
from podium.errors import DataError
from podium.measures import Comparison, as_html, as_json, as_latex, as_markdown, compare
from podium.measures.comparison.formats import notes
from podium.measures.comparison.result import HEADINGS

_WRITERS = {".html": as_html, ".md": as_markdown, ".tex": as_latex, ".json": as_json}


def compare_command(
    truth: Truth,
    runs: Annotated[list[str], typer.Argument(help="Two runs or more; the first is the baseline.")],
    measures: Measure = ["nDCG@10"],  # noqa: B006 (Typer copies it)
    conventions: ConventionName = None,
    test: Annotated[
        Literal["randomisation", "t", "wilcoxon", "sign"],
        typer.Option(help="The paired test for significance."),
    ] = "randomisation",
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", help="Also write a report: .html, .md, .tex or .json."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the randomisation test.")] = 0,
    truth_format: TruthFormat = None,
) -> None:
    """Compare systems: means, intervals, tests, effect sizes, and whether the verdict is coherent.

    A verdict is coherent if other sensible gains and discounts of DCG agree with it.
    """
    for path in output or []:
        if Path(path).suffix not in _WRITERS:
            raise DataError(
                "cannot be written as a report",
                path=path,
                hint=f"Name a file that ends with {', '.join(_WRITERS)}.",
            )
    with spinner("Comparing"):
        judgments = read_truth(truth, truth_format)
        systems: dict[str, Rankings] = {}
        for path in runs:
            run = read_rankings(path)
            systems[unique_name(run, path, systems)] = run
        comparison = compare(
            measures, judgments, systems, conventions=conventions, test=test, seed=seed
        )
    _print(comparison)
    for path in output or []:
        with open_write(path) as write:
            write(_WRITERS[Path(path).suffix](comparison).encode())


def _print(comparison: Comparison) -> None:
    """Print what fits a terminal of 80 columns; the reports have every column."""
    console = Console()
    table = Table(box=None, padding=(0, 1))
    columns = ("measure", "system", "mean", "difference", "p (Holm)", "win/tie/loss")
    for column, heading in enumerate((*columns, "coherent")):
        table.add_column(
            heading, justify="left" if column < 2 else "right", no_wrap=column != 1, overflow="fold"
        )
    for row in comparison.rows():
        cells = dict(zip(HEADINGS, map(shown, row), strict=True))
        significant = cells["difference"].plain.endswith("*")
        table.add_row(
            *(cells[heading] for heading in (*columns, "coherent")),
            style="bold" if significant else None,
        )
    console.print(table)
    for note in notes(comparison):
        console.print(note, style="dim", highlight=False, markup=False)
