"""``podium reproduce``."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from podium.cli.fit_report import FitReport
from podium.cli.printing import print_facts
from podium.cli.run_folder import (
    RANKER_FILE,
    digest_of,
    installed_versions,
    located,
    machine,
    read_record,
)


def reproduce_command(
    run_dir: Annotated[str, typer.Argument(help="A folder that podium train --run-dir made.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train a recorded run again, and say whether ranker and measures are the same.

    The exit status is 0 if they are and 1 if not. Data other than the recorded are refused.
    """
    record = read_record(run_dir)
    request = located(record)
    report = FitReport(request.measure if request.validation is not None else None)
    ranker = request.ranker()
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / RANKER_FILE)
        request.fit(ranker, file, report)
        same_ranker = digest_of(file) == record.ranker
    measures = report.facts.get("validation_measure", {})
    kept = Path(run_dir) / RANKER_FILE
    outcome: dict[str, Any] = {
        "same_ranker": same_ranker,
        "same_measures": measures == record.measures,
        "saved_ranker_is_recorded": kept.exists() and digest_of(kept) == record.ranker,
        "measures": {"then": dict(record.measures), "now": measures},
        "other_versions": _changes(record.versions, installed_versions()),
        "other_machine": None if machine() == record.machine else [record.machine, machine()],
    }
    if as_json:
        typer.echo(json.dumps(outcome))
    else:
        print_facts(_words(outcome))
    holds = ("same_ranker", "same_measures", "saved_ranker_is_recorded")
    if not all(outcome[name] for name in holds):
        raise typer.Exit(1)


def _changes(then: Any, now: dict[str, str]) -> dict[str, list[str | None]]:
    names = sorted({*then, *now})
    return {
        name: [then.get(name), now.get(name)] for name in names if then.get(name) != now.get(name)
    }


def _words(outcome: dict[str, Any]) -> dict[str, str]:
    then, now = outcome["measures"]["then"], outcome["measures"]["now"]
    facts = {
        "ranker": "the same bytes" if outcome["same_ranker"] else "different bytes",
        "saved ranker": "as recorded"
        if outcome["saved_ranker_is_recorded"]
        else f"{RANKER_FILE} is missing, or not what the run saved",
    }
    for name, value in then.items():
        again = now.get(name)
        facts[f"validation {name}"] = (
            f"the same: {value:.4f}" if again == value else f"{value!r} then, {again!r} now"
        )
    for name, (old, new) in outcome["other_versions"].items():
        facts[f"version of {name}"] = f"{old} then, {new} now"
    if outcome["other_machine"] is not None:
        facts["machine"] = " then, ".join(outcome["other_machine"]) + " now"
    return facts
