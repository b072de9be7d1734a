"""Printing results: aligned columns on a terminal, tab-separated values anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from podium.cli.text import shown

_GAP = "  "
_LEAST = 4
"""A name is never cut to fewer characters."""


def on_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: int = 1,
    bold: Sequence[bool] = (),
) -> None:
    """Print a table: names in the first columns, values in all others.

    On a terminal, names are cut to make a line fit and values never are. Elsewhere columns are
    separated by tabs, and nothing is cut.

    Args:
        headings: A heading for each column.
        rows: The cells of each row.
        names: How many columns are names.
        bold: Which rows stand out on a terminal.
    """
    cells = [[shown(cell).plain for cell in row] for row in (headings, *rows)]
    if not on_terminal():
        for row in cells:
            typer.echo("\t".join(row))
        return
    console = Console()
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    _narrow(widths, names, console.width)
    for index, row in enumerate(cells):
        parts = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            if column >= names:
                parts.append(" " * (width - cell_len(cell)) + cell)
            elif cell_len(cell) > width:
                parts.append(set_cell_size(cell, width - 1) + "…")
            else:
                parts.append(set_cell_size(cell, width))
        strong = index == 0 or (bool(bold) and bold[index - 1])
        line = Text(_GAP.join(parts).rstrip(), style="bold" if strong else "")
        console.print(line, soft_wrap=True)


def print_facts(facts: Mapping[str, str], *, to_stderr: bool = False) -> None:
    """Print names and what is known of them, a line for each."""
    width = max(map(cell_len, facts))
    aligned = on_terminal() or to_stderr
    for name, fact in facts.items():
        gap = " " * (width - cell_len(name)) + _GAP if aligned else "\t"
        typer.echo(f"{shown(name).plain}{gap}{shown(fact).plain}", err=to_stderr)


def print_notes(notes: Sequence[str]) -> None:
    """Print remarks on a table below it; they are for people, not for programs that read it."""
    if on_terminal():
        for note in notes:
            Console().print(shown(note), style="dim", highlight=False)


def _narrow(widths: list[int], names: int, available: int) -> None:
    """Take what a line is too long from the widest columns of names."""
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - available
    while excess > 0 and names:
        widest = max(range(names), key=lambda column: widths[column])
        if widths[widest] <= _LEAST:
            break
        widths[widest] -= 1
        excess -= 1
