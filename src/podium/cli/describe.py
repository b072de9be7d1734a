"""``podium describe``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer

from podium.cli.options import JsonOutput, Whole
from podium.cli.printing import on_terminal, print_facts, print_notes, print_table
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.data.conversion import dataset_blocks, read_all
from podium.data.dataset import Dataset
from podium.data.description import Description, describe
from podium.data.judged import Rankings
from podium.data.query_rows import QueryRows
from podium.errors import DataError

_MOST_LABELS = 12
_MOST_FEATURES = 10


@reads_data
def describe_command(
    source: Annotated[str, typer.Argument(help="File or shard folder; - for stdin.")],
    features: Annotated[bool, typer.Option("--features", help="List every feature.")] = False,
    as_json: JsonOutput = False,
    whole: Whole = False,
    *,
    reading: Reading,
) -> None:
    """Summarize a file: queries, labels, documents per query, ranges of features."""
    data_format = reading.format_of(source)
    options = reading.options(data_format)
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
        counts = {
            "queries": len(content),
            "rows": content.rows,
            "fewest rows per query": int(content.sizes.min()),
            "mean rows per query": round(float(content.sizes.mean()), 2),
            "most rows per query": int(content.sizes.max()),
        }
        if isinstance(content, Rankings) and content.contradicted is not None:
            counts["queries whose ranks contradict the scores"] = len(content.contradicted)
        return counts
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
    sizes = description.sizes
    facts = {
        "queries": f"{description.queries:,}",
        "documents": f"{description.rows:,}"
        + ("" if description.has_document_ids else " (no ids)"),
        "documents per query": f"{sizes.min()} to {sizes.max()}, median {np.median(sizes):g}, "
        f"mean {sizes.mean():.1f}",
        "labels": description.label_kind,
        "blank queries": f"{description.blank_queries:,} (all labels equal)",
        "features": f"{len(description.feature_names)}, {description.constant_features} of them "
        f"constant, {int(description.missing.sum()):,} values missing",
    }
    print_facts(facts)
    typer.echo()
    _print_labels(description)
    if description.feature_names:
        typer.echo()
        _print_features(description, every_feature)


def _print_labels(description: Description) -> None:
    counts = list(description.label_counts.items())
    every = len(counts) <= _MOST_LABELS or not on_terminal()
    listed = counts if every else counts[: _MOST_LABELS - 1]
    most = max(description.label_counts.values())
    rows = []
    for label, count in listed:
        rows.append([f"{label:g}", f"{count:,}", f"{count / description.rows:.1%}"])
        if on_terminal():
            rows[-1].append(f"{'█' * max(1, round(24 * count / most)):<24}")
    if len(listed) < len(counts):
        rest = sum(count for _, count in counts[len(listed) :])
        rows.append([f"… {counts[-1][0]:g}", f"{rest:,}", f"{rest / description.rows:.1%}"])
        rows[-1].append("")
    headings = ["label", "documents", "share"]
    print_table([*headings, ""] if on_terminal() else headings, rows, names=0)


def _print_features(description: Description, every_feature: bool) -> None:
    total = len(description.feature_names)
    every = every_feature or not on_terminal()
    listed = total if every else min(total, _MOST_FEATURES)
    rows = [
        [
            description.feature_names[feature],
            f"{description.lowest[feature]:.6g}",
            f"{description.highest[feature]:.6g}",
            f"{int(description.missing[feature]):,}",
        ]
        for feature in range(listed)
    ]
    print_table(["feature", "lowest", "highest", "missing"], rows)
    if listed < total:
        print_notes([f"The first {listed} of {total} features; --features lists all."])


def _print_counts(counts: dict[str, int | float]) -> None:
    print_facts({name: f"{count:,}" for name, count in counts.items()})
