"""``podium compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from podium.cli.evaluate import ConventionName, Measure, Truth, read_systems
from podium.cli.options import JsonOutput
from podium.cli.powered import MachineLabels, print_powered
from podium.cli.printing import print_notes, print_table
from podium.cli.progress import spinner
from podium.cli.reading import Reading, reads_data
from podium.data import Preferences
from podium.data.files import open_write
from podium.errors import ArgumentError, DataError
from podium.measures import Comparison, as_html, as_json, as_latex, as_markdown, compare
from podium.measures.comparison.formats import notes
from podium.measures.comparison.result import HEADINGS

_WRITERS = {".html": as_html, ".md": as_markdown, ".tex": as_latex, ".json": as_json}


@reads_data
def compare_command(
    truth: Truth,
    runs: Annotated[list[str], typer.Argument(help="Two runs or more; the first is the baseline.")],
    measures: Measure = None,
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
    machine: MachineLabels = None,
    as_json_output: JsonOutput = False,
    *,
    reading: Reading,
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
    if machine is not None:
        if output:
            raise ArgumentError("--machine writes no report", hint="Leave out --output.")
        print_powered(
            truth,
            machine,
            read_systems(runs),
            measures or ["nDCG@10"],
            conventions,
            reading,
            differences=True,
            as_json=as_json_output,
        )
        return
    with spinner("Comparing"):
        judged = reading.truth(truth)
        default = ["ppref"] if isinstance(judged, Preferences) else ["nDCG@10"]
        comparison = compare(
            measures or default,
            judged,
            read_systems(runs),
            conventions=conventions,
            test=test,
            seed=seed,
        )
    if as_json_output:
        typer.echo(as_json(comparison))
    else:
        _print(comparison)
    for path in output or []:
        with open_write(path) as write:
            write(_WRITERS[Path(path).suffix](comparison).encode())


def _print(comparison: Comparison) -> None:
    """Print what fits a terminal of 80 columns; the reports have every column."""
    columns = ("measure", "system", "mean", "difference", "p (Holm)", "win/tie/loss", "coherent")
    rows, bold = [], []
    for row in comparison.rows():
        cells = dict(zip(HEADINGS, row, strict=True))
        rows.append([cells[heading] for heading in columns])
        bold.append(cells["difference"].endswith("*"))
    print_table(columns, rows, names=2, bold=bold)
    print_notes(list(notes(comparison)))
