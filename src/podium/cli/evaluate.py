"""``podium evaluate``."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from podium.cli.options import ClusterAddress, JsonOutput
from podium.cli.powered import MachineLabels, print_powered
from podium.cli.printing import on_terminal, print_notes, print_table
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.trec_output import trec_lines
from podium.data import Rankings
from podium.data.files import numbered_lines, plain_suffix
from podium.data.formats.csv import ID_COLUMNS, read_table
from podium.data.frames import first_column, float_column
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, DataError
from podium.measures import Conventions, evaluate, evaluate_table
from podium.measures.comparison.statistics import mean_interval
from podium.measures.coverage import RunCoverage, coverage_notes
from podium.measures.evaluation import Evaluation
from podium.measures.presets import Measures, conventions_named, conventions_text, resolve_measures
from podium.measures.registry import definition_of
from podium.measures.trec_eval import trec_eval_measures

Measure = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help="A measure, such as nDCG@10 or 'P(rel=2)@5', or as trec_eval has it: ndcg_cut.5,10, "
        "official, all_trec; repeatable. Default: nDCG@10, of preferences ppref and rpref.",
        show_default=False,
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
RelevanceLevel = Annotated[
    float | None,
    typer.Option(
        "--level", "-l", help="The least label that counts as relevant, as trec_eval's -l."
    ),
]
ScoreColumn = Annotated[
    str, typer.Option(help="Of runs that are tables, or a table with labels: the column of scores.")
]
JudgedOnly = Annotated[
    bool, typer.Option("--judged-only", "-J", help="Leave out documents that were not judged.")
]
Truth = Annotated[
    str, typer.Argument(help="Judgments (qrels or another format), preferences, or a data set.")
]

_INTEGER = re.compile(rb"\s*[+-]?\d{1,18}\s*")
"""An integer that fits in 64 bits."""


@reads_data
def evaluate_command(
    truth: Truth,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs to evaluate; none if TRUTH is a table with scores."),
    ] = None,
    measures: Measure = None,
    conventions: ConventionName = None,
    level: RelevanceLevel = None,
    judged_only: JudgedOnly = False,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="Count queries that a run lacks as 0, as trec_eval's -c."),
    ] = False,
    scores: Annotated[
        str | None,
        typer.Option(help="For a data set: a file with one score per line, one line per row."),
    ] = None,
    score_column: ScoreColumn = "score",
    cluster: ClusterAddress = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", "-q", help="Print every query as well.")
    ] = False,
    trec: Annotated[
        bool,
        typer.Option(
            "--trec",
            help="Do as trec_eval does: its measures (-m official unless others are named), its "
            "conventions, and the lines that it prints.",
        ),
    ] = False,
    machine: MachineLabels = None,
    as_json: JsonOutput = False,
    *,
    reading: Reading,
) -> None:
    """Evaluate rankings by any measure and any tool's conventions.

    Three ways: judgments and runs (`podium evaluate judged.qrels bm25.run`), a data set with a
    file of scores (`podium evaluate test.txt --scores predicted.txt`), or a table that has labels
    and scores in it (`podium evaluate scored.parquet`), which is streamed if it is a Parquet file
    or a shard folder; a shard folder or its URL also on a cluster.
    """
    without_runs = scores is not None or cluster is not None
    changes: dict[str, Any] = {"level": level, "judged_only": judged_only, "complete": complete}
    if trec:
        if without_runs or machine is not None or conventions is not None or as_json:
            raise ArgumentError(
                "--trec goes with qrels and runs, and prints what trec_eval does",
                hint="Leave out --scores, --cluster, --machine, --conventions and --json.",
            )
        _print_as_trec_eval(
            truth,
            runs or [],
            measures or ["official"],
            changes,
            per_query=per_query,
            reading=reading,
        )
        return
    if machine is not None:
        if per_query or without_runs:
            raise ArgumentError(
                "--machine goes with qrels and runs, and prints means",
                hint="Leave out --per-query, --scores and --cluster.",
            )
        systems = read_systems(runs or [], reading, score_column)
        names, chosen = resolved(measures or ["nDCG@10"], conventions, **changes)
        print_powered(
            truth, machine, systems, names, chosen, reading, differences=False, as_json=as_json
        )
        return
    if (runs and without_runs) or (scores is not None and cluster is not None):
        raise ArgumentError(
            "runs, --scores and --cluster are three ways to evaluate", hint="Give one of them."
        )
    with byte_progress("Evaluating") as progress:
        results: dict[str, Evaluation] = {}
        if runs:
            judged = reading.truth(truth, runs)
            default = ["ppref", "rpref"] if isinstance(judged, Preferences) else ["nDCG@10"]
            names, chosen = resolved(measures or default, conventions, **changes)
            for name, run in read_systems(runs, reading, score_column).items():
                results[name] = evaluate(names, judged, run, conventions=chosen)
        else:
            names, chosen = resolved(measures or ["nDCG@10"], conventions, **changes)
            if scores is not None:
                data = reading.whole_data_set(truth, progress=progress)
                values = _read_scores(scores, data.rows)
                if data.row_order is not None:  # one line per row of the file, in its order
                    values = values[data.row_order]
                results[Path(scores).stem] = evaluate(names, data, values, conventions=chosen)
            else:
                results[_table_name(truth)] = _evaluate_table(
                    names, truth, score_column, reading, chosen, cluster, progress
                )
    if as_json:
        typer.echo(
            json.dumps(
                {name: _as_json(evaluation, per_query) for name, evaluation in results.items()}
            )
        )
    elif per_query:
        _print_queries(results)
    else:
        _print(results)


def _changed(
    conventions: Conventions, *, level: float | None, judged_only: bool, complete: bool
) -> Conventions:
    """Return conventions changed as trec_eval's options -l, -J and -c change its own."""
    if level is not None:
        conventions = replace(conventions, relevant_from=level)
    if judged_only:
        conventions = replace(conventions, unjudged="drop")
    return replace(conventions, missing="empty") if complete else conventions


def resolved(
    measures: list[str],
    name: str | None,
    *,
    level: float | None = None,
    judged_only: bool = False,
    complete: bool = False,
) -> tuple[Measures, Conventions]:
    """Return measures and conventions as the options of a command have them."""
    parsed, conventions = resolve_measures(measures, name)
    return parsed, _changed(conventions, level=level, judged_only=judged_only, complete=complete)


def _print_as_trec_eval(
    truth: str,
    runs: list[str],
    measures: list[str],
    changes: dict[str, Any],
    *,
    per_query: bool,
    reading: Reading,
) -> None:
    if not runs:
        raise ArgumentError("there is no run to evaluate", hint="Give qrels and runs.")
    listed = trec_eval_measures(measures)
    judged = reading.truth(truth, runs)
    conventions = _changed(conventions_named("trec_eval"), **changes)
    for path in runs:
        for line in trec_lines(
            listed, judged, reading.rankings(path), conventions, per_query=per_query
        ):
            typer.echo(line)


def _table_name(path: str) -> str:
    # The settings in a URL, keys among them, are not part of its name.
    return Path(path.partition("?")[0]).stem


def _evaluate_table(
    measures: Measures,
    source: str,
    score: str,
    reading: Reading,
    conventions: Conventions,
    cluster: str | None,
    progress: Any,
) -> Evaluation:
    """Evaluate a table that has labels and scores in it."""
    delimiter = {".csv": ",", ".tsv": "\t"}.get(plain_suffix(source))
    if reading.file_format in ("csv", "tsv"):
        delimiter = "," if reading.file_format == "csv" else "\t"
    if delimiter is not None:
        queries = [reading.query_column] if reading.query_column else ["query_id", "qid", "topic"]
        labels = [reading.label_column] if reading.label_column else ["label", "relevance", "rel"]
        table = read_table(
            source, delimiter=delimiter, strings=(*ID_COLUMNS, *queries), progress=progress
        )
        try:
            return evaluate(
                measures,
                float_column(first_column(table, labels, "labels"), labels[0]),
                float_column(first_column(table, [score], "scores"), score),
                qid=first_column(table, queries, "query ids"),
                conventions=conventions,
            )
        except DataError as error:
            raise error.at(source) from error
    path = Path(source)
    if path.is_file() and plain_suffix(source) != ".parquet" and reading.file_format != "parquet":
        raise ArgumentError(
            f"there is nothing to evaluate by {source}",
            hint="Give runs after it, or --scores for a data set.",
        )
    on_table = evaluate_table if cluster is None else partial(_on_cluster, cluster)
    return on_table(
        measures,
        source,
        query=reading.query_column or "query_id",
        label=reading.label_column or "label",
        score=score,
        conventions=conventions,
        progress=progress,
    )


def _on_cluster(
    address: str, measures: Measures, source: str, *, score: str, **options: Any
) -> Evaluation:
    # Imported here: Ray is an extra.
    from podium.cluster import Cluster, evaluate_shards

    with Cluster(address) as cluster:
        return evaluate_shards(measures, source, score=score, cluster=cluster, **options)[score]


def read_systems(
    paths: list[str], reading: Reading, score_column: str = "score"
) -> dict[str, Rankings]:
    """Read runs, by their tags, or by their paths where another run has the same tag."""
    systems: dict[str, Rankings] = {}
    for path in paths:
        run = reading.rankings(path, score_column)
        systems[path if run.name in systems else run.name] = run
    return systems


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
    if evaluation.coverage is not None:
        content["coverage"] = evaluation.coverage.to_json()
        content["warnings"] = [
            *evaluation.coverage.warnings(evaluation.conventions),
            *evaluation.coverage.label_warnings(evaluation.values, evaluation.conventions),
        ]
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


def _print(results: dict[str, Evaluation]) -> None:
    headings = ["measure", "system", "mean", "± 95 %", "queries"]
    conventions = conventions_text(next(iter(results.values())).conventions)
    rows = []
    for measure in next(iter(results.values())).values:
        for name, evaluation in results.items():
            known = evaluation[measure][~np.isnan(evaluation[measure])]
            swing = "-"
            if definition_of(measure).aggregate == "mean" and len(known):
                mean, _, high = mean_interval(known)
                swing = "-" if np.isnan(high) else f"{high - mean:.4f}"
            rows.append(
                [repr(measure), name, _value(evaluation.means[measure]), swing, f"{len(known)}"]
            )
    coverage = {name: each.coverage for name, each in results.items() if each.coverage is not None}
    if not on_terminal():  # what is a note on a terminal is a column of a file
        depth = max((each.depth for each in coverage.values()), default=0)
        headings += ["answered", f"judged@{depth}", "conventions"]
        rows = [[*row, *_covered(coverage.get(row[1])), conventions] for row in rows]
    print_table(headings, rows, names=2)
    print_notes([f"Conventions: {conventions}.", *coverage_notes(coverage)])


def _covered(coverage: RunCoverage | None) -> list[str]:
    if coverage is None:
        return ["", ""]
    return [f"{coverage.answered}/{coverage.queries}", f"{coverage.share:.4f}"]


def _print_queries(results: dict[str, Evaluation]) -> None:
    """Print the value of every query, and that of all, a line for each."""
    rows = []
    for name, evaluation in results.items():
        for measure, values in evaluation.values.items():
            queries = zip(evaluation.query_ids.to_pylist(), values.tolist(), strict=True)
            rows += [[repr(measure), name, query, _value(value)] for query, value in queries]
            rows.append([repr(measure), name, "all", _value(evaluation.means[measure])])
    print_table(["measure", "system", "query", "value"], rows, names=3)
    conventions = conventions_text(next(iter(results.values())).conventions)
    print_notes([f"Conventions: {conventions}."])


def _value(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"
