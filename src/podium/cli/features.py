"""``podium features``: features of rankings that were logged."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from podium.cli.text import shown
from podium.data import Judgments, as_judgments, write_parquet
from podium.errors import DataError

app = typer.Typer(
    help="Features of rankings that were logged.", no_args_is_help=True,
    rich_markup_mode="markdown",
)  # fmt: skip


@app.callback()
def _features() -> None:
    """Features of rankings that were logged."""


@app.command("from-log")
def from_log_command(
    log: Annotated[str, typer.Argument(help="The folder of a ranking log, or one of its files.")],
    output: Annotated[str, typer.Argument(help="The Parquet file to write.")],
    labels: Annotated[
        str | None,
        typer.Option(help="Judgments by query and document id; unjudged queries are left out."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model whose rankings are taken.")] = None,
) -> None:
    """Turn a ranking log into a data set: the last ranking of each query, as it was served.

    Without --labels, all labels are 0.
    """
    from podium.monitoring import read_ranking_log

    data = read_ranking_log(log, model=model).dataset()
    if labels is not None:
        judgments = as_judgments(labels)
        if not isinstance(judgments, Judgments):
            raise DataError("has preferences, not labels", path=labels, hint="Give qrels.")
        data = data.relabel(judgments)
    write_parquet(data, output)
    Console(stderr=True).print(
        shown(f"Wrote {data.rows} documents of {len(data)} queries to {output}."), soft_wrap=True
    )
