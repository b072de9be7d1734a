"""``podium convert``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from podium.cli.options import Whole
from podium.cli.outputs import require_other_file
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.data import Dataset, Judgments
from podium.data.conversion import convert, format_written, read_all
from podium.data.preferences import PreferenceLevels, Preferences


@reads_data
def convert_command(
    source: Annotated[str, typer.Argument(help="File or shard folder to read; - for stdin.")],
    target: Annotated[str, typer.Argument(help="File or new folder to write; - for stdout.")],
    target_format: Annotated[
        str | None, typer.Option("--to", help="Format of TARGET, if not clear from its name.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Turn labels into the order of the top k.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed for the order of equal labels, with --top-k.")
    ] = 0,
    normalize: Annotated[
        Literal["min-max", "z-score"] | None,
        typer.Option(help="Normalize each feature within each query."),
    ] = None,
    whole: Whole = False,
    *,
    reading: Reading,
) -> None:
    """Convert between formats, or to a folder of shards (a TARGET without an ending).

    Formats: letor, csv, tsv, parquet, shards, qrels, run, pairs, prefs, qrels-prefs, jsonl,
    workbench, and qrels-parquet, run-parquet, pairs-parquet, prefs-parquet. A data set goes through
    in blocks of whole queries, so it need not fit in memory, unless it is a csv or tsv file.
    Preferences become qrels with the estimated order of the top k, 10 unless --top-k is given.
    """

    def change(data: Dataset) -> Dataset:
        if normalize is not None:
            data = data.normalize(normalize)
        return data if top_k is None else data.top_k(top_k, random_state=seed)

    require_other_file(target, source, reading.group)
    source_type = reading.format_of(source)
    target_type = format_written(target, target_format, source_type)
    if source_type.kind in (Preferences, PreferenceLevels) and target_type.kind is Judgments:
        # Imported here: few conversions need it.
        from podium.judging import preference_judgments

        preferences = read_all(source_type, source)
        if isinstance(preferences, PreferenceLevels):
            preferences = preferences.pairs()
        target_type.write(preference_judgments(preferences, top_k or 10, random_state=seed), target)
        return
    with byte_progress("Converting") as progress:
        convert(
            source,
            target,
            source_format=source_type.name,
            target_format=target_type.name,
            change=change if normalize is not None or top_k is not None else None,
            whole=whole,
            progress=progress,
            **reading.options(source_type),
        )
