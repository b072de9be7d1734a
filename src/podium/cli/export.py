"""``podium export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from podium.cli.deploy import deploy
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.text import shown
from podium.cli.text_ranking import refuse_for_texts, refuse_options
from podium.cli.verify import require_definitions
from podium.data import Dataset
from podium.data.formats.letor import GROUP_SUFFIX
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.export.folder import ExportFolder
    from podium.export.live import DeploymentEngine
    from podium.rankers import Ranker


@reads_data
def export_command(
    ranker: Annotated[
        str,
        typer.Argument(
            help="A ranker saved by podium train (of texts: its folder), a fusion of lists "
            "(hybrid.toml), or a model of LightGBM (text), XGBoost (JSON, UBJ) or CatBoost (JSON)."
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            help="What to export to: onnx, opensearch, o19s, solr, elasticsearch, vespa, or a "
            "target of your own.",
        ),
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
            help="A JSON file with how the engine computes each feature, or finds each list of a "
            "fusion, by its name. By default it is a field of the document."
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
    lists: Annotated[
        list[str] | None,
        typer.Option(
            "--list",
            metavar="RUN",
            help="The run of a fusion's list, once for each list and in their order: the lists of "
            "real queries become golden, too.",
        ),
    ] = None,
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
    from podium.export import connect_engine, export_ranker
    from podium.export.reading import read_ranker
    from podium.export.targets import TARGETS
    from podium.export.writing import ExportSettings

    target = TARGETS.named(target).name
    of_rows: dict[str, Any] = {
        "never_missing": never_missing, "definitions": definitions, "fields": fields,
        "validation": validation, "measure": measure != "nDCG@10", "raw": raw,
        "golden_rows": golden_rows != 2000, **reading.chosen(),
    }  # fmt: skip
    if Path(ranker).suffix == ".toml":
        refuse_options("a fusion of lists", **of_rows)
        _export_fusion(ranker, target, output, engine_version, name, extractors, lists, put)
        return
    if lists:
        raise ArgumentError("--list is for a fusion of lists", hint="Leave it out.")
    if Path(ranker).is_dir():
        refuse_for_texts(
            engine_version=engine_version, name=name != "podium", extractors=extractors, put=put,
            **of_rows,
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
    _report(export_ranker(ranker, target, folder, options), engine)


def _export_fusion(
    path: str,
    target: str,
    output: str | None,
    engine_version: str | None,
    name: str,
    extractors: Path | None,
    lists: list[str] | None,
    put: str | None,
) -> None:
    from podium.data import read_run
    from podium.export import connect_engine, export_ranker
    from podium.export.writing import ExportSettings
    from podium.hybrid import Fusion

    engine = None if put is None else connect_engine(target, put, fuses=True)
    fusion = Fusion.load(path)
    if lists and len(lists) != len(fusion.lists):
        raise ArgumentError(
            f"--list is given {len(lists)} times for {len(fusion.lists)} lists",
            hint=f"Give {len(fusion.lists)}: {', '.join(fusion.lists)}.",
        )
    runs = None
    if lists:
        runs = dict(zip(fusion.lists, map(read_run, lists), strict=True))
    options = ExportSettings(
        engine_version=engine_version,
        model_name=name,
        extractors={} if extractors is None else _extractors(extractors),
        inputs=[*_files_read(extractors), *(lists or [])],
        runs=runs,
    )
    folder = output or f"{path}.{target}"
    _report(export_ranker(path, target, folder, options), engine)


def _report(export: ExportFolder, engine: DeploymentEngine | None) -> None:
    """Print what was written, and put it into a running engine."""
    golden, manifest = export.manifest.golden, export.manifest
    console = Console(stderr=True)
    reached = ""
    if "leaves" in golden:
        reached = f", which reach {golden['leaves_reached']} of {golden['leaves']} leaves"
    if "queries" in golden:
        reached = f" of {golden['queries']} queries"
    console.print(
        shown(
            f"Wrote {export.path} for {manifest.target}, checked with {golden['rows']} golden "
            f"rows{reached}."
        ),
        soft_wrap=True,
    )
    for limit in manifest.limits:
        console.print(shown(f"Note: {limit}"), soft_wrap=True)
    if engine is not None:
        deploy(export, engine)


def _files_read(*paths: Path | str | None) -> list[str]:
    """The files that are read, with those beside data that have the rows per query."""
    named = [str(path) for path in paths if path is not None]
    return [*named, *(f"{path}{GROUP_SUFFIX}" for path in named)]


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
