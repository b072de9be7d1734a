"""``podium train`` and ``podium predict``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console

from podium.cli.fit_report import FitReport
from podium.cli.options import RANKER_HELP, ClusterAddress
from podium.cli.outputs import require_other_file
from podium.cli.progress import byte_progress, step_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.text import shown
from podium.cli.text_ranking import (
    Checkpoint,
    Depth,
    DocumentsFile,
    TextSource,
    TopicsFile,
    predict_text,
    read_text_rows,
    refuse_for_texts,
)
from podium.data import Dataset, Judgments, ShardSet, write_run
from podium.data.files import open_write, plain_suffix
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.rankers import Ranker, TextRanker

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
        "Default: SquaredError() for trees, ListNet(k=10) with --text, ListMLE(k=10) otherwise.",
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
        help="Judgments that give the documents their labels, by id: a qrels file, preferences "
        "(.pref), of which the order of the top k is estimated, or a project of a studio, as "
        "studio:https://judging.example.org#7.",
    ),
]
LabelsTopK = Annotated[
    int, typer.Option("--top-k", min=1, help="With preferences as --labels: how many to order.")
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

STUDIO = "studio:"
_INTERRUPTED = 130
"""Exit status of a command ended by Ctrl-C."""


@dataclass(frozen=True)
class TrainingRequest:
    """What ``podium train`` learns from files, and how.

    Attributes are the options of the command, but for where it works and what it writes.
    """

    data: str
    model: str | None
    k: int | None
    loss: str | None
    scorer: str | None
    validation: str | None
    labels: str | None
    top_k: int
    measure: str
    settings: dict[str, Any]
    seed: int
    reading: Reading

    def ranker(self) -> Ranker:
        """Create the ranker that is to be fitted."""
        return make_ranker(
            self.model,
            self.k,
            self.loss,
            self.scorer,
            self.settings,
            measure=self.measure,
            seed=self.seed,
        )

    def fit(self, ranker: Ranker, output: str, report: FitReport) -> None:
        """Read the files, fit the ranker and save it."""
        source = LabelSource(self.labels, self.top_k, self.seed)
        with byte_progress("Reading") as read:
            train = read_labeled("training", self.data, self.reading, source, report, read)
            held_out = None
            if self.validation is not None:
                held_out = read_labeled(
                    "validation", self.validation, self.reading, source, report, read
                )
        with (
            _saving(ranker, output),
            step_progress("Training", report.measure) as progress,
        ):
            ranker.fit(train, eval_set=held_out, progress=report.following(progress))
        report.learned(ranker, output)


@reads_data
def train_command(
    data: Annotated[str, typer.Argument(help="Training data: LETOR, CSV, TSV, Parquet or shards.")],
    output: Annotated[
        str | None,
        typer.Argument(help="The file to save the ranker in; --run-dir needs none."),
    ] = None,
    model: ModelName = None,
    k: TopK = None,
    loss: LossText = None,
    scorer: ScorerName = None,
    validation: Annotated[
        str | None,
        typer.Option("--validation", help="Validation data, to choose the best iteration by."),
    ] = None,
    labels: LabelsFile = None,
    top_k: LabelsTopK = 10,
    measure: ValidationMeasure = "nDCG@10",
    settings: Settings = None,
    seed: Seed = 0,
    run_dir: Annotated[
        str | None,
        typer.Option(
            "--run-dir",
            help="A new folder for the ranker and all that podium reproduce needs: the command, "
            "digests of the data, versions, parameters and the report.",
        ),
    ] = None,
    cluster: ClusterAddress = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(help="With --cluster or --text: the folder that a killed fit resumes from."),
    ] = None,
    text: Checkpoint = None,
    topics: TopicsFile = None,
    documents: DocumentsFile = None,
    depth: Depth = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report at the end as JSON.")
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Train a ranker: a model by name, a loss with a scorer, or with --text a transformer.

    Ctrl-C saves the best model so far and ends with status 130; trees and networks on a cluster go
    on from --checkpoints instead. A report at the end tells what was read, used and learned.
    """
    require_other_file(output, data, validation, labels, topics, documents, reading.group)
    parameters = parse_settings(settings)
    texts = TextSource(topics, documents, depth)
    if text is not None:
        refuse_for_texts(
            model=model, k=k, scorer=scorer, cluster=cluster, run_dir=run_dir, **reading.chosen()
        )
        texts.refuse_without_run(data, validation)
        own = {"measure": measure, "random_state": seed, "checkpoint_folder": checkpoints}
        transformer = _text_ranker(text, loss, own | parameters)
        label_source = LabelSource(labels, top_k, seed)
        folder = _required(output)
        _train_text(transformer, data, validation, folder, texts, label_source, as_json=as_json)
        return
    texts.refuse("Add --text CHECKPOINT, or leave it out.")
    if checkpoints is not None and cluster is None:
        raise ArgumentError(
            "--checkpoints is for --cluster and --text", hint="Add one, or leave it out."
        )
    request = TrainingRequest(
        data=data,
        model=model,
        k=k,
        loss=loss,
        scorer=scorer,
        validation=validation,
        labels=labels,
        top_k=top_k,
        measure=measure,
        settings=parameters,
        seed=seed,
        reading=reading,
    )
    ranker = request.ranker()
    report = FitReport(measure if validation is not None else None)
    if run_dir is not None:
        from podium.cli.run_folder import recorded

        if cluster is not None or output is not None:
            raise ArgumentError(
                "--run-dir is for fits on this machine, and has the ranker in the folder",
                hint="Leave out OUTPUT and --cluster.",
            )
        with recorded(run_dir, request, ranker, report) as file:
            request.fit(ranker, file, report)
        report.print(as_json=as_json)
        return
    output = _required(output)
    if cluster is not None:
        if labels is not None:
            raise ArgumentError("--labels cannot be used with --cluster. Relabel the shards.")
        with (
            _saving(ranker, output),
            step_progress("Training", report.measure) as progress,
        ):
            steps = report.following(progress)
            _train_on_cluster(cluster, ranker, data, validation, checkpoints, steps)
        report.learned(ranker, output)
    else:
        request.fit(ranker, output, report)
    report.print(as_json=as_json)


def _required(output: str | None) -> str:
    if output is None:
        raise ArgumentError("there is no file to save the ranker in", hint="Give OUTPUT.")
    return output


def _text_ranker(checkpoint: str, loss: str | None, parameters: dict[str, Any]) -> TextRanker:
    # Imported here: torch and transformers are an extra.
    from podium.rankers import TextRanker
    from podium.rankers.tuning import with_parameters

    ranker = with_parameters(TextRanker(checkpoint), parameters)
    if loss is not None:
        ranker.set_params(loss=loss)
    ranker.check_parameters()
    return ranker


def _train_text(
    ranker: TextRanker,
    data: str,
    validation: str | None,
    output: str,
    source: TextSource,
    labels: LabelSource,
    *,
    as_json: bool,
) -> None:
    from podium.rankers.text import require_own_folder

    require_own_folder(Path(output))  # before a training that may take days
    report = FitReport(str(ranker.measure) if validation is not None else None)
    read = (source, labels.judgments, labels.source, report)
    train = read_text_rows("training", data, *read)
    held_out: dict[str, Any] = {}
    if validation is not None:
        rows = read_text_rows("validation", validation, *read)
        held_out = {"eval_set": [(rows["X"], rows["y"])], "eval_qid": [rows["qid"]]}
    with (
        _saving(ranker, output),
        step_progress("Training", report.measure) as progress,
    ):
        ranker.fit(**train, **held_out, progress=report.following(progress))
    # A fit that was continued has epochs that were not followed here.
    history = ranker.evals_result_.get("valid_0", {})
    report.learned(ranker, output, history.get(str(ranker.measure)))
    report.print(as_json=as_json)


@contextmanager
def _saving(ranker: Ranker | TextRanker, output: str) -> Iterator[None]:
    """Save the ranker after its fit, or what it learned before Ctrl-C."""
    from podium.rankers.base import FitInterrupted

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


def _train_on_cluster(
    address: str,
    ranker: Ranker,
    data: str,
    validation: str | None,
    checkpoints: str | None,
    progress: Any,
) -> None:
    # Imported here: Ray is an extra.
    from podium.cluster import Cluster, fit_shards

    with Cluster(address) as cluster:
        fit_shards(
            ranker,
            data,
            eval_set=validation,
            progress=progress,
            checkpoints=checkpoints,
            cluster=cluster,
        )


@reads_data
def predict_command(
    model: Annotated[str, typer.Argument(help=RANKER_HELP)],
    data: Annotated[str, typer.Argument(help="The data to score; labels may be missing.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to write; - for standard output.")
    ] = "-",
    as_run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Write a TREC run instead of one score per line, as for a name that ends in .run.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write JSON lines: query, document if known, and score."),
    ] = False,
    topics: TopicsFile = None,
    documents: DocumentsFile = None,
    depth: Depth = None,
    *,
    reading: Reading,
) -> None:
    """Score documents with a saved ranker: one score per line, or a TREC run.

    A ranker of texts, which is a folder, scores the documents of a run (with --topics and
    --documents) or of JSONL with queries and candidates, and always writes a run or JSON lines.
    """
    from podium.export.reading import read_ranker

    require_other_file(output, model, data, topics, documents, reading.group)
    texts = TextSource(topics, documents, depth)
    if Path(model).is_dir():
        from podium.rankers import TextRanker

        refuse_for_texts(**reading.chosen())
        texts.refuse_without_run(data)
        predict_text(TextRanker.load(model), data, texts, output, as_json=as_json)
        return
    texts.refuse("Leave it out.")
    ranker = read_ranker(model)
    with byte_progress("Scoring") as progress:
        rows = reading.data_set(data, unlabeled=True, progress=progress)
        if as_run or (plain_suffix(output) == ".run" and not as_json):
            whole = rows.load() if isinstance(rows, ShardSet) else rows
            write_run(ranker.rank(whole), output)
            return
        blocks = rows.blocks(progress=progress) if isinstance(rows, ShardSet) else [rows]
        with open_write(output) as write:
            for block in blocks:
                lines = _json_lines(ranker, block) if as_json else _score_lines(ranker, block)
                write(("\n".join(lines) + "\n").encode())


def _score_lines(ranker: Ranker, block: Dataset) -> list[str]:
    scores = ranker.predict(block)
    if block.row_order is not None:  # one line per row of the file, in its order
        scores[block.row_order] = scores.copy()
    return [repr(score) for score in scores.tolist()]


def _json_lines(ranker: Ranker, block: Dataset) -> list[str]:
    columns = {"query_id": block.query_id_of_row().to_pylist()}
    if block.document_ids is not None:
        columns["document_id"] = block.document_ids.to_pylist()
    columns["score"] = ranker.predict(block).tolist()
    rows = zip(*columns.values(), strict=True)
    return [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]


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
    from podium.rankers.tuning import with_parameters

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


@dataclass(frozen=True)
class LabelSource:
    """Where labels come from, if not from the data.

    Attributes:
        source: A file of judgments or preferences, a studio's project, or None.
        k: Of preferences, how many documents to put in order.
        seed: Of preferences, for documents between which nothing decides.
    """

    source: str | None
    k: int
    seed: int

    @cached_property
    def judgments(self) -> Judgments | None:
        """The labels; None to take those of the data."""
        if self.source is None:
            return None
        if self.source.startswith(STUDIO):
            # Imported here: it needs packages that only users of a studio have.
            from podium.studio.client import StudioClient, project_at

            url, number = project_at(self.source.removeprefix(STUDIO))
            with StudioClient(url) as studio:
                return studio.project(number).labels()
        content = Reading().truth(self.source)
        if isinstance(content, Preferences):
            from podium.judging import preference_judgments

            return preference_judgments(content, self.k, random_state=self.seed)
        return content


def read_labeled(
    role: str,
    path: str,
    reading: Reading,
    labels: LabelSource,
    report: FitReport,
    progress: Any,
) -> Dataset | ShardSet:
    """Read training data, with their own labels or those of judgments."""
    judgments = labels.judgments
    data = reading.data_set(path, unlabeled=judgments is not None, progress=progress)
    if judgments is not None:
        whole = data.load() if isinstance(data, ShardSet) else data
        try:
            judged = whole.relabel(judgments, unjudged=np.nan)
        except DataError as error:
            raise error.at(f"{path} and {labels.source}") from error
        known = int(np.count_nonzero(~np.isnan(judged.labels)))
        report.matched(role, str(labels.source), known, judged.rows, len(judged), len(whole))
        data = replace(judged, labels=np.nan_to_num(judged.labels, nan=0.0))
    elif isinstance(data, Dataset) and not np.isfinite(data.labels).all():
        raise DataError("a label is not finite", path=path, hint="Fix or remove its row.")
    report.read(role, path, data)
    return data
