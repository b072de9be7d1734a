"""``podium convert``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from podium.cli.options import GroupFile, KeepNonfinite, SourceFormat, Whole, ZeroBased
from podium.cli.progress import byte_progress
from podium.data.convert import convert
from podium.data.dataset import Dataset


def convert_command(
    source: Annotated[str, typer.Argument(help="File or shard folder to read; - for stdin.")],
    target: Annotated[str, typer.Argument(help="File or new folder to write; - for stdout.")],
    source_format: SourceFormat = None,
    target_format: Annotated[
        str | None, typer.Option("--to", help="Format of TARGET, if not clear from its name.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Turn labels into the order of the top k.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed for the order of equal labels, with --top-k.")
    ] = 0,
    normalise: Annotated[
        Literal["min-max", "z-score"] | None,
        typer.Option(help="Normalise each feature within each query."),
    ] = None,
    group: GroupFile = None,
    zero_based: ZeroBased = False,
    keep_nonfinite: KeepNonfinite = False,
    whole: Whole = False,
) -> None:
    """Convert between formats, or to a folder of shards (a TARGET without an ending).

    Formats: letor, parquet, shards, qrels, run, pairs, prefs, qrels-prefs, jsonl, and
    qrels-parquet, run-parquet, pairs-parquet, prefs-parquet. A data set goes through in blocks of
    whole queries, so it need not fit in memory.
    """

    def change(data: Dataset) -> Dataset:
        if normalise is not None:
            data = data.normalise(normalise)
        return data if top_k is None else data.top_k(top_k, seed=seed)

    options = {"group": group, "zero_based": zero_based, "keep_nonfinite": keep_nonfinite}
    with byte_progress("Converting") as progress:
        convert(
            source,
            target,
            source_format=source_format,
            target_format=target_format,
            change=change if normalise is not None or top_k is not None else None,
            whole=whole,
            progress=progress,
            **{key: value for key, value in options.items() if value},
        )
