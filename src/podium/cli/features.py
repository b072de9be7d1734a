"""``podium features``: definitions of features, and data sets that follow them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer
from rich.console import Console

from podium.cli.app import App
from podium.cli.options import JsonOutput
from podium.cli.outputs import require_other_file
from podium.cli.printing import print_table
from podium.cli.progress import byte_progress, stage_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.text import shown
from podium.cli.train import LabelsFile, LabelsTopK
from podium.cli.training import LabelSource
from podium.data import Dataset, Judgments, write_parquet
from podium.data.sources import as_judgments
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.features.check import FeatureFinding
    from podium.features.definition import FeatureDefinition
    from podium.features.definitions import FeatureDefinitions
    from podium.features.feature_log import FeatureLog

app = App(
    help="Definitions of features, and data sets that follow them.", no_args_is_help=True,
    rich_markup_mode="markdown",
)  # fmt: skip

DefinitionsFile = Annotated[str, typer.Argument(help="The definitions of the features (TOML).")]


@app.callback()
def _features() -> None:
    """Definitions of features, and data sets that follow them."""


@app.command("check")
@reads_data
def check_command(
    definitions: DefinitionsFile,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Data to hold against the definitions.")
    ] = None,
    as_json: JsonOutput = False,
    *,
    reading: Reading,
) -> None:
    """Check definitions and, with DATA, whether features are undefined, empty or tell the label.

    Ends with status 1 if there is a finding.
    """
    from podium.features import read_definitions
    from podium.features.check import check_definitions, check_features

    defined = read_definitions(definitions)
    if data is None:
        findings = check_definitions(defined)
    else:
        with byte_progress("Reading") as progress:
            rows = reading.whole_data_set(data, progress=progress)
        findings = check_features(defined, rows)
    if as_json:
        typer.echo(json.dumps(_check_json(defined, findings), allow_nan=False))
    else:
        if data is None:
            headings = ("feature", "source", "type", "missing", "computed by")
            print_table(headings, [_described(each) for each in defined.features], names=5)
        print_findings(findings)
        typer.echo(f"definitions {defined.hash}")
    if findings:
        raise typer.Exit(1)


def print_findings(findings: list[FeatureFinding]) -> None:
    """Print what is wrong with features, one finding per line."""
    for finding in findings:
        subject = f"{finding.feature} " if finding.feature else ""
        typer.echo(shown(f"{finding.kind}: {subject}{finding.text}").plain)


def _described(feature: FeatureDefinition) -> tuple[str, ...]:
    missing = "" if math.isnan(feature.missing) else f"{feature.missing:g}"
    owner = "engine" if feature.is_logged else "Podium"
    return feature.name, feature.source.name, feature.type, missing, owner


def _check_json(
    definitions: FeatureDefinitions, findings: list[FeatureFinding]
) -> dict[str, object]:
    return {
        "definitions": definitions.hash,
        "features": [feature.content() for feature in definitions.features],
        "findings": [vars(finding) for finding in findings],
    }


@app.command("log")
def log_command(
    definitions: DefinitionsFile,
    engine: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="An index or collection: http://localhost:9200/shop, or "
            "http://localhost:8983/solr/shop.",
        ),
    ],
    queries: Annotated[
        str,
        typer.Option(help="JSON lines with an id, a text and columns, or lines of id, tab, text."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The Parquet file to write.")],
    depth: Annotated[
        int, typer.Option(min=1, max=10_000, help="The number of candidates per query.")
    ] = 100,
    put: Annotated[
        bool,
        typer.Option("--put", help="Upload the feature set first, unless it is there."),
    ] = False,
    target: Annotated[
        Literal["opensearch", "o19s", "solr"] | None,
        typer.Option(help="The engine, if not clear from its answer."),
    ] = None,
    feature_set: Annotated[
        str,
        typer.Option(
            help="What the name of the feature set or feature store in the engine begins with; it "
            "ends with a hash of the features. One that is there is never replaced."
        ),
    ] = "podium_features",
    labels: LabelsFile = None,
    top_k: LabelsTopK = 10,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="The largest number of queries per second.")
    ] = None,
    retries: Annotated[
        int, typer.Option(min=0, max=100, help="How often a busy engine is asked again.")
    ] = 5,
    max_refused: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Ends with status 1 if the engine refuses a larger share of the queries.",
        ),
    ] = 0.01,
    as_json: JsonOutput = False,
) -> None:
    """Fetch the candidates of queries with the features that the engine ranks by, as a data set.

    A log that was killed goes on where it was when the same command runs again. Queries that were
    not judged are left out; without --labels, all labels are 0. Queries that the engine refuses are
    left out and listed in OUTPUT.manifest.json.
    """
    from podium.export.live.http_client import Retry
    from podium.features import read_definitions
    from podium.features.feature_log import LogSettings, log_features, upload_feature_set
    from podium.features.feature_search import detect_target, feature_search
    from podium.features.queries_file import read_queries

    require_other_file(output, definitions, queries, labels)
    defined = read_definitions(definitions)
    retry = Retry(attempts=retries)
    judgments = LabelSource(labels, top_k, 0).judgments
    labeling = None if judgments is None else _Labeling(judgments)
    search = feature_search(defined, target or detect_target(engine, retry), engine, feature_set)
    if put:
        upload_feature_set(search, retry)
    with stage_progress() as stage:
        log = log_features(
            search, read_queries(queries), output, LogSettings(depth, rate, retry),
            relabel=labeling, progress=stage("Queries"),
        )  # fmt: skip
    if as_json:
        judged = None if labeling is None else labeling.judged
        content = asdict(log) | {"output": output, "judged_documents": judged}
        typer.echo(json.dumps(content, allow_nan=False))
    else:
        _print_log(log, output, labeling)
    if log.refused_share > max_refused:
        raise typer.Exit(1)


def _print_log(log: FeatureLog, output: str, labeling: _Labeling | None) -> None:
    parts = [f"Wrote {log.rows} documents of {log.queries} queries to {output}"]
    if log.asked < log.queries + log.empty + log.unjudged + len(log.refused):
        parts.append(f"{log.asked} queries were asked now, the others before")
    if log.empty:
        parts.append(f"{log.empty} queries have no candidate")
    if labeling is not None:
        parts.append(f"{log.unjudged} queries were not judged")
        parts.append(f"{labeling.judged} documents were")
    console = Console(stderr=True)
    console.print(shown(f"{'; '.join(parts)}."), soft_wrap=True)
    if log.refused:
        first, reason = next(iter(log.refused.items()))
        words = "query is" if len(log.refused) == 1 else "queries are"
        text = (
            f"{len(log.refused)} {words} left out ({log.refused_share:.1%}), because the engine "
            f"refuses them; the first is {first}: {reason}. All are in {output}.manifest.json."
        )
        console.print(shown(text), soft_wrap=True)


class _Labeling:
    """Gives parts of a data set the labels of judgments, and counts the documents with one."""

    def __init__(self, judgments: Judgments) -> None:
        self._judgments = judgments
        self.judged = 0

    def __call__(self, block: Dataset) -> Dataset:
        labeled = block.relabel(self._judgments, unjudged=np.nan, part=True)
        unknown = np.isnan(labeled.labels)
        self.judged += int(np.count_nonzero(~unknown))
        return replace(labeled, labels=np.where(unknown, np.float32(0), labeled.labels))


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

    Without --labels, all labels are 0. The log may be larger than memory.
    """
    from podium.monitoring.log_reader import last_rankings

    require_other_file(output, log, labels)
    labeling = None
    if labels is not None:
        judgments = as_judgments(labels)
        if not isinstance(judgments, Judgments):
            raise DataError("has preferences, not labels", path=labels, hint="Give qrels.")
        labeling = _Labeling(judgments)
    logged = queries = rows = 0

    def blocks() -> Iterator[Dataset]:
        nonlocal logged, queries, rows
        for block in last_rankings(log, model=model):
            labeled = block if labeling is None else labeling(block)
            logged, queries, rows = logged + len(block), queries + len(labeled), rows + labeled.rows
            yield labeled
        if labeling is not None and not labeling.judged:
            raise DataError(
                f"none of the documents of {logged} queries was judged",
                path=labels, hint="Compare the ids of queries and documents of both.",
            )  # fmt: skip

    write_parquet(blocks(), output)
    Console(stderr=True).print(
        shown(f"Wrote {rows} documents of {queries} queries to {output}."), soft_wrap=True
    )
    left_out = logged - queries
    if left_out:
        words = "query without judgments is" if left_out == 1 else "queries without judgments are"
        Console(stderr=True).print(f"{left_out} {words} left out.", soft_wrap=True)
