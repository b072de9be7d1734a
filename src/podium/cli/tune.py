"""``podium tune``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli.fit_report import FitReport
from podium.cli.options import ClusterAddress, cluster_at
from podium.cli.outputs import require_other_file
from podium.cli.printing import print_table
from podium.cli.progress import byte_progress, spinner
from podium.cli.reading import Reading, reads_data
from podium.cli.train import (
    LabelsFile,
    LabelsTopK,
    LossText,
    ModelName,
    ScorerName,
    Seed,
    Settings,
    TopK,
    ValidationMeasure,
)
from podium.cli.training import LabelSource, make_ranker, parse_settings, read_labeled
from podium.errors import ArgumentError

if TYPE_CHECKING:
    from podium.rankers.tuning import Trial, TuningResult


@reads_data
def tune_command(
    data: Annotated[str, typer.Argument(help="Training data: LETOR, CSV, TSV, Parquet or shards.")],
    output: Annotated[str, typer.Argument(help="The file to save the best ranker in.")],
    validation: Annotated[
        str, typer.Option("--validation", help="Validation data, to choose the best by.")
    ],
    choices: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            help="Values of a parameter, such as alpha=1e-4,1e-3; repeatable. Default: "
            "a built-in grid.",
        ),
    ] = None,
    model: ModelName = None,
    k: TopK = None,
    loss: LossText = None,
    scorer: ScorerName = None,
    labels: LabelsFile = None,
    top_k: LabelsTopK = 10,
    measure: ValidationMeasure = "nDCG@10",
    settings: Settings = None,
    n_trials: Annotated[
        int | None, typer.Option(min=1, help="How many combinations to try; by default all.")
    ] = None,
    sampler: Annotated[
        Literal["random", "tpe"],
        typer.Option(
            help="How to choose them: at random, or by Optuna's tree-structured Parzen estimator, "
            "which learns from earlier trials and stops poor ones early (extra tuning)."
        ),
    ] = "random",
    seed: Seed = 0,
    results: Annotated[
        str | None,
        typer.Option(help="A Parquet table for results; combinations in it are not run again."),
    ] = None,
    cluster: ClusterAddress = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all trials and the report as JSON.")
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Choose parameters on validation queries, and save the best ranker.

    All trials are printed, best first, and a report lists what was read, used and chosen.
    """
    from podium.cluster.tuning import tune

    require_other_file(output, data, validation, labels, results, reading.group)
    require_other_file(results, data, validation, labels, reading.group)
    parameters = parse_settings(settings)
    ranker = make_ranker(model, k, loss, scorer, parameters, measure=measure, seed=seed)
    grid = parse_choices(choices) if choices else _grid(model, k, scorer)
    facts = FitReport(measure)
    source = LabelSource(labels, top_k, seed)
    with byte_progress("Reading") as progress:
        train = read_labeled("training", data, reading, source, facts, progress)
        held_out = read_labeled("validation", validation, reading, source, facts, progress)
    with spinner("Tuning") as status:

        def report(number: int, total: int, trial: Trial) -> None:
            status.update(f"Tuning: trial {number} of {total}, {measure} {trial.value:.4f}")

        result = tune(
            ranker,
            grid,
            train,
            held_out,
            measure=measure,
            n_trials=n_trials,
            random_state=seed,
            sampler=sampler,
            progress=report,
            results=results,
            cluster=cluster_at(cluster),
        )
    result.best_ranker.save(output)
    best = result.trials[0]
    facts.chosen(dict(best.params), best.value, len(result.trials))
    facts.saved(result.best_ranker, output)
    if as_json:
        facts.facts["results"] = [
            {"params": dict(trial.params), measure: trial.value, "pruned": trial.pruned}
            for trial in result.trials
        ]
    else:
        _print(result, measure)
    facts.print(as_json=as_json)


def _grid(model: str | None, k: int | None, scorer: Any) -> Mapping[str, Sequence[Any]]:
    """Return the default grid of a model or scorer."""
    from podium.rankers import models

    if model is None:
        return models.scorer_grid(scorer or "lightgbm")
    grid = models.get_model(model).grid(k, scorer=scorer or "linear")
    if not grid:
        raise ArgumentError(f"{model} has nothing to tune but its rounds. Use podium train.")
    return grid


def parse_choices(texts: list[str]) -> dict[str, list[Any]]:
    """Parse ``name=value,value`` strings; values are JSON if they parse, else strings."""
    choices: dict[str, list[Any]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        if not separator or not name or not values:
            raise ArgumentError(f"{text!r} is not name=value,value.")
        choices[name] = [parse_settings([f"{name}={value}"])[name] for value in _split(values)]
    return choices


def _split(values: str) -> list[str]:
    """Split at commas outside brackets: ``[64,32],[8]`` are two values."""
    parts, depth = [""], 0
    for char in values:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _print(result: TuningResult, measure: str) -> None:
    names = list(result.trials[0].params)
    rows = [
        [
            *(json.dumps(trial.params[name], default=repr) for name in names),
            "pruned" if trial.pruned else f"{trial.value:.4f}",
        ]
        for trial in result.trials
    ]
    print_table([*names, measure], rows, names=len(names))
