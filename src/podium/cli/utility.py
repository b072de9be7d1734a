"""``podium utility``: learn gains and discounts from preferences, choose pairs, report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console

from podium.cli.app import App
from podium.cli.evaluate import read_systems
from podium.cli.options import JsonOutput
from podium.cli.outputs import require_other_file
from podium.cli.printing import print_table
from podium.cli.progress import byte_progress, stage_progress
from podium.cli.reading import Reading
from podium.cli.text import shown
from podium.data import Judgments
from podium.data.files import open_write
from podium.errors import DataError
from podium.utility import DCGLearn, RankingPreferences, utility_report
from podium.utility.bootstrap import Intervals, bootstrap_utility
from podium.utility.learn import choose_C
from podium.utility.learned_utility import LearnedUtility, write_learned
from podium.utility.next_pair import next_positions
from podium.utility.preferences_file import read_records, records_to_preferences
from podium.utility.report import UtilityReport
from podium.utility.report_html import report_html
from podium.utility.systems import Flips, flips

app = App(
    help="Gains and discounts from preferences between rankings.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Preferences = Annotated[
    str,
    typer.Argument(help='JSONL, one pair per line: {"left": [2, 0], "right": [1, 1], "choice": 1}'),
]
Form = Annotated[
    Literal["rank-one", "by-position"],
    typer.Option(help="Gains times discounts, or gains that may differ by position."),
]
Weight = Annotated[
    float | None,
    typer.Option("--C", help="Weight of the slacks; by default chosen by cross-validation."),
]
Decreasing = Annotated[
    bool, typer.Option("--decreasing", help="Do not let a grade gain more at a lower position.")
]
Normalized = Annotated[
    bool, typer.Option("--normalized", help="Take leads relative to the ideal, as nDCG does.")
]
TieWeight = Annotated[float, typer.Option(min=0, help="Weight of a tie; 0 leaves ties out.")]
Much = Annotated[float, typer.Option(min=1, help='The lead asked of "much better".')]
Grades = Annotated[
    int | None, typer.Option(min=2, max=256, help="How many grades there are, from 0.")
]
Depth = Annotated[int | None, typer.Option(min=1, max=1000, help="How many positions count.")]
Seed = Annotated[int, typer.Option(help="Random seed for folds and samples.")]


@app.command("learn")
def learn_command(
    preferences: Preferences,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write what was learned to this file.")
    ] = None,
    weight: Weight = None,
    form: Form = "rank-one",
    decreasing: Decreasing = False,
    normalized: Normalized = False,
    tie_weight: TieWeight = 1.0,
    much: Much = 1.0,
    grades: Grades = None,
    depth: Depth = None,
    intervals: Annotated[
        int, typer.Option(min=0, help="Resamples for 95 % intervals; 0 for none.")
    ] = 200,
    seed: Seed = 0,
    as_json: JsonOutput = False,
) -> None:
    """Learn gains and discounts, and print the measure they make.

    The last line is the measure, ready for `podium evaluate -m` and `podium compare -m`.
    """
    require_other_file(output, preferences)
    pairs = _read(preferences, grades, depth)
    model = DCGLearn(weight, form, decreasing, tie_weight, much, normalized, random_state=seed)
    with stage_progress() as stage:
        if model.C is None:
            model = replace(model, C=choose_C(model, pairs, progress=stage("Choosing C")))
        learned = model.fit(pairs).learned_
        ends = None
        if intervals:
            count = max(intervals, 2)
            ends = bootstrap_utility(
                model,
                pairs,
                learned,
                resamples=count,
                random_state=seed,
                progress=stage("Intervals"),
            )
    if output is not None:
        write_learned(learned, output)
    if as_json:
        typer.echo(json.dumps(_learned_json(learned, ends, pairs)))
        return
    _print_learned(learned, ends, pairs)
    typer.echo(repr(learned.measure))


@app.command("next")
def next_command(
    pool: Annotated[str, typer.Argument(help="JSONL of pairs to choose from, without choices.")],
    verdicts: Annotated[
        str | None, typer.Option(help="JSONL of the verdicts so far; by default none.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many pairs.")] = 1,
    strategy: Annotated[
        Literal["change", "margin", "random"],
        typer.Option(help="Expected change, smallest margin, or random."),
    ] = "change",
    first: Annotated[int, typer.Option(min=0, help="Random pairs to begin with.")] = 20,
    grades: Grades = None,
    depth: Depth = None,
    seed: Seed = 0,
) -> None:
    """Print the most informative pairs, as lines of the pool.

    Never printed: pairs whose verdict is certain whatever the gains, and pairs that compare the
    same as one judged before.
    """
    with byte_progress("Reading") as progress:
        lines = list(read_records(pool, judged=False, progress=progress))
        judged = [] if verdicts is None else list(read_records(verdicts, judged=True))
    both = records_to_preferences([*lines, *judged], grades=grades, depth=depth)
    indices = next_positions(
        both.take(np.arange(len(lines))),
        both.take(np.arange(len(lines), len(both))),
        strategy=strategy,
        first=first,
        random_state=seed,
    )
    for index in indices[:count].tolist():
        typer.echo(json.dumps(lines[index]))
    if not len(indices):
        Console(stderr=True).print("No informative pair is left in the pool.")


@app.command("report")
def report_command(
    preferences: Preferences,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The HTML file to write.")
    ] = "utility.html",
    truth: Annotated[
        str | None, typer.Option(help="Judgments (qrels), to compare systems with.")
    ] = None,
    runs: Annotated[
        list[str] | None, typer.Option("--run", help="A run of a system; repeatable.")
    ] = None,
    weight: Weight = None,
    form: Form = "rank-one",
    decreasing: Decreasing = False,
    normalized: Normalized = False,
    tie_weight: TieWeight = 1.0,
    much: Much = 1.0,
    grades: Grades = None,
    depth: Depth = None,
    resamples: Annotated[
        int, typer.Option(min=20, help="Bootstrap resamples for the intervals.")
    ] = 200,
    test_position: Annotated[
        bool, typer.Option(help="Test whether gains depend on the position.")
    ] = True,
    seed: Seed = 0,
    as_json: JsonOutput = False,
) -> None:
    """Learn, and write a page on what was learned and how reliable it is.

    With `--truth` and `--run` it also shows which comparisons of your systems flip.
    """
    require_other_file(output, preferences, truth, *(runs or ()))
    pairs = _read(preferences, grades, depth)
    model = DCGLearn(weight, form, decreasing, tie_weight, much, normalized, random_state=seed)
    with stage_progress() as stage:
        report = utility_report(
            pairs,
            model,
            resamples=resamples,
            test_position=test_position,
            flips=_systems(truth, runs),
            random_state=seed,
            progress=stage,
        )
    with open_write(output) as write:
        write(report_html(report).encode())
    _print_report(report, as_json=as_json)


def _read(path: str, grades: int | None, depth: int | None) -> RankingPreferences:
    with byte_progress("Reading") as progress:
        records = list(read_records(path, judged=True, progress=progress))
    return records_to_preferences(records, grades=grades, depth=depth)


def _systems(truth: str | None, runs: list[str] | None) -> Callable[[LearnedUtility], Flips] | None:
    if truth is None and not runs:
        return None
    if truth is None or len(runs or []) < 2:
        raise DataError(
            "comparisons need judgments and two runs", hint="Give --truth, and --run twice or more."
        )
    judgments = Reading().truth(truth)
    if not isinstance(judgments, Judgments):
        raise DataError("has no judgments", path=truth, hint="Pass qrels as --truth.")
    systems = read_systems(runs or [], Reading())
    return lambda learned: flips(learned, judgments, systems)


def _print_learned(
    learned: LearnedUtility, ends: Intervals | None, pairs: RankingPreferences
) -> None:
    strict = int(pairs.strict.sum())
    typer.echo(
        f"{len(pairs):,} pairs, {strict:,} of them strict; C = {learned.C:g}; agrees with "
        f"{learned.accuracy(pairs):.1%} of what it was learned from"
    )
    for title, values, interval in (
        ("grade", learned.gains, None if ends is None else ends.gains),
        ("position", learned.discounts, None if ends is None else ends.discounts),
    ):
        headings = [title, "gain" if title == "grade" else "discount", "95 % interval"]
        rows = []
        for index, value in enumerate(values.tolist()):
            bounds = "-"
            if interval is not None:
                bounds = f"{interval[0, index]:.4f} to {interval[1, index]:.4f}"
            rows.append([str(index + (title == "position")), f"{value:.4f}", bounds])
        print_table(headings, rows)


def _learned_json(
    learned: LearnedUtility, ends: Intervals | None, pairs: RankingPreferences
) -> dict[str, Any]:
    return {
        "measure": repr(learned.measure),
        "pairs": len(pairs),
        "strict": int(pairs.strict.sum()),
        "C": learned.C,
        "accuracy": learned.accuracy(pairs),
        "gains": learned.gains.tolist(),
        "discounts": learned.discounts.tolist(),
        "gain_intervals": None if ends is None else ends.gains.T.tolist(),
        "discount_intervals": None if ends is None else ends.discounts.T.tolist(),
    }


def _print_report(report: UtilityReport, *, as_json: bool) -> None:
    if as_json:
        accuracies = [
            {"utility": each.name, "share": each.share, "interval": [each.low, each.high]}
            for each in report.accuracies
        ]
        typer.echo(json.dumps({"accuracies": accuracies, "notes": report.notes()}))
        return
    rows = [
        [each.name, f"{each.share:.1%}", f"{each.low:.1%} to {each.high:.1%}"]
        for each in report.accuracies
    ]
    print_table(["utility", "agrees with", "95 % interval"], rows)
    for note in report.notes():
        typer.echo(shown(note).plain)
