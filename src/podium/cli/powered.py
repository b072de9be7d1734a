"""``--machine``: human labels for some queries and a machine's for all."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Annotated

import typer

from podium.cli.printing import on_terminal, print_notes, print_table
from podium.cli.reading import Reading
from podium.data import Rankings
from podium.data.preferences import Preferences
from podium.errors import ArgumentError
from podium.measures import compare_powered
from podium.measures.comparison.prediction_powered import PoweredComparison, PoweredMean
from podium.measures.conventions import Conventions
from podium.measures.presets import Measures
from podium.reports.page import interval_text

MachineLabels = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="QRELS",
        help="A machine's judgments of all queries, where TRUTH has people's of a random sample of "
        "them: prints prediction-powered means (PPI++) beside those by people alone.",
    ),
]
_HEADINGS = (
    *("measure", "system", "mean", "95 % interval", "people alone", "its interval"),
    *("weight", "queries"),
)


def print_powered(
    truth: str,
    machine: str,
    runs: dict[str, Rankings],
    measures: Measures,
    conventions: Conventions | str | None,
    reading: Reading,
    *,
    differences: bool,
    as_json: bool,
) -> None:
    """Print means by human and machine labels, and, if asked, differences from the first run."""
    if not runs:
        raise ArgumentError("--machine needs runs", hint="Give qrels and runs.")
    human, labels = reading.truth(truth), reading.truth(machine)
    if isinstance(human, Preferences) or isinstance(labels, Preferences):
        raise ArgumentError("--machine takes judgments, not preferences", hint="Give qrels.")
    result = compare_powered(measures, human, labels, runs, conventions=conventions)
    if as_json:
        typer.echo(json.dumps(_as_json(result)))
        return
    # 80 columns have no space left for the interval by people alone.
    kept = [at for at, name in enumerate(_HEADINGS) if name != "its interval" or not on_terminal()]
    rows = [[row[at] for at in kept] for row in _rows(result, differences)]
    print_table([_HEADINGS[at] for at in kept], rows, names=2)
    print_notes(
        [
            "Queries: judged by people, and by the machine alone. Weight: how much the machine "
            "counts; 0 is not at all."
        ]
    )


def _rows(result: PoweredComparison, differences: bool) -> list[list[str]]:
    rows = []
    for measure, means in result.means.items():
        for system, mean in means.items():
            rows.append([repr(measure), system, *_cells(mean, "")])
        if differences:
            baseline = next(iter(means))
            for system, difference in result.differences[measure].items():
                rows.append([repr(measure), f"{system} - {baseline}", *_cells(difference, "+")])
    return rows


def _cells(mean: PoweredMean, sign: str) -> list[str]:
    return [
        f"{mean.mean:{sign}.4f}",
        interval_text(mean.low, mean.high, sign),
        f"{mean.human_mean:{sign}.4f}",
        interval_text(mean.human_low, mean.human_high, sign),
        f"{mean.weight:.2f}",
        f"{mean.human_queries}+{mean.machine_queries}",
    ]


def _as_json(result: PoweredComparison) -> dict[str, object]:
    def content(mean: PoweredMean) -> dict[str, float | None]:
        values = asdict(mean) | {"effective_queries": mean.effective_queries}
        return {name: None if math.isnan(value) else value for name, value in values.items()}

    return {
        "means": {
            repr(measure): {system: content(mean) for system, mean in means.items()}
            for measure, means in result.means.items()
        },
        "differences": {
            repr(measure): {system: content(mean) for system, mean in means.items()}
            for measure, means in result.differences.items()
        },
    }
