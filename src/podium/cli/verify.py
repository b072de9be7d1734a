"""``podium verify``."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console

from podium.cli.options import JsonOutput
from podium.cli.progress import stage_progress
from podium.cli.text import shown
from podium.cli.text_ranking import refuse_for_texts, refuse_options
from podium.data.definitions_hash import require_same_definitions
from podium.errors import ArgumentError

if TYPE_CHECKING:
    from podium.export.folder import ExportFolder
    from podium.export.verifying import Verification
    from podium.features.definitions import FeatureDefinitions
    from podium.features.query_check import QueryVerification

_MOST_FINDINGS = 20
"""The number of findings that are printed."""


def verify_command(
    folder: Annotated[str, typer.Argument(help="A folder written by podium export.")],
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="A running engine that has the model, as for podium export --put; for Solr, of an "
            "empty collection.",
        ),
    ] = None,
    definitions: Annotated[
        str | None,
        typer.Option(help="Refuse the export unless its features follow these definitions."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="Compare the engine's first documents of these queries with the ranker's: JSON "
            "lines, or lines of id, tab, text. URL is then that of an index or collection, "
            "and --definitions say how candidates are found."
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=1, max=10_000, help="With --queries: candidates per query.")
    ] = 100,
    top: Annotated[
        int, typer.Option(min=1, help="With --queries: the documents that are compared.")
    ] = 10,
    feature_set: Annotated[
        str,
        typer.Option(help="With --queries: the feature set or store that podium features log put."),
    ] = "podium_features",
    model: Annotated[
        str | None,
        typer.Option(help="With --queries: the model's name in the engine, if another."),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Score the golden rows of an export, and explain every difference.

    By its files, or in a running engine, where each row becomes a document for that long. With
    --queries the files are checked, and the engine ranks real queries. Ends with status 1 if
    a row or a query differs, if a file is not as it was written, or if nothing could have
    differed. What could not be noticed is listed.
    """
    from podium.export import connect_engine, verify_export
    from podium.export.folder import ExportFolder

    export = ExportFolder.open(folder)
    if export.manifest.texts is not None:
        refuse_for_texts(definitions=definitions, queries=queries)
    if export.manifest.is_fusion:
        refuse_options("a fusion of lists", definitions=definitions, queries=queries)
    if definitions is not None:
        require_definitions(export.manifest.definitions, definitions, folder)
    if queries is not None:
        if url is None or definitions is None:
            raise ArgumentError(
                "--queries needs URL and --definitions", hint="Give the address of an index."
            )
        _verify_queries(
            export, definitions, url, queries, feature_set, as_json,
            depth=depth, top=top, model=model,
        )  # fmt: skip
        return
    engine = None
    if url is not None:
        engine = connect_engine(export.manifest.target, url, fuses=export.manifest.is_fusion)
    report_verification(verify_export(export, engine), folder, as_json)


def _verify_queries(
    export: ExportFolder,
    definitions: str,
    url: str,
    queries: str,
    feature_set: str,
    as_json: bool,
    **options: Any,
) -> None:
    from podium.export import verify_export
    from podium.features import read_definitions
    from podium.features.feature_search import feature_search
    from podium.features.queries_file import read_queries
    from podium.features.query_check import verify_queries

    files = verify_export(export)
    defined = read_definitions(definitions)
    search = feature_search(defined, export.manifest.target, url, feature_set)
    with stage_progress() as stage:
        verification = verify_queries(
            export, search, read_queries(queries), progress=stage("Queries"), **options
        )
    holds = files.holds and verification.holds
    if as_json:
        content = {"folder": str(export.path), "holds": holds, **asdict(verification)}
        typer.echo(json.dumps(content | {"files": asdict(files)}, allow_nan=False))
    else:
        _print_verification(replace(files, unchecked=()), str(export.path), Console())
        _print_queries(verification, options["top"], url)
    if not holds:
        raise typer.Exit(1)


def _print_queries(verification: QueryVerification, top: int, url: str) -> None:
    console = Console()
    parts = urlsplit(url)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()  # no password
    text = (
        f"{address}: {verification.differing} of {verification.queries} queries have other first "
        f"{top} documents than the ranker; {verification.documents} candidates were scored"
    )
    console.print(shown(text), soft_wrap=True)
    for each in verification.differences:
        console.print(shown(f"  query {each.query}: {each.document} {each.text}"), soft_wrap=True)
    if verification.wider:
        console.print(
            f"  note: {verification.wider} queries have documents beyond the first candidates of "
            "the whole index: each shard reranks a window of its own",
            soft_wrap=True,
        )
    for line in verification.unchecked:
        console.print(shown(f"  not checked: {line}"), soft_wrap=True)


def report_verification(
    verification: Verification,
    folder: str,
    as_json: bool = False,
    console: Console | None = None,
) -> None:
    """Print what a verification found, and end with status 1 if it does not hold."""
    if as_json:
        content = {"folder": folder, "holds": verification.holds, **asdict(verification)}
        if not math.isfinite(verification.largest):  # an engine may return no number
            content["largest"] = None
        typer.echo(json.dumps(content, allow_nan=False))
    else:
        _print_verification(verification, folder, console or Console())
    if not verification.holds:
        raise typer.Exit(1)


def _print_verification(verification: Verification, folder: str, console: Console) -> None:
    console.print(
        shown(
            f"{folder}: {len(verification.off)} of {verification.rows} golden rows off; the "
            f"largest difference is {verification.largest:.3g}, and rounding explains "
            f"{verification.tolerance:.3g}"
        ),
        soft_wrap=True,
    )
    for finding in verification.findings[:_MOST_FINDINGS]:
        rows = f": {_rows(finding.rows)}" if finding.rows else ""
        console.print(shown(f"  {finding.text}{rows}"), soft_wrap=True)
    if len(verification.findings) > _MOST_FINDINGS:
        console.print(f"  ... and {len(verification.findings) - _MOST_FINDINGS} more")
    for text in verification.unchecked:
        console.print(shown(f"  not checked: {text}"), soft_wrap=True)


def _rows(rows: tuple[int, ...]) -> str:
    if len(rows) == 1:
        return f"row {rows[0]}"
    return f"{len(rows)} rows, the first is {rows[0]}"


def require_definitions(known: str | None, path: str, what: str) -> FeatureDefinitions:
    """Read definitions; a DataError unless they have the hash of a ranker or of an export.

    Args:
        known: That hash, or None if it is not known.
        path: The file of the definitions.
        what: What the hash is of, in words.
    """
    from podium.features import read_definitions

    definitions = read_definitions(path)
    require_same_definitions(known, definitions.hash, what, path)
    return definitions
