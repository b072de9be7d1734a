"""``podium train`` and ``podium predict``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console

from podium.cli.options import ClusterAddress, SourceFormat
from podium.cli.progress import byte_progress, step_progress
from podium.cli.text import shown
from podium.data import Dataset, Judgments, ShardSet, format_of, read_qrels, write_run
from podium.data.files import open_write
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.rankers import Ranker

ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", help="A model of the literature, such as RankSVM, FocusedNet or TopRank."
    ),
]
TopK = Annotated[int | None, typer.Option("--k", min=1, help="The top-k form of the model.")]
LossText = Annotated[
    str | None,
    typer.Option(
        "--loss",
        "-l",
        help="A loss instead, such as 'PairHinge(k=10)'. "
        "Default: SquaredError() for trees, ListMLE(k=10) otherwise.",
    ),
]
ScorerName = Annotated[
    Literal["linear", "lightgbm", "xgboost", "neural"] | None,
    typer.Option("--scorer", "-s", help="By default linear for a model, lightgbm for a loss."),
]
LabelsFile = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="Judgments that give the documents their labels, by id: a qrels file, or a project of "
        "a studio, as studio:https://judging.example.org#7.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the ranker, such as alpha=0.01; repeatable."),
]
ValidationMeasure = Annotated[
    str, typer.Option("--measure", "-m", help="The measure on the validation data.")
]
Seed = Annotated[
    int, typer.Option(min=0, help="The same seed on the same machine gives the same model.")
]

_STUDIO = "studio:"
_INTERRUPTED = 130
"""Exit status of a command ended by Ctrl-C."""


def train_command(
    data: Annotated[str, typer.Argument(help="Training data: LETOR, Parquet or shards.")],
    output: Annotated[str, typer.Argument(help="The file to save the ranker in.")],
    model: ModelName = None,
    k: TopK = None,
    loss: LossText = None,
    scorer: ScorerName = None,
    validation: Annotated[
        str | None,
        typer.Option("--validation", help="Validation data, to choose the best iteration by."),
    ] = None,
    labels: LabelsFile = None,
    measure: ValidationMeasure = "nDCG@10",
    settings: Settings = None,
    seed: Seed = 0,
    source_format: SourceFormat = None,
    cluster: ClusterAddress = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(help="With --cluster: the folder or URL a killed fit resumes from."),
    ] = None,
) -> None:
    """Train a ranker: a model by name, or a loss times a scorer.

    Ctrl-C saves the best model so far and ends with status 130; trees and networks on a cluster go
    on from --checkpoints instead.
    """
    parameters = parse_settings(settings)
    ranker = make_ranker(model, k, loss, scorer, parameters, measure=measure, seed=seed)
    if cluster is not None:
        if labels is not None:
            raise ArgumentError("--labels cannot be used with --cluster. Relabel the shards.")
        with (
            _saving(ranker, output),
            step_progress("Training", measure if validation else None) as report,
        ):
            _train_on_cluster(cluster, ranker, data, validation, checkpoints, report)
        return
    with byte_progress("Reading") as progress:
        train = read_labelled(data, source_format, labels, progress)
        held_out = None
        if validation is not None:
            held_out = read_labelled(validation, source_format, labels, progress)
    with (
        _saving(ranker, output),
        step_progress("Training", measure if held_out is not None else None) as report,
    ):
        ranker.fit(train, eval_set=held_out, progress=report)


@contextmanager
def _saving(ranker: Ranker, output: str) -> Iterator[None]:
    """Save the ranker after its fit, or what it learned before Ctrl-C."""
    from podium.rankers import FitInterrupted

    console = Console(stderr=True)
    try:
        yield
    except FitInterrupted as stop:
        ranker.save(output)
        console.print(
            shown(f"Interrupted: saved the best {type(ranker).__name__} so far in {output}.")
        )
        raise typer.Exit(_INTERRUPTED) from stop
    ranker.save(output)
    console.print(shown(f"Saved {type(ranker).__name__} in {output}."))


def _train_on_cluster(
    address: str,
    ranker: Ranker,
    data: str,
    validation: str | None,
    checkpoints: str | None,
    progress: Any,
) -> None:
    # Imported here: Ray is an extra.
    from podium.cluster import Cluster, fit

    with Cluster(address) as cluster:
        fit(
            ranker,
            data,
            eval_set=validation,
            progress=progress,
            checkpoints=checkpoints,
            cluster=cluster,
        )


def predict_command(
    model: Annotated[str, typer.Argument(help="A ranker saved by podium train.")],
    data: Annotated[str, typer.Argument(help="The data to score.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to write; - for standard output.")
    ] = "-",
    as_run: Annotated[
        bool, typer.Option("--run", help="Write a TREC run instead of one score per line.")
    ] = False,
    source_format: SourceFormat = None,
) -> None:
    """Score documents with a saved ranker: one score per line, or a TREC run."""
    from podium.rankers import load_ranker

    ranker = load_ranker(model)
    with byte_progress("Scoring") as progress:
        rows = read_data(data, source_format, progress)
        if as_run:
            whole = rows.load() if isinstance(rows, ShardSet) else rows
            write_run(ranker.rank(whole), output)
            return
        blocks = rows.blocks(progress=progress) if isinstance(rows, ShardSet) else [rows]
        with open_write(output) as write:
            for block in blocks:
                lines = "\n".join(map(repr, ranker.predict(block).tolist()))
                write(f"{lines}\n".encode())


def make_ranker(
    model: str | None,
    k: int | None,
    loss: str | None,
    scorer: Any,
    settings: dict[str, Any],
    *,
    measure: str,
    seed: int,
) -> Ranker:
    """Create a ranker from a model's name, or from a loss and a scorer, with its parameters."""
    # Imported here: rankers need packages that the other commands do not.
    from podium.rankers import models
    from podium.rankers.tune import with_parameters

    if model is None and k is not None:
        raise ArgumentError("--k belongs to --model. Give a loss its k, as 'ListMLE(k=10)'.")
    if model is None:
        scorer = scorer or "lightgbm"
        default = "SquaredError()" if scorer in ("lightgbm", "xgboost") else "ListMLE(k=10)"
        ranker = models.make_ranker(scorer, loss or default)
    elif loss is not None:
        raise ArgumentError("A model has its own loss. Give --model or --loss.")
    else:
        ranker = models.get_model(model)(k, scorer=scorer or "linear")
    common = {"measure": measure, "random_state": seed}
    known = ranker.get_params(deep=False)
    fitting = {name: value for name, value in common.items() if name in known}
    configured = with_parameters(ranker, fitting | settings)
    configured.check_parameters()  # before reading data, which can take long
    return configured


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Parse ``name=value`` strings; a value is JSON if it parses, else a string."""
    parsed: dict[str, Any] = {}
    for setting in settings or []:
        name, separator, value = setting.partition("=")
        if not separator or not name:
            raise ArgumentError(f"{setting!r} is not name=value.")
        try:
            parsed[name] = json.loads(value)
        except ValueError:
            parsed[name] = value
    return parsed


def read_labelled(
    path: str, name: str | None, labels: str | None, progress: Any
) -> Dataset | ShardSet:
    """Read training data, with their own labels or those of judgments."""
    data = read_data(path, name, progress)
    if labels is None:
        return data
    whole = data.load() if isinstance(data, ShardSet) else data
    judged = whole.relabel(read_labels(labels), unjudged=np.nan)
    known = int(np.count_nonzero(~np.isnan(judged.labels)))
    Console(stderr=True).print(
        shown(
            f"{path}: labels for {known} of {judged.rows} documents, the others count as 0, in "
            f"{len(judged)} of {len(whole)} queries."
        )
    )
    return replace(judged, labels=np.nan_to_num(judged.labels, nan=0.0))


def read_labels(source: str) -> Judgments:
    """Read judgments from a qrels file, or from a studio's project, ``studio:URL#NUMBER``."""
    if not source.startswith(_STUDIO):
        return read_qrels(source)
    # Imported here: it needs packages that only users of a studio have.
    from podium.studio.client import StudioClient, project_at

    url, number = project_at(source.removeprefix(_STUDIO))
    with StudioClient(url) as studio:
        return studio.project(number).labels()


def read_data(path: str, name: str | None, progress: Any) -> Dataset | ShardSet:
    """Read data to train on or to score; a shard set stays on disk."""
    entry = format_of(path, name)
    if entry.name == "shards":
        return ShardSet.open(path)
    if entry.kind is not Dataset:
        raise DataError(f"{entry.name} is not a data set", path=path, hint="Pass a data set.")
    options = {} if entry.name == "parquet" else {"progress": progress}
    data: Dataset = entry.read(path, **options)
    if not np.isfinite(data.labels).all():
        raise DataError("a label is not finite", path=path, hint="Fix or remove its row.")
    return data
