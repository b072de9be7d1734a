"""``podium export`` and ``podium verify``."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import typer
from rich.console import Console

from podium.cli.deploy import deploy
from podium.cli.options import JsonOutput
from podium.cli.progress import byte_progress, stage_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.text import shown
from podium.cli.text_ranking import refuse_for_texts
from podium.data import Dataset
from podium.data.definitions_hash import require_same_definitions
from podium.data.formats.letor import GROUP_SUFFIX
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.export import ExportFolder, Verification
    from podium.features import FeatureDefinitions, QueryVerification
    from podium.rankers import Ranker

_MOST_FINDINGS = 20
"""The number of findings that are printed."""


@reads_data
def export_command(
    ranker: Annotated[
        str,
        typer.Argument(
            help="A ranker saved by podium train (of texts: its folder), or a model of LightGBM "
            "(text), XGBoost (JSON, UBJ) or CatBoost (JSON)."
        ),
    ],
    target: Annotated[
        Literal["onnx", "opensearch", "o19s", "solr", "elasticsearch", "vespa"],
        typer.Option("--to", help="The engine to export to."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder to write; RANKER.TARGET beside the ranker by default.",
        ),
    ] = None,
    engine_version: Annotated[
        str | None,
        typer.Option(
            "--engine-version",
            help="The version of the engine or plugin, such as 3.1: what it does with missing "
            "values depends on it.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The model's name in the engine.")] = "podium",
    never_missing: Annotated[
        bool,
        typer.Option("--never-missing", help="Every feature always has a value in the engine."),
    ] = False,
    extractors: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file with how the engine computes each feature, by the feature's name. "
            "By default a feature is a field of the document."
        ),
    ] = None,
    definitions: Annotated[
        str | None,
        typer.Option(
            help="The definitions of the ranker's features (TOML): the engine computes them as the "
            "training data did."
        ),
    ] = None,
    fields: Annotated[
        bool,
        typer.Option(
            "--fields",
            help="Documents have a field for every feature, although the ranker's features follow "
            "definitions.",
        ),
    ] = False,
    validation: Annotated[
        str | None,
        typer.Option(
            help="Data to write the ranker's measure on into the manifest, and to draw ordinary "
            "values of golden rows from."
        ),
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="That measure.")] = "nDCG@10",
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="opensearch, o19s: write model/xgboost+json+raw, which is smaller and needs "
            "OpenSearch 3.0.",
        ),
    ] = False,
    golden_rows: Annotated[
        int, typer.Option(min=1, help="The maximum number of golden rows to search for.")
    ] = 2000,
    put: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Deploy it to this running engine (opensearch, o19s, solr, elasticsearch), as "
            "podium deploy put does: http://localhost:9200, or Solr's "
            "http://localhost:8983/solr/COLLECTION.",
        ),
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Write a ranker in another engine's format, with rows that prove its scores.

    The folder has the model and its features for the engine, manifest.json, and golden rows with
    the ranker's scores, which the written files are checked with.
    """
    # Imported here: rankers need packages that other commands do not.
    from podium.export import ExportSettings, connect_engine, export_ranker
    from podium.export.reading import read_ranker

    if Path(ranker).is_dir():
        refuse_for_texts(
            engine_version=engine_version, name=name != "podium", never_missing=never_missing,
            extractors=extractors, definitions=definitions, fields=fields, validation=validation,
            measure=measure != "nDCG@10", raw=raw, golden_rows=golden_rows != 2000, put=put,
            **reading.chosen(),
        )  # fmt: skip
        folder = output or f"{ranker.rstrip('/')}.{target}"
        export_ranker(ranker, target, folder)
        Console(stderr=True).print(
            shown(f"Wrote {folder} for {target}, and checked it."), soft_wrap=True
        )
        return
    if fields and definitions is not None:
        raise ArgumentError(
            "--fields and --definitions both say how features are computed", hint="Give one."
        )
    engine = None if put is None else connect_engine(target, put)
    sample, measured = None, {}
    if validation is None:
        unused = [*(["measure"] if measure != "nDCG@10" else []), *reading.chosen()]
        if unused:
            raise ArgumentError(
                f"--{unused[0].replace('_', '-')} needs --validation", hint="Give the data, too."
            )
    else:
        with byte_progress("Reading") as progress:
            data = reading.whole_data_set(validation, progress=progress)
        sample = data.features
        measured = {measure: _mean(read_ranker(ranker), data, measure)}
    options = ExportSettings(
        engine_version=engine_version,
        model_name=name,
        never_missing=never_missing,
        extractors=_all_extractors(ranker, target, extractors, definitions),
        fields=fields,
        golden_rows=golden_rows,
        sample=sample,
        measure=measured,
        raw=raw,
        inputs=_files_read(extractors, definitions, validation, reading.group),
    )
    folder = output or f"{ranker}.{target}"
    export = export_ranker(ranker, target, folder, options)
    golden = export.manifest.golden
    console = Console(stderr=True)
    reached = ""
    if "leaves" in golden:
        reached = f", which reach {golden['leaves_reached']} of {golden['leaves']} leaves"
    console.print(
        shown(f"Wrote {folder} for {target}, checked with {golden['rows']} golden rows{reached}."),
        soft_wrap=True,
    )
    for limit in export.manifest.limits:
        console.print(shown(f"Note: {limit}"), soft_wrap=True)
    if engine is not None:
        deploy(export, engine)


def _files_read(*paths: Path | str | None) -> list[str]:
    """The files that are read, with those beside data that have the rows per query."""
    named = [str(path) for path in paths if path is not None]
    return [*named, *(f"{path}{GROUP_SUFFIX}" for path in named)]


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
    from podium.export import ExportFolder, connect_engine, verify_export

    export = ExportFolder.open(folder)
    if export.manifest.texts is not None:
        refuse_for_texts(definitions=definitions, queries=queries)
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
    engine = None if url is None else connect_engine(export.manifest.target, url)
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
    from podium.features import FeatureDefinitions, feature_search, read_queries, verify_queries

    files = verify_export(export)
    defined = FeatureDefinitions.read(definitions)
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
    from podium.features import FeatureDefinitions

    definitions = FeatureDefinitions.read(path)
    require_same_definitions(known, definitions.hash, what, path)
    return definitions


def _all_extractors(
    ranker: str, target: str, extractors: Path | None, definitions: str | None
) -> dict[str, Any]:
    from podium.export.reading import read_ranker

    if definitions is None:
        return {} if extractors is None else _extractors(extractors)
    if extractors is not None:
        raise ArgumentError(
            "--extractors and --definitions both say how features are computed", hint="Give one."
        )
    fitted = read_ranker(ranker)
    names = fitted.fitted_model().feature_names
    defined = require_definitions(fitted.definitions_hash_, definitions, ranker)
    undefined = [name for name in names if name not in defined.names]
    if undefined:
        raise DataError(
            f"feature {undefined[0]!r} of {ranker} is not defined",
            path=definitions,
            hint="Give the definitions that the ranker's data were logged by.",
        )
    return defined.extractors(target, names)


def _extractors(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"is not JSON ({error})", path=path, hint="Fix it.") from error
    if not isinstance(content, dict):
        raise DataError("is not a JSON object", path=path, hint="Give an extractor per feature.")
    return content


def _mean(ranker: Ranker, data: Dataset, measure: str) -> float:
    from podium.measures import evaluate

    return float(evaluate(measure, data, ranker.predict(data)).means[measure])
