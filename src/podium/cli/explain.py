"""``podium explain``: why a document is above another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.options import RANKER_HELP, JsonOutput, ReportFile, check_report_name
from podium.cli.outputs import require_other_file
from podium.cli.printing import on_terminal, print_facts, print_notes, print_table
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.data.files import open_write
from podium.errors import ArgumentError
from podium.measures.comparison.details import json_number

if TYPE_CHECKING:
    from podium.explain.changes import FeatureChange
    from podium.rankers.explanation import Explanation, PairExplanation

_MOST_ROWS = 10
"""The number of rows of each table on a terminal."""


@reads_data
def explain_command(
    ranker: Annotated[str, typer.Argument(help=RANKER_HELP)],
    data: Annotated[str, typer.Argument(help="The documents; labels may be missing.")],
    query: Annotated[
        str | None,
        typer.Option("--query", "-q", help="The query, if there are several."),
    ] = None,
    above: Annotated[
        str | None, typer.Option(help="The upper document; by default the best one.")
    ] = None,
    below: Annotated[
        str | None, typer.Option(help="The lower document; by default the one after the upper.")
    ] = None,
    as_json: JsonOutput = False,
    output: ReportFile = None,
    *,
    reading: Reading,
) -> None:
    """Explain why a document is above another, and what would swap them.

    What each feature contributes to the difference of their scores, the smallest change of one
    feature that would lift the lower document above the upper, and what puts each document of the
    query where it is. Documents without ids are named by their position in the query, from 0.
    """
    check_report_name(output)
    require_other_file(output, ranker, data, reading.group)
    # Imported here: rankers need packages that other commands do not.
    from podium.explain import smallest_changes
    from podium.explain.html import explanation_html
    from podium.export.reading import read_ranker

    model = read_ranker(ranker)
    with byte_progress("Reading") as progress:
        rows = reading.whole_data_set(data, unlabeled=True, progress=progress)
    if query is None and len(rows) > 1:
        some = ", ".join(rows.query_ids[:5].to_pylist())
        raise ArgumentError(f"there are {len(rows)} queries. Give --query, such as {some}.")
    chosen = rows.query_ids[0].as_py() if query is None else query
    explanation = model.explain(rows, query=chosen)
    pair = explanation.pair(above, below)
    changes = None
    if pair.difference > 0 and not model.whole_queries:
        changes = smallest_changes(model, rows, chosen, pair.above_position, pair.below_position)
    if output is not None:  # first: the reader of standard output may stop early
        with open_write(output) as write:
            write(explanation_html(explanation, pair, changes).encode())
    if as_json:
        typer.echo(json.dumps(_as_json(explanation, pair, changes), indent=2))
    else:
        _print(explanation, pair, changes)


def _as_json(
    explanation: Explanation, pair: PairExplanation, changes: list[FeatureChange] | None
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "query_id": explanation.query_id,
        "method": explanation.method,
        "pair": _pair_json(pair),
        "documents": [
            {
                "document_id": explanation.document_ids[row],
                "rank": rank,
                "score": float(explanation.scores[row]),
                "contributions": dict(
                    zip(explanation.names, explanation.contributions[row].tolist(), strict=True)
                ),
            }
            for rank, row in enumerate(explanation.order.tolist(), start=1)
        ],
    }
    if changes is not None:
        content["changes"] = [
            {
                "feature": change.feature,
                "value": change.value,
                "changed": change.changed,
                "deviations": json_number(change.deviations),
                "score": change.score,
                "observed": change.observed,
            }
            for change in changes
        ]
    if explanation.parts:
        content["parts"] = {
            name: _pair_json(part.pair(pair.above_position, pair.below_position))
            for name, part in explanation.parts.items()
        }
    return content


def _pair_json(pair: PairExplanation) -> dict[str, Any]:
    return {
        "above": pair.above,
        "below": pair.below,
        "score_above": pair.score_above,
        "score_below": pair.score_below,
        "difference": pair.difference,
        "contributions": dict(zip(pair.names, pair.contributions.tolist(), strict=True)),
    }


def _print(
    explanation: Explanation, pair: PairExplanation, changes: list[FeatureChange] | None
) -> None:
    from podium.explain.html import reasons

    print_facts(
        {
            "query": explanation.query_id,
            "above": f"{pair.above}, score {pair.score_above:.6g}",
            "below": f"{pair.below}, score {pair.score_below:.6g}",
            "difference": f"{pair.difference:+.6g}",
            "contributions": explanation.method,
        }
    )
    typer.echo()
    _print_pair(pair, "ranker" if explanation.parts else "feature")
    for name, part in explanation.parts.items():
        typer.echo()
        _print_pair(part.pair(pair.above_position, pair.below_position), name)
    if changes is not None:
        typer.echo()
        _print_changes(changes)
    typer.echo()
    order = explanation.order.tolist()
    print_table(
        ["document", "because of", "rank", "score"],
        [
            [
                explanation.document_ids[row],
                reasons(explanation, row),
                str(rank),
                f"{explanation.scores[row]:.6g}",
            ]
            for rank, row in enumerate(_some(order), start=1)
        ],
        names=2,
    )
    print_notes(["The largest of each; --json and -o page.html have all."])


def _print_changes(changes: list[FeatureChange]) -> None:
    if not changes:
        typer.echo("No change of one feature of the lower document swaps them.")
        return
    rows = [
        [
            change.feature,
            f"{change.value:.6g}",
            f"{change.changed:.6g}",
            f"{change.deviations:.2f}",
            "yes" if change.observed else "no",
        ]
        for change in _some(changes)
    ]
    headings = ["change of the lower", "now", "needed", "deviations", "in the data"]
    print_table(headings, rows)


def _print_pair(pair: PairExplanation, heading: str) -> None:
    rows = [
        [
            pair.names[column],
            pair.values_above[column] or "missing",
            pair.values_below[column] or "missing",
            f"{pair.contributions[column]:+.6g}",
        ]
        for column in _some(pair.largest.tolist())
    ]
    print_table([heading, "above", "below", "contribution"], rows)


def _some(items: list[Any]) -> list[Any]:
    """The first items on a terminal, all elsewhere."""
    return items[:_MOST_ROWS] if on_terminal() else items
