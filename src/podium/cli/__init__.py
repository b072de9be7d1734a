"""The ``podium`` command: one file per verb, nothing but parsing, progress and printing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import podium
from podium.cli.compare import compare_command
from podium.cli.convert import convert_command
from podium.cli.describe import describe_command
from podium.cli.evaluate import evaluate_command
from podium.cli.text import shown
from podium.cli.train import predict_command, train_command
from podium.cli.tune import tune_command
from podium.errors import PodiumError

app = typer.Typer(
    name="podium",
    help="From pairwise judgments to a ranker in production, with the ordered top k as truth.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("convert")(convert_command)
app.command("describe")(describe_command)
app.command("evaluate")(evaluate_command)
app.command("compare")(compare_command)
app.command("train")(train_command)
app.command("predict")(predict_command)
app.command("tune")(tune_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"podium {podium.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """From pairwise judgments to a ranker in production, with the ordered top k as truth."""


def main() -> None:
    """Run the command line; an error of the user's data is one line, not a traceback."""
    try:
        app()
    except (PodiumError, OSError) as error:
        message = Text.assemble(("Error: ", "bold red"), shown(str(error)))
        Console(stderr=True).print(message, soft_wrap=True)
        sys.exit(1)
