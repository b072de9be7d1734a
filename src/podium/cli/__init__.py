"""The ``podium`` command: one file per command, nothing but parsing, progress and printing.

A command's file is imported when the command is used: most of them import packages with compiled
code or heavy dependencies that the others do not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import podium
from podium.cli.app import App, Group
from podium.cli.failing import one_line_errors
from podium.errors import ArgumentError
from podium.registry import unknown_name

_COMMANDS = {
    "Judge": {
        "judge": (
            "podium.cli.judge:judge_command",
            "Judge documents pair by pair with the keyboard, until each query's top k is in order.",
        ),
        "audit": (
            "podium.cli.audit:audit_command",
            "Audit a language model: may it judge in the place of a person, and for what?",
        ),
        "simulate": (
            "podium.cli.simulate:simulate_command",
            "Plan a judging project: how many judgments, hours and people it takes.",
        ),
        "studio": (
            "podium.cli.studio:app",
            "Judge with a team in the browser; without a command, a demonstration in this folder.",
        ),
    },
    "Learn": {
        "train": (
            "podium.cli.train:train_command",
            "Train a ranker: a model by name, a loss with a scorer, or with --text a transformer.",
        ),
        "tune": (
            "podium.cli.tune:tune_command",
            "Choose parameters on validation queries, and save the best ranker.",
        ),
        "hybrid": (
            "podium.cli.hybrid:app",
            "One ranking of several result lists, with weights chosen on judged queries.",
        ),
        "predict": (
            "podium.cli.train:predict_command",
            "Score documents with a saved ranker: one score per line, or a TREC run.",
        ),
        "explain": (
            "podium.cli.explain:explain_command",
            "Explain why a document is above another, and what would swap them.",
        ),
        "importance": (
            "podium.cli.importance:importance_command",
            "Measure what is lost when a feature is permuted within queries.",
        ),
        "card": (
            "podium.cli.card:card_command",
            "Write a model card or a data card, as Markdown or as an HTML page.",
        ),
        "reproduce": (
            "podium.cli.reproduce:reproduce_command",
            "Train a recorded run again, and say whether ranker and measures are the same.",
        ),
    },
    "Measure": {
        "evaluate": (
            "podium.cli.evaluate:evaluate_command",
            "Evaluate rankings by any measure and any tool's conventions.",
        ),
        "compare": (
            "podium.cli.compare:compare_command",
            "Compare systems: means, intervals, tests, effects, and whether results are coherent.",
        ),
        "plan": (
            "podium.cli.plan:plan_command",
            "Plan a comparison: how many queries it takes, or which documents to judge next.",
        ),
        "drift": (
            "podium.cli.drift:drift_command",
            "Compare each feature of today's rankings with the training data.",
        ),
        "utility": (
            "podium.cli.utility:app",
            "Gains and discounts from preferences between rankings.",
        ),
    },
    "Ship": {
        "export": (
            "podium.cli.export:export_command",
            "Write a ranker in another engine's format, with rows that prove its scores.",
        ),
        "verify": (
            "podium.cli.verify:verify_command",
            "Score the golden rows of an export, and explain every difference.",
        ),
        "deploy": (
            "podium.cli.deploy:app",
            "Versions of a ranker in a running engine: put, list, switch, roll back, delete.",
        ),
        "serve": (
            "podium.cli.serve:serve_command",
            "Serve rankers over HTTP: the Open Inference Protocol, and /rank with named features.",
        ),
        "online": (
            "podium.cli.online:app",
            "What users do with two rankings: interleaving and A/B tests.",
        ),
    },
    "Data": {
        "convert": (
            "podium.cli.convert:convert_command",
            "Convert between formats, or to a folder of shards (a TARGET without an ending).",
        ),
        "describe": (
            "podium.cli.describe:describe_command",
            "Summarize a file: queries, labels, documents per query, ranges of features.",
        ),
        "features": (
            "podium.cli.features:app",
            "Definitions of features, and data sets that follow them.",
        ),
        "clicks": (
            "podium.cli.clicks:app",
            "Logs of searches and clicks: one more assessor, cheap, plentiful and biased.",
        ),
    },
}
"""For each group of the help: every command's function, or application with several commands, and
what the help says of it, so that listing commands imports none of them."""

_TARGETS = {name: target for group in _COMMANDS.values() for name, (target, _) in group.items()}


class _LazyCommands(Group):
    """Commands that are imported on first use, and not to be listed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._listed: dict[str, TyperCommand] = {}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listed = {
            name: TyperCommand(name, help=summary, rich_help_panel=group)
            for group, commands in _COMMANDS.items()
            for name, (_, summary) in commands.items()
        }
        super().format_help(ctx, formatter)
        self._listed = {}

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(_TARGETS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self._listed:
            return self._listed[cmd_name]
        if cmd_name not in _TARGETS:
            if not ctx.resilient_parsing and not cmd_name.startswith("-"):
                ctx.fail(str(unknown_name("command", cmd_name, list(_TARGETS))))
            return None
        module, _, name = _TARGETS[cmd_name].partition(":")
        target = getattr(import_module(module), name)
        command: Any
        if isinstance(target, typer.Typer):
            command = typer.main.get_group(target)
        else:
            single_command_app = App(rich_markup_mode="markdown", add_completion=False)
            single_command_app.command(cmd_name)(target)
            command = typer.main.get_command(single_command_app)
        command.name = cmd_name
        return command


app = App(
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
            help="Import a Python module first, which registers what it defines: losses, measures, "
            "rankers, feature sources, export targets, formats, selection algorithms.",
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
    """Run the command line; an error is one line, not a traceback, and ends with status 2."""
    with one_line_errors():
        app()
