"""``podium hybrid``: one ranking of several result lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from podium.cli.app import App
from podium.cli.evaluate import ConventionName, Truth
from podium.cli.hybrid_lists import lists_command
from podium.cli.options import JsonOutput
from podium.cli.outputs import require_other_file
from podium.cli.printing import print_facts, print_notes, print_table
from podium.cli.progress import stage_progress
from podium.cli.reading import Reading, read_properties, reads_data
from podium.cli.text import shown
from podium.data import Rankings
from podium.data.files import open_write, plain_suffix
from podium.data.formats.csv import ID_COLUMNS, read_table
from podium.data.formats.parquet_file import open_parquet
from podium.data.frames import first_column
from podium.errors import ArgumentError, DataError
from podium.measures.presets import resolve_measures

if TYPE_CHECKING:
    from podium.hybrid.objectives import Balance
    from podium.hybrid.tuning import HybridTuning

_WRITERS = (".html", ".md", ".json")

app = App(
    help="One ranking of several result lists, with weights chosen on judged queries.",
    no_args_is_help=True, rich_markup_mode="markdown",
)  # fmt: skip

Lists = Annotated[
    list[str],
    typer.Argument(help="Runs, one for each list; named after their files, or as NAME=FILE."),
]
ColumnTables = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=TABLE",
        help="A number of the documents (.csv, .tsv, .parquet with document_id and NAME) that is a "
        "list too, or the objective; repeatable.",
    ),
]


@app.callback()
def _hybrid() -> None:
    """One ranking of several result lists, with weights chosen on judged queries."""


app.command("lists")(lists_command)


@app.command("tune")
@reads_data
def tune_command(
    truth: Truth,
    lists: Lists,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            "-m",
            help="What to choose for; nDCG@10, of preferences ppref.",
            show_default=False,
        ),
    ] = None,
    conventions: ConventionName = None,
    folds: Annotated[int, typer.Option(help="How many parts of the queries to hold out.")] = 10,
    normalization: Annotated[
        list[str] | None,
        typer.Option(
            help="A normalization to try: min-max, l2, z-score, rank or none; repeatable; by "
            "default all but none."
        ),
    ] = None,
    combination: Annotated[
        list[str] | None,
        typer.Option(
            help="A combination to try: arithmetic, geometric, harmonic or rrf; repeatable; by "
            "default all."
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="How many documents of each list count; all by default.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="Learn the weights by a loss, such as 'ListMLE(k=10)'.")
    ] = None,
    per_query: Annotated[
        str | None,
        typer.Option(
            help="A table of queries: query_id and numbers. Weights per query ship only if they "
            "are shown to gain."
        ),
    ] = None,
    columns: ColumnTables = None,
    maximize: Annotated[
        str | None,
        typer.Option(help="Give a column as much weight as --require allows: 'mean(margin)@10'."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="What must be shown on held-out queries: 'nDCG@10 >= baseline - 0.5%', with 'in "
            "each COLUMN' for slices; repeatable. The exit status is 1 if no share of the column "
            "is shown to meet it.",
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option(help="A table (.csv, .tsv, .parquet): query_id and columns to slice by."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="A hybrid.toml that requirements call baseline; by default what is best for the "
            "measure alone."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="How often what ships may break a requirement.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Random seed of the folds.")] = 0,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", help="Write the fusion (.toml), or a report (.html, .md, .json)."
        ),
    ] = None,
    as_json: JsonOutput = False,
    *,
    reading: Reading,
) -> None:
    """Choose how to fuse result lists, and measure the gain on queries that chose nothing."""
    from podium.data.preferences import Preferences
    from podium.hybrid import Fusion
    from podium.hybrid.objectives import Balance, balance_fusion
    from podium.hybrid.tuning import tune_fusion

    files = dict(_named(each) for each in lists)
    if len(files) < len(lists):
        raise ArgumentError("two lists have the same name", hint="Name them: NAME=FILE.")
    tables = dict(_named(each, "column") for each in columns or [])
    for path in output or []:
        if Path(path).suffix not in (".toml", *_WRITERS):
            raise DataError(
                "cannot be written", path=path,
                hint=f"Name a file that ends with .toml, {', '.join(_WRITERS)}.",
            )  # fmt: skip
        inputs = (*files.values(), *tables.values(), slices, per_query, baseline)
        require_other_file(path, truth, *inputs)
    if (maximize is None) != (not require):
        raise ArgumentError(
            "--maximize needs --require, and the other way round", hint="Give both."
        )
    for name, value in (("--slices", slices), ("--baseline", baseline)):
        if value is not None and maximize is None:
            raise ArgumentError(f"{name} is of --maximize", hint="Leave it out.")
    for name, option in (
        ("--per-query", per_query), ("--loss", loss), ("--normalization", normalization),
        ("--combination", combination),
    ):  # fmt: skip
        if option and maximize is not None:
            raise ArgumentError(
                f"{name} is not of --maximize",
                hint="Tune first, and give --baseline hybrid.toml.",
            )
    with stage_progress() as stage:
        judged = reading.truth(truth, list(files.values()))
        runs = {name: reading.rankings(path) for name, path in files.items()}
        numbers = {name: _read_column(path, name) for name, path in tables.items()}
        default = "ppref" if isinstance(judged, Preferences) else "nDCG@10"
        (chosen,), rules = resolve_measures([measure or default], conventions)
        common: dict[str, Any] = {
            "measure": chosen, "conventions": rules, "folds": folds, "columns": numbers,
            "depth": depth, "random_state": seed, "progress": stage("Folds"),
        }  # fmt: skip
        result: HybridTuning | Balance
        if maximize is not None:
            result = balance_fusion(
                judged, runs, maximize, require or [],
                properties=None if slices is None else read_properties(slices),
                baseline=None if baseline is None else Fusion.load(baseline),
                level=level, **common,
            )  # fmt: skip
        else:
            features, names = ({}, ()) if per_query is None else _query_features(per_query)
            if normalization:
                common["normalizations"] = normalization
            if combination:
                common["combinations"] = combination
            result = tune_fusion(
                judged, runs, loss=loss, feature_names=names,
                query_features=None if per_query is None else features, **common,
            )  # fmt: skip
    for path in output or []:  # first: whoever reads what is printed may stop early
        _write(path, result)
    if as_json:
        from podium.hybrid.report import hybrid_json

        typer.echo(json.dumps(hybrid_json(result)))
    else:
        print_hybrid(result)
    if isinstance(result, Balance) and result.chosen is None:
        raise typer.Exit(1)


@app.command("rank")
@reads_data
def rank_command(
    fusion: Annotated[str, typer.Argument(help="A fusion: hybrid.toml.")],
    lists: Lists,
    output: Annotated[str, typer.Option("--output", "-o", help="The run to write.")],
    columns: ColumnTables = None,
    per_query: Annotated[
        str | None, typer.Option(help="For weights per query: the table of queries.")
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Fuse runs by a fusion, as a TREC run."""
    from podium.data import write_run
    from podium.hybrid import Fusion

    loaded = Fusion.load(fusion)
    files = dict(_named(each) for each in lists)
    tables = dict(_named(each, "column") for each in columns or [])
    require_other_file(output, fusion, *files.values(), *tables.values(), per_query)
    features = None
    if loaded.per_query is not None:
        if per_query is None:
            raise ArgumentError(
                "the weights depend on the query", hint="Give --per-query, a table of queries."
            )
        features, _ = _query_features(per_query, loaded.per_query.features)
    runs: dict[str, Rankings] = {name: reading.rankings(path) for name, path in files.items()}
    unused = sorted(set(runs) - set(loaded.lists))
    ranked = loaded.rank(
        runs,
        columns={name: _read_column(path, name) for name, path in tables.items()},
        query_features=features,
        name=Path(fusion).stem,
    )
    write_run(ranked, output)
    if unused:
        typer.echo(f"Warning: {', '.join(unused)}: not a list of the fusion.", err=True)


def _named(text: str, what: str = "list") -> tuple[str, str]:
    """Read NAME=FILE, or the name of a file."""
    name, equals, path = text.partition("=")
    if equals and name and path and "/" not in name:
        return name, path
    if what == "column":
        raise ArgumentError(f"{text!r} is not a column", hint="Write NAME=TABLE.")
    return Path(text).name.split(".")[0], text


def _read_column(path: str, name: str) -> dict[str, float]:
    """Read a number of each document; those that are empty are left out."""
    table = _table(path)
    documents = first_column(table, ["document_id", "doc_id", "docno", "id"], "document ids")
    numbers = _number_column(table, name, path)
    identities = [str(each) for each in documents.to_pylist()]
    if len(set(identities)) < len(identities):
        raise DataError(
            "has a document twice", path=path, hint="Keep one row for each document_id."
        )
    known = ~np.isnan(numbers)
    return {
        each: float(value) for each, value, ok in zip(identities, numbers, known, strict=True) if ok
    }


def _query_features(
    path: str, names: tuple[str, ...] = ()
) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    """Read the numbers of each query, all columns but the id unless they are named."""
    table = _table(path)
    column = first_column(table, ["query_id", "qid", "topic"], "query ids")
    chosen = names or tuple(
        each for each in table.column_names if each not in ("query_id", "qid", "topic")
    )
    if not chosen:
        raise DataError("has no features", path=path, hint="Add columns of numbers.")
    rows = np.column_stack([_number_column(table, each, path) for each in chosen])
    features = dict(zip(map(str, column.to_pylist()), rows.tolist(), strict=True))
    if len(features) < len(rows):
        raise DataError("has a query twice", path=path, hint="Keep one row for each query_id.")
    return features, chosen


def _number_column(table: Any, name: str, path: str) -> Any:
    if name not in table.column_names:
        raise DataError(
            f"has no column {name!r}", path=path,
            hint=f"Its columns are {', '.join(table.column_names[:12])}.",
        )  # fmt: skip
    try:
        numbers = np.array(
            [np.nan if each is None else float(each) for each in table[name].to_pylist()]
        )
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} is not a column of numbers", path=path, hint="Correct it."
        ) from error
    if np.isinf(numbers).any():
        raise DataError(f"{name} has an infinite number", path=path, hint="Leave it empty.")
    return numbers


def _table(path: str) -> Any:
    suffix = plain_suffix(path)
    if suffix == ".parquet":
        with open_parquet(path) as file:
            return file.read()
    delimiter = {".csv": ",", ".tsv": "\t"}.get(suffix)
    if delimiter is None:
        raise DataError("is not a table", path=path, hint="Name a file .csv, .tsv or .parquet.")
    return read_table(path, delimiter=delimiter, strings=ID_COLUMNS)


def _write(path: str, result: HybridTuning | Balance) -> None:
    from podium.hybrid.objectives import Balance
    from podium.hybrid.report import hybrid_document, hybrid_json

    if path.endswith(".toml"):
        (result.model if isinstance(result, Balance) else result.fusion).save(path)
        return
    if path.endswith(".json"):
        text = json.dumps(hybrid_json(result), indent=1)
    else:
        document = hybrid_document(result)
        text = document.as_html() if path.endswith(".html") else document.as_markdown()
    with open_write(path) as write:
        write(text.encode())


def print_hybrid(result: HybridTuning | Balance) -> None:
    """Print the verdict, the table behind it, and what was counted."""
    from podium.hybrid.objectives import Balance
    from podium.hybrid.report import (
        FRONTIER,
        HEADINGS,
        HELD_OUT,
        frontier_rows,
        per_query_verdict,
        tuning_rows,
        verdict,
        warnings,
    )

    typer.echo(shown(verdict(result)).plain)
    typer.echo()
    if isinstance(result, Balance):
        print_table(FRONTIER, frontier_rows(result))
    else:
        print_table(HEADINGS, tuning_rows(result))
        print_notes([HELD_OUT])
        if result.per_query is not None:
            typer.echo(per_query_verdict(result))
    typer.echo()
    print_facts({name: f"{count:,}" for name, count in result.counts.items()})
    for each in warnings(result):
        typer.echo(f"Warning: {shown(each).plain}", err=True)
