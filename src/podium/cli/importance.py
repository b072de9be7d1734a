"""``podium importance``: what features are worth to a ranker."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.options import RANKER_HELP, JsonOutput, ReportFile, check_report_name
from podium.cli.outputs import require_other_file
from podium.cli.printing import print_notes, print_table
from podium.cli.progress import byte_progress, spinner
from podium.cli.reading import Reading, reads_data
from podium.data.files import open_write
from podium.measures.comparison.details import json_number

if TYPE_CHECKING:
    from podium.explain.dependence import PartialDependence
    from podium.explain.importance import Importance
    from podium.rankers import Ranker

_DRAWN = 4
"""Features whose partial dependence is in the report."""


@reads_data
def importance_command(
    ranker: Annotated[str, typer.Argument(help=RANKER_HELP)],
    data: Annotated[str, typer.Argument(help="Queries that the ranker was not trained on.")],
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="The measure that is lost.")
    ] = "nDCG@10",
    repeats: Annotated[
        int, typer.Option(min=1, help="The number of permutations of each query.")
    ] = 10,
    correlation: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Features with at least this rank correlation within queries are permuted "
            "together; 0 permutes each alone.",
        ),
    ] = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the permutations.")] = 0,
    as_json: JsonOutput = False,
    output: ReportFile = None,
    *,
    reading: Reading,
) -> None:
    """Measure what is lost when a feature is permuted within queries.

    With 95 % intervals over queries. Features that repeat each other are permuted together, and
    features that no score depends on are named.
    """
    check_report_name(output)
    require_other_file(output, ranker, data, reading.group)
    # Imported here: rankers need packages that other commands do not.
    from podium.explain import permutation_importance
    from podium.explain.html import importance_html
    from podium.export.reading import read_ranker

    model = read_ranker(ranker)
    with byte_progress("Reading") as progress:
        rows = reading.whole_data_set(data, progress=progress)
    with spinner("Permuting"):
        result = permutation_importance(
            model,
            rows,
            measure,
            repeats=repeats,
            correlation=correlation or None,
            random_state=seed,
        )
    if output is not None:  # first: the reader of standard output may stop early
        with open_write(output) as write:
            write(importance_html(result, _dependences(model, rows, result)).encode())
    if as_json:
        typer.echo(json.dumps(_as_json(result), indent=2))
    else:
        _print(result)


def _dependences(model: Ranker, rows: Any, result: Importance) -> list[PartialDependence]:
    from podium.explain import partial_dependence

    if model.whole_queries:
        return []
    names = [
        name
        for group in result.groups
        for name in group.features
        if not group.unused and name not in model.categories_
    ]
    return [partial_dependence(model, rows, name) for name in names[:_DRAWN]]


def _as_json(result: Importance) -> dict[str, Any]:
    return {
        "measure": result.measure,
        "value": result.value,
        "queries": result.queries,
        "repeats": result.repeats,
        "level": result.level,
        "groups": [
            {
                "features": list(group.features),
                "importance": group.importance,
                "low": json_number(group.low),
                "high": json_number(group.high),
                "unused": group.unused,
            }
            for group in result.groups
        ],
        "similar": [
            {"first": pair.first, "second": pair.second, "correlation": pair.correlation}
            for pair in result.similar
        ],
        "unused": list(result.unused),
    }


def _print(result: Importance) -> None:
    rows = [
        [
            ", ".join(group.features),
            f"{group.importance:+.4f}",
            *("-" if math.isnan(end) else f"{end:+.4f}" for end in (group.low, group.high)),
        ]
        for group in result.groups
    ]
    print_table(["features", f"{result.measure} lost", "low", "high"], rows)
    unused = f" No score depends on: {', '.join(result.unused)}." if result.unused else ""
    print_notes(
        [
            f"{result.measure} is {result.value:.4f} over {result.queries} queries; "
            f"{result.repeats} permutations of each.{unused}"
        ]
    )
