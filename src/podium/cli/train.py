"""``podium train`` and ``podium predict``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli.click_training import ClicksFolder, PositionBiasName
from podium.cli.fit_report import FitReport
from podium.cli.options import RANKER_HELP, ClusterAddress
from podium.cli.outputs import require_other_file
from podium.cli.progress import byte_progress, step_progress
from podium.cli.reading import Reading, reads_data
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
from podium.cli.training import (
    LabelSource,
    TrainingRequest,
    parse_settings,
    saving,
)
from podium.data import Dataset, ShardSet, write_run
from podium.data.files import open_write, plain_suffix
from podium.errors import ArgumentError

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
    clicks: ClicksFolder = None,
    position_bias: PositionBiasName = None,
    maximize: Annotated[
        str | None,
        typer.Option(
            help="Learn as much of the order by a feature as --require allows: 'mean(margin)@10'."
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="What must be shown on held-out queries against the ranker of the labels alone: "
            "'nDCG@10 >= baseline - 0.5%'; repeatable. The exit status is 1 if no share is shown "
            "to meet it.",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(help="With --maximize: how many parts of the queries to hold out; 5."),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(help="With --maximize: how often what ships may break a requirement; 0.05."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report at the end as JSON.")
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Train a ranker: a model by name, a loss with a scorer, or with --text a transformer.

    Ctrl-C saves the best model so far and ends with status 130; trees and networks on a cluster go
    on from --checkpoints instead. A report at the end lists what was read, used and learned.
    """
    require_other_file(output, data, validation, labels, topics, documents, reading.group)
    parameters = parse_settings(settings)
    texts = TextSource(topics, documents, depth)
    if position_bias is not None and clicks is None:
        raise ArgumentError("--position-bias is for --clicks", hint="Add it, or leave it out.")
    if (maximize is None) != (not require):
        raise ArgumentError(
            "--maximize needs --require, and the other way round", hint="Give both."
        )
    testing = {"folds": folds, "level": level}
    for option, number in testing.items():
        if maximize is None and number is not None:
            raise ArgumentError(f"--{option} is of --maximize", hint="Leave it out.")
    if maximize is not None:
        refused = {
            "--text": text, "--clicks": clicks, "--cluster": cluster, "--run-dir": run_dir,
            "--validation": validation,
        }  # fmt: skip
        for name, value in refused.items():
            if value is not None:
                raise ArgumentError(f"{name} cannot be used with --maximize", hint="Leave it out.")
    if text is not None:
        refuse_for_texts(
            clicks=clicks,
            model=model,
            k=k,
            scorer=scorer,
            cluster=cluster,
            run_dir=run_dir,
            **reading.chosen(),
        )
        texts.refuse_without_run(data, validation)
        own = {"measure": measure, "random_state": seed, "checkpoint_folder": checkpoints}
        transformer = _text_ranker(text, loss, own | parameters)
        label_source = LabelSource(labels, top_k, seed)
        folder = _required(output)
        _train_text(transformer, data, validation, folder, texts, label_source, as_json=as_json)
        return
    if clicks is not None:
        texts = TextSource(None, documents, depth)
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
    if maximize is not None:
        from podium.cli.hybrid import print_hybrid

        balance = request.fit_balanced(
            ranker, maximize, require or [], _required(output), report,
            **{option: number for option, number in testing.items() if number is not None},
        )  # fmt: skip
        if not as_json:
            print_hybrid(balance)
        report.print(as_json=as_json)
        raise typer.Exit(0 if balance.chosen else 1)
    if clicks is not None:
        refused = {"--labels": labels, "--cluster": cluster, "--run-dir": run_dir}
        for name, value in refused.items():
            if value is not None:
                raise ArgumentError(f"{name} cannot be used with --clicks", hint="Leave it out.")
        request.fit_to_clicks(ranker, clicks, position_bias, topics, _required(output), report)
        report.print(as_json=as_json)
        return
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
            saving(ranker, output),
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
        saving(ranker, output),
        step_progress("Training", report.measure) as progress,
    ):
        ranker.fit(**train, **held_out, progress=report.following(progress))
    # A fit that was continued has epochs that were not followed here.
    history = ranker.evals_result_.get("valid_0", {})
    report.learned(ranker, output, history.get(str(ranker.measure)))
    report.print(as_json=as_json)


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

    A text ranker, which is a folder, scores the documents of a run (with --topics and
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
