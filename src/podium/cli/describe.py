"""``podium describe``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from podium.cli.options import GroupFile, KeepNonfinite, SourceFormat, Whole, ZeroBased
from podium.cli.progress import byte_progress
from podium.cli.text import shown
from podium.data.convert import dataset_blocks, read_all
from podium.data.dataset import Dataset
from podium.data.describe import Description, describe
from podium.data.formats import format_of
from podium.data.query_rows import QueryRows
from podium.errors import DataError

_MOST_LABELS = 12
_MOST_FEATURES = 10


def describe_command(
    source: Annotated[str, typer.Argument(help="File or shard folder; - for stdin.")],
    source_format: SourceFormat = None,
    features: Annotated[bool, typer.Option("--features", help="List every feature.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    group: GroupFile = None,
    zero_based: ZeroBased = False,
    keep_nonfinite: KeepNonfinite = False,
    whole: Whole = False,
) -> None:
    """Summarise a file: queries, labels, documents per query, ranges of features."""
    data_format = format_of(source, source_format)
    options = {"group": group, "zero_based": zero_based, "keep_nonfinite": keep_nonfinite}
    options = {key: value for key, value in options.items() if value}
    summary: Description | dict[str, int | float]
    with byte_progress("Reading") as progress:
        try:
            if data_format.kind is Dataset:
                blocks = dataset_blocks(
                    data_format, source, whole=whole, progress=progress, **options
                )
                summary = describe(blocks)
            else:
                summary = _counts(read_all(data_format, source, progress=progress, **options))
        except DataError as error:
            path = error.path or source
            raise error.at(path, error.line) from error
    if as_json:
        content = _as_json(summary) if isinstance(summary, Description) else summary
        typer.echo(json.dumps(content, indent=2))
    elif isinstance(summary, Description):
        _print(summary, features)
    else:
        _print_counts(summary)


def _counts(content: Any) -> dict[str, int | float]:
    if isinstance(content, QueryRows) and len(content):
        return {
            "queries": len(content),
            "rows": content.rows,
            "fewest rows per query": int(content.sizes.min()),
            "mean rows per query": round(float(content.sizes.mean()), 2),
            "most rows per query": int(content.sizes.max()),
        }
    sizes = [] if isinstance(content, QueryRows) else [len(entry.candidates) for entry in content]
    if not sizes:
        raise DataError("has no queries", hint="Is it the right file?")
    return {"queries": len(sizes), "candidates": sum(sizes), "most per query": max(sizes)}


def _as_json(description: Description) -> dict[str, Any]:
    sizes = description.sizes
    return {
        "queries": description.queries,
        "rows": description.rows,
        "features": len(description.feature_names),
        "label_kind": description.label_kind,
        "label_counts": {_exact(label): count for label, count in description.label_counts.items()},
        "blank_queries": description.blank_queries,
        "documents_per_query": {
            "min": int(sizes.min()),
            "median": float(np.median(sizes)),
            "mean": float(sizes.mean()),
            "max": int(sizes.max()),
        },
        "constant_features": description.constant_features,
        "missing_values": int(description.missing.sum()),
        "document_ids": description.has_document_ids,
        "feature_ranges": {
            name: [None if np.isnan(low) else float(low), None if np.isnan(high) else float(high)]
            for name, low, high in zip(
                description.feature_names, description.lowest, description.highest, strict=True
            )
        },
    }


def _exact(label: float) -> str:
    """Format a label with the fewest digits that keep it distinct from every other label."""
    return np.format_float_positional(np.float32(label), trim="-")


def _print(description: Description, every_feature: bool) -> None:
    console = Console()
    sizes = description.sizes
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_row("queries", f"{description.queries:,}")
    facts.add_row(
        "documents", f"{description.rows:,}" + ("" if description.has_document_ids else " (no ids)")
    )
    facts.add_row(
        "documents per query",
        f"{sizes.min()} to {sizes.max()}, median {np.median(sizes):g}, mean {sizes.mean():.1f}",
    )
    facts.add_row("labels", description.label_kind)
    facts.add_row("blank queries", f"{description.blank_queries:,} (all labels equal)")
    facts.add_row(
        "features",
        f"{len(description.feature_names)}, {description.constant_features} of them constant, "
        f"{int(description.missing.sum()):,} values missing",
    )
    console.print(facts)
    console.print(_label_table(description))
    if description.feature_names:
        console.print(_feature_table(description, every_feature))


def _label_table(description: Description) -> Table:
    table = Table(title="Labels", title_justify="left", box=None, padding=(0, 2))
    table.add_column("label", justify="right")
    table.add_column("documents", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    counts = list(description.label_counts.items())
    listed = counts if len(counts) <= _MOST_LABELS else counts[: _MOST_LABELS - 1]
    most = max(description.label_counts.values())
    for label, count in listed:
        bar = "█" * max(1, round(24 * count / most))
        table.add_row(
            f"{label:g}", f"{count:,}", f"{count / description.rows:.1%}", f"[cyan]{bar}[/]"
        )
    if len(listed) < len(counts):
        rest = sum(count for _, count in counts[len(listed) :])
        highest = counts[-1][0]
        table.add_row(f"… {highest:g}", f"{rest:,}", f"{rest / description.rows:.1%}", "")
    return table


def _feature_table(description: Description, every_feature: bool) -> Table:
    total = len(description.feature_names)
    listed = total if every_feature else min(total, _MOST_FEATURES)
    title = "Features" if listed == total else f"Features (the first {listed}; --features for all)"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2))
    for name in ("feature", "lowest", "highest", "missing"):
        table.add_column(name, justify="right")
    for feature in range(listed):
        table.add_row(
            shown(description.feature_names[feature]),
            f"{description.lowest[feature]:.6g}",
            f"{description.highest[feature]:.6g}",
            f"{int(description.missing[feature]):,}",
        )
    return table


def _print_counts(counts: dict[str, int | float]) -> None:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    for name, count in counts.items():
        facts.add_row(name, f"{count:,}")
    Console().print(facts)
