"""``podium describe``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from podium.cli.progress import byte_progress
from podium.data.dataset import Dataset
from podium.data.describe import Description, describe
from podium.data.formats import format_of
from podium.data.query_rows import QueryRows
from podium.errors import DataError

_MOST_LABELS = 12
_MOST_FEATURES = 10


def describe_command(
    source: Annotated[str, typer.Argument(help="File or shard folder; - for stdin.")],
    source_format: Annotated[
        str | None, typer.Option("--from", help="Format of SOURCE, if its name does not tell.")
    ] = None,
    features: Annotated[bool, typer.Option("--features", help="List every feature.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    group: Annotated[
        str | None, typer.Option(help="LETOR text without qid: the file with rows per query.")
    ] = None,
) -> None:
    """Count what a file holds: queries, labels, documents per query, ranges of features."""
    found = format_of(source, source_format)
    with byte_progress("Reading") as progress:
        options: dict[str, Any] = {} if "parquet" in found.name else {"progress": progress}
        if found.kind is Dataset:
            if group is not None or found.stream is None:
                summary = describe(found.read(source, group=group, **options))
            else:
                summary = describe(_blocks(found, source, options))
        else:
            summary = None
            counts = _counts(found.read(source, **options))
    if as_json:
        typer.echo(json.dumps(counts if summary is None else _as_json(summary), indent=2))
    elif summary is None:
        _print_counts(counts)
    else:
        _print(summary, features)


def _blocks(found: Any, source: str, options: dict[str, Any]) -> Any:
    """A stream of blocks, or the whole where a LETOR file has group sizes beside it."""
    if Path(f"{source}.query").exists():
        return found.read(source, **options)
    return found.stream(source, **options)


def _counts(content: Any) -> dict[str, int | float]:
    if isinstance(content, QueryRows):
        return {
            "queries": len(content),
            "rows": content.rows,
            "fewest rows per query": int(content.sizes.min()),
            "mean rows per query": round(float(content.sizes.mean()), 2),
            "most rows per query": int(content.sizes.max()),
        }
    sizes = [len(entry.candidates) for entry in content]
    if not sizes:
        raise DataError("holds no query", hint="Is it the right file?")
    return {"queries": len(sizes), "candidates": sum(sizes), "most per query": max(sizes)}


def _as_json(found: Description) -> dict[str, Any]:
    sizes = found.sizes
    return {
        "queries": found.queries,
        "rows": found.rows,
        "features": len(found.feature_names),
        "label_kind": found.label_kind,
        "label_counts": {f"{label:g}": count for label, count in found.label_counts.items()},
        "blank_queries": found.blank_queries,
        "documents_per_query": {
            "min": int(sizes.min()),
            "median": float(np.median(sizes)),
            "mean": float(sizes.mean()),
            "max": int(sizes.max()),
        },
        "constant_features": found.constant_features,
        "missing_values": int(found.missing.sum()),
        "document_ids": found.has_document_ids,
        "feature_ranges": {
            name: [None if np.isnan(low) else float(low), None if np.isnan(high) else float(high)]
            for name, low, high in zip(
                found.feature_names, found.lowest, found.highest, strict=True
            )
        },
    }


def _print(found: Description, every_feature: bool) -> None:
    console = Console()
    sizes = found.sizes
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_row("queries", f"{found.queries:,}")
    facts.add_row("documents", f"{found.rows:,}" + ("" if found.has_document_ids else " (no ids)"))
    facts.add_row(
        "documents per query",
        f"{sizes.min()} to {sizes.max()}, median {np.median(sizes):g}, mean {sizes.mean():.1f}",
    )
    facts.add_row("labels", found.label_kind)
    facts.add_row("blank queries", f"{found.blank_queries:,} (all labels equal)")
    facts.add_row(
        "features",
        f"{len(found.feature_names)}, {found.constant_features} of them constant, "
        f"{int(found.missing.sum()):,} values missing",
    )
    console.print(facts)
    console.print(_label_table(found))
    if found.feature_names:
        console.print(_feature_table(found, every_feature))


def _label_table(found: Description) -> Table:
    table = Table(title="Labels", title_justify="left", box=None, padding=(0, 2))
    table.add_column("label", justify="right")
    table.add_column("documents", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    counts = list(found.label_counts.items())
    shown = counts if len(counts) <= _MOST_LABELS else counts[: _MOST_LABELS - 1]
    most = max(found.label_counts.values())
    for label, count in shown:
        bar = "█" * max(1, round(24 * count / most))
        table.add_row(f"{label:g}", f"{count:,}", f"{count / found.rows:.1%}", f"[cyan]{bar}[/]")
    if len(shown) < len(counts):
        rest = sum(count for _, count in counts[len(shown) :])
        highest = counts[-1][0]
        table.add_row(f"… {highest:g}", f"{rest:,}", f"{rest / found.rows:.1%}", "")
    return table


def _feature_table(found: Description, every_feature: bool) -> Table:
    total = len(found.feature_names)
    shown = total if every_feature else min(total, _MOST_FEATURES)
    title = "Features" if shown == total else f"Features (the first {shown}; --features for all)"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2))
    for name in ("feature", "lowest", "highest", "missing"):
        table.add_column(name, justify="right")
    for place in range(shown):
        table.add_row(
            found.feature_names[place],
            f"{found.lowest[place]:.6g}",
            f"{found.highest[place]:.6g}",
            f"{int(found.missing[place]):,}",
        )
    return table


def _print_counts(counts: dict[str, int | float]) -> None:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    for name, count in counts.items():
        facts.add_row(name, f"{count:,}")
    Console().print(facts)
