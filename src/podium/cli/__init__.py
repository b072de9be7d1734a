"""The ``podium`` command: one file per command, nothing but parsing, progress and printing.

A command's file is imported when the command is used: most of them import packages with compiled
code or heavy dependencies that the others do not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import podium
from podium.cli.failing import one_line_errors
from podium.errors import ArgumentError

_COMMANDS = {
    "convert": "podium.cli.convert:convert_command",
    "describe": "podium.cli.describe:describe_command",
    "judge": "podium.cli.judge:judge_command",
    "audit": "podium.cli.audit:audit_command",
    "simulate": "podium.cli.simulate:simulate_command",
    "train": "podium.cli.train:train_command",
    "reproduce": "podium.cli.reproduce:reproduce_command",
    "predict": "podium.cli.train:predict_command",
    "tune": "podium.cli.tune:tune_command",
    "evaluate": "podium.cli.evaluate:evaluate_command",
    "compare": "podium.cli.compare:compare_command",
    "plan": "podium.cli.plan:plan_command",
    "explain": "podium.cli.explain:explain_command",
    "importance": "podium.cli.importance:importance_command",
    "card": "podium.cli.card:card_command",
    "export": "podium.cli.export:export_command",
    "verify": "podium.cli.verify:verify_command",
    "deploy": "podium.cli.deploy:app",
    "serve": "podium.cli.serve:serve_command",
    "features": "podium.cli.features:app",
    "clicks": "podium.cli.clicks:app",
    "drift": "podium.cli.drift:drift_command",
    "utility": "podium.cli.utility:app",
    "studio": "podium.cli.studio:app",
}
"""Every command: its function, or an application with several commands."""


class _LazyCommands(TyperGroup):
    """Commands that are imported on first use."""

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        target = getattr(import_module(module), name)
        command: Any
        if isinstance(target, typer.Typer):
            command = typer.main.get_group(target)
        else:
            single_command_app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
            single_command_app.command(cmd_name)(target)
            command = typer.main.get_command(single_command_app)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="podium",
    cls=_LazyCommands,
    help="From pairwise judgments to a ranker in production; the ordered top k is ground truth.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(show_version: bool) -> None:
    if show_version:
        typer.echo(f"podium {podium.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    use: Annotated[
        list[str] | None,
        typer.Option(
            "--use",
            metavar="MODULE",
            help="Import a Python module first: your own losses, measures, algorithms or formats.",
        ),
    ] = None,
) -> None:
    """From pairwise judgments to a ranker in production; the ordered top k is ground truth."""
    for name in use or []:
        try:
            import_module(name)
        except ImportError as error:
            raise ArgumentError(
                f"{name} cannot be imported ({error}). Is its folder in PYTHONPATH?"
            ) from error


def main() -> None:
    """Run the command line; an error is one line, not a traceback."""
    with one_line_errors(1):
        app()
