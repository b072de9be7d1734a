"""``podium evaluate``."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from podium.cli.options import ClusterAddress
from podium.cli.progress import byte_progress
from podium.cli.text import shown
from podium.data import Dataset, Judgments, Rankings, dataset_judgments, format_of
from podium.data.files import numbered_lines
from podium.errors import DataError
from podium.measures import Evaluation, conventions_text, evaluate, evaluate_table
from podium.measures.comparison.statistics import mean_interval

Measure = Annotated[
    list[str],
    typer.Option(
        "--measure",
        "-m",
        help="A measure, such as nDCG@10 or 'P(rel=2)@5', or as "
        "trec_eval has it, as ndcg_cut_10; repeatable.",
    ),
]
ConventionName = Annotated[
    str | None,
    typer.Option(
        "--conventions",
        "-c",
        help="Whose conventions: podium, trec_eval, letor4, lightgbm, xgboost, catboost, sklearn, "
        "ranx. Unless named, those of the tool whose names of measures are used.",
        show_default=False,
    ),
]
Truth = Annotated[str, typer.Argument(help="Judgments (qrels or another format), or a data set.")]
TruthFormat = Annotated[
    str | None,
    typer.Option("--truth-format", help="Format of TRUTH, such as letor; by default qrels."),
]


def evaluate_command(
    truth: Truth,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs to evaluate; none if TRUTH is a table with scores."),
    ] = None,
    measures: Measure = ["nDCG@10"],  # noqa: B006 (Typer copies it)
    conventions: ConventionName = None,
    scores: Annotated[
        str | None,
        typer.Option(help="For a data set: a file with one score per line, one line per row."),
    ] = None,
    score_column: Annotated[str, typer.Option(help="For a table: the column of scores.")] = "score",
    label_column: Annotated[str, typer.Option(help="For a table: the column of labels.")] = "label",
    query_column: Annotated[
        str, typer.Option(help="For a table: the column of query ids.")
    ] = "query_id",
    truth_format: TruthFormat = None,
    cluster: ClusterAddress = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", "-q", help="Print every query as well.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate rankings.

    Three ways: judgments and runs (`podium evaluate judged.qrels bm25.run`), a data set with a
    file of scores (`podium evaluate test.txt --scores predicted.txt`), or a Parquet file or shard
    folder that has labels and scores in it (`podium evaluate scored.parquet`), which is streamed;
    a shard folder or its URL also on a cluster.
    """
    with byte_progress("Evaluating") as progress:
        results: dict[str, Evaluation] = {}
        if runs:
            judgments = read_truth(truth, truth_format)
            for path in runs:
                run = read_rankings(path)
                results[unique_name(run, path, results)] = evaluate(
                    measures, judgments, run, conventions=conventions
                )
        elif scores is not None:
            data = _data_set(truth, truth_format)
            values = _read_scores(scores, data.rows)
            results[Path(scores).stem] = evaluate(measures, data, values, conventions=conventions)
        else:
            table = evaluate_table if cluster is None else partial(_on_cluster, cluster)
            # The settings in a URL, keys among them, are not part of its name.
            results[Path(truth.partition("?")[0]).stem] = table(
                measures,
                truth,
                query=query_column,
                label=label_column,
                score=score_column,
                conventions=conventions,
                progress=progress,
            )
    if as_json:
        typer.echo(
            json.dumps(
                {name: _as_json(evaluation, per_query) for name, evaluation in results.items()}
            )
        )
    else:
        _print(results, per_query)


def _on_cluster(
    address: str, measures: list[str], source: str, *, score: str, **options: Any
) -> Evaluation:
    # Imported here: Ray is an extra.
    from podium.cluster import Cluster
    from podium.cluster import evaluate as evaluate_shards

    with Cluster(address) as cluster:
        return evaluate_shards(measures, source, score=score, cluster=cluster, **options)[score]


def read_truth(path: str, name: str | None) -> Judgments:
    """Read judgments: qrels unless another format is named, since qrels have any file extension."""
    entry = format_of(path, name or ("qrels-parquet" if ".parquet" in path else "qrels"))
    content = entry.read(path)
    if isinstance(content, Judgments):
        return content
    if isinstance(content, Dataset):
        return dataset_judgments(content)
    raise DataError(f"{entry.name} has no judgments", path=path, hint="Pass qrels as TRUTH.")


def read_rankings(path: str) -> Rankings:
    """Read a run, whatever the file's extension is."""
    entry = format_of(path, "run-parquet" if ".parquet" in path else "run")
    content = entry.read(path)
    if not isinstance(content, Rankings):
        raise DataError(f"{entry.name} has no rankings", path=path, hint="Pass a TREC run.")
    return content


def unique_name(run: Rankings, path: str, taken: dict[str, Any]) -> str:
    """Return a run's tag, or its path if another run has the same tag."""
    return path if run.name in taken else run.name


# An integer that fits in 64 bits.
_INTEGER = re.compile(rb"\s*[+-]?\d{1,18}\s*")


def _data_set(path: str, name: str | None) -> Dataset:
    content = format_of(path, name).read(path)
    if not isinstance(content, Dataset):
        raise DataError("is not a data set", path=path, hint="--scores needs a data set.")
    return content


def _read_scores(path: str, rows: int) -> Any:
    values = []
    for number, line in numbered_lines(path):
        try:
            # Integers stay integers: a float represents them exactly only up to 2^53.
            values.append(int(line) if _INTEGER.fullmatch(line) else float(line))
        except ValueError as error:
            raise DataError(
                "is not a valid score", path=path, line=number, hint="One number per line."
            ) from error
    if len(values) != rows:
        raise DataError(
            f"has {len(values)} scores, the data set {rows} rows",
            path=path,
            hint="One score for each row, in the same order.",
        )
    return np.array(values)


def _as_json(evaluation: Evaluation, per_query: bool) -> dict[str, Any]:
    means = {repr(measure): _number(mean) for measure, mean in evaluation.means.items()}
    counts = {
        measure: int(np.sum(~np.isnan(values))) for measure, values in evaluation.values.items()
    }
    content: dict[str, Any] = {
        # As the table counts them: those that have a value.
        "queries": max(counts.values(), default=0),
        "queries_by_measure": {repr(measure): count for measure, count in counts.items()},
        "conventions": conventions_text(evaluation.conventions),
        "means": means,
    }
    if per_query:
        content["values"] = {
            repr(measure): dict(
                zip(evaluation.query_ids.to_pylist(), map(_number, values.tolist()), strict=True)
            )
            for measure, values in evaluation.values.items()
        }
    return content


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def _print(results: dict[str, Evaluation], per_query: bool) -> None:
    console = Console()
    table = Table(box=None, padding=(0, 2))
    table.add_column("measure", no_wrap=True)
    table.add_column("system", overflow="fold")
    for heading in ("mean", "± 95 %", "queries"):
        table.add_column(heading, justify="right", no_wrap=True)
    for measure in next(iter(results.values())).values:
        for name, evaluation in results.items():
            known = evaluation[measure][~np.isnan(evaluation[measure])]
            mean, _, high = mean_interval(known) if len(known) else (np.nan, np.nan, np.nan)
            swing = "-" if np.isnan(high) else f"{high - mean:.4f}"
            cells = [f"{mean:.4f}", swing, f"{len(known):,}"]
            table.add_row(repr(measure), shown(name), *cells)
    console.print(table)
    chosen = conventions_text(next(iter(results.values())).conventions)
    console.print(f"Conventions: {chosen}.", style="dim", highlight=False, markup=False)
    if per_query:
        for name, evaluation in results.items():
            console.print(_query_table(name, evaluation))


def _query_table(name: str, evaluation: Evaluation) -> Table:
    table = Table(title=shown(name), title_justify="left", box=None, padding=(0, 2))
    table.add_column("query")
    for measure in evaluation.values:
        table.add_column(repr(measure), justify="right")
    for row, query in enumerate(evaluation.query_ids.to_pylist()):
        cells = [f"{values[row]:.4f}" for values in evaluation.values.values()]
        table.add_row(shown(query), *("-" if cell == "nan" else cell for cell in cells))
    return table
