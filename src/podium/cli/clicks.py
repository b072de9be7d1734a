"""``podium clicks``: logs of searches and clicks as one more assessor."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from podium.cli.app import App
from podium.cli.options import JsonOutput
from podium.cli.outputs import require_other_file
from podium.cli.printing import print_facts, print_table
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading
from podium.data import Dataset, Judgments, write_parquet, write_qrels
from podium.data.files import open_write, plain_suffix
from podium.data.json_lines import json_line
from podium.data.pool import tabbed_lines
from podium.data.sources import as_rankings
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.clicks import ClickLog

app = App(
    help="Logs of searches and clicks: one more assessor, cheap, plentiful and biased.",
    no_args_is_help=True, rich_markup_mode="markdown",
)  # fmt: skip


@app.callback()
def _clicks() -> None:
    """Logs of searches and clicks: one more assessor, cheap, plentiful and biased."""


@app.command("import")
def import_command(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="JSON lines (.gz, .zst), Parquet or CSV; the folder of a ranking log; or the "
            "address of an OpenSearch with UBI's indices."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The folder of the log: new, or empty.")
    ],
    kind: Annotated[
        Literal["ubi", "rankings", "metarank", "table"] | None,
        typer.Option("--format", help="What the source is, if it does not show."),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(help="With a ranking log: JSON lines with its clicks; repeatable."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="With a table: our name=the table's, as query=term; repeatable."),
    ] = None,
    application: Annotated[
        str | None, typer.Option(help="Of UBI: only the records of this application.")
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option(
            help="A name of actions=click, impression, add_to_cart, purchase or ignore; repeatable."
        ),
    ] = None,
    late: Annotated[
        float, typer.Option(min=0, help="Seconds after a search beyond which clicks do not count.")
    ] = 3600,
    reload: Annotated[
        float, typer.Option(min=0, help="Seconds within which the same list again is a reload.")
    ] = 10,
    bot_searches: Annotated[
        int, typer.Option(min=1, help="A client with more searches on a day is a bot.")
    ] = 500,
    key_file: Annotated[
        str | None,
        typer.Option(
            help="A file whose content hashes clients; by default a random key is thrown away."
        ),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Import a log of searches and clicks: one row per shown document, and why others are dropped.

    Clients are hashed; IP addresses and user agents are not kept.
    """
    from podium.clicks import ImportRules, import_clicks
    from podium.clicks.fetching import fetch_ubi

    key = None if key_file is None else Path(key_file).read_text().strip()
    chosen: list[Any] = list(sources)
    with byte_progress("Reading") as progress:
        if any(each.startswith(("http://", "https://")) for each in sources):
            from podium.export.live.http_client import EngineClient, Retry

            if len(sources) > 1:
                raise ArgumentError("an address is imported alone", hint="Leave out the others.")
            with EngineClient(sources[0], "OpenSearch", Retry()) as client:
                unfinished = Path(output) / "unfinished"
                chosen, kind = [fetch_ubi(client, unfinished, progress=progress)], "ubi"
        log = import_clicks(
            chosen,
            output,
            kind=kind,
            events=events or (),
            columns=_pairs(column),
            application=application,
            actions=_pairs(action),
            rules=ImportRules(late=late, reload=reload, bot_searches=bot_searches),
            key=key,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(_summary(log) | {"counts": log.counts, "facts": log.facts}))
        return
    print_facts({name: f"{value:,}" for name, value in _summary(log).items()})
    rows = [
        [ledger, reason, f"{count:,}"]
        for ledger, reasons in log.counts.items()
        for reason, count in reasons.items()
    ]
    typer.echo()
    print_table(["of", "became", "rows"], rows, names=2)


def _summary(log: ClickLog) -> dict[str, int]:
    return {
        "shown documents": log.rows,
        "searches": log.searches,
        "queries": log.queries,
        "clicks": log.clicks,
    }


def _pairs(values: list[str] | None) -> dict[str, str]:
    pairs = {}
    for value in values or []:
        name, separator, other = value.partition("=")
        if not separator or not name or not other:
            raise ArgumentError(f"{value!r} is not name=value")
        pairs[name] = other
    return pairs


Log = Annotated[str, typer.Argument(help="The log: a folder, from podium clicks import.")]
Depth = Annotated[int, typer.Option(min=2, help="The last rank to take.")]
Model = Annotated[
    Literal["ctr", "coec", "pbm", "pbm-em", "cascade", "dcm", "sdbn", "ubm"],
    typer.Option(help="The click model."),
]


@app.command("check")
def check_command(log: Log, depth: Depth = 20, as_json: JsonOutput = False) -> None:
    """Check whether a log may be learned from: traps of logging, and what is identifiable.

    Ends with status 1 if position bias cannot be learned from it.
    """
    from podium.clicks import check_log

    result = check_log(log, depth=depth)
    if as_json:
        content = {
            "verdict": result.verdict,
            "sentence": result.sentence,
            "reasons": result.reasons,
            "findings": [vars(finding) for finding in result.findings],
            "pairs": result.pairs,
            "moved": result.moved,
            "clicked_moved": result.clicked_moved,
            "components": result.components,
            "swaps": result.swaps.tolist(),
            "condition": _finite(result.condition),
            "factors": [_finite(factor) for factor in result.factors.tolist()],
        }
        typer.echo(json.dumps(content))
    else:
        if result.findings:
            rows = [[each.kind, f"{each.count:,}", each.text] for each in result.findings]
            print_table(["what", "times", "meaning"], rows, names=1)
            typer.echo()
        print_facts(
            {
                "documents of queries": f"{result.pairs:,}",
                "at several ranks": f"{result.moved:,}, {result.clicked_moved:,} of them clicked",
                "parts of ranks": f"{len(result.components):,}",
                "condition": f"{result.condition:,.0f}",
            }
        )
        typer.echo()
        for line in (result.sentence, *result.reasons):
            typer.echo(line)
    if result.verdict == "no":
        raise typer.Exit(1)


@app.command("bias")
def bias_command(
    log: Log,
    model: Annotated[
        Literal["pbm", "pbm-em"],
        typer.Option(help="By documents that moved between ranks, or by the likelihood."),
    ] = "pbm",
    depth: Depth = 20,
    plot: Annotated[str | None, typer.Option(help="Write the curve to this SVG file.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """Estimate how often each rank is examined, relative to the first, with 95 % intervals.

    Ranks that no document connects with the first are not known, and shown as such.
    """
    from podium.clicks import fit_clicks

    require_other_file(plot, log)
    examination = fit_clicks(log, model, depth=depth).examination
    assert examination is not None
    columns = (examination.values, examination.low, examination.high)
    if as_json:
        rows = zip(
            examination.ranks.tolist(), *(each.tolist() for each in columns),
            examination.impressions.tolist(), strict=True,
        )  # fmt: skip
        names = ("rank", "examined", "low", "high", "shown")
        content = [dict(zip(names, map(_finite, row), strict=True)) for row in rows]
        typer.echo(json.dumps(content))
    else:
        table = [
            [
                str(rank),
                *("-" if math.isnan(value) else f"{value:.3f}" for value in values),
                f"{n:,}",
            ]
            for rank, *values, n in zip(
                examination.ranks, *columns, examination.impressions, strict=True
            )
        ]
        print_table(["rank", "examined", "low", "high", "shown"], table)
    if plot is not None:
        from podium.reports.charts import Line, line_chart

        known = ~np.isnan(examination.values)
        line = Line(
            "examined", examination.values[known].tolist(), "var(--left)",
            examination.low[known].tolist(), np.minimum(examination.high[known], 2.0).tolist(),
        )  # fmt: skip
        steps = [str(rank) for rank in examination.ranks[known]]
        with open_write(plot, compress=False) as write:
            write(line_chart("Examination by rank", steps, [line]).encode())


@app.command("label")
def label_command(
    log: Log,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Judgments to write: qrels, or .parquet.")
    ],
    model: Model = "pbm",
    kind: Annotated[
        Literal["grades", "probability", "top"],
        typer.Option("--as", help="Grades from 0, probabilities, or the order of the top k."),
    ] = "grades",
    k: Annotated[int, typer.Option(min=1, help="Of the top, how many documents.")] = 10,
    depth: Depth = 20,
    topics: Annotated[
        str | None,
        typer.Option(help="Ids of queries by their texts, as .tsv: id, text."),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(help="Judgments of people, whose grades are as frequent as those of clicks."),
    ] = None,
    least_shown: Annotated[
        int, typer.Option(min=1, help="Leave out documents that were shown less often.")
    ] = 1,
    table: Annotated[
        str | None, typer.Option(help="Also write labels with intervals to this Parquet file.")
    ] = None,
    undecided: Annotated[
        str | None,
        typer.Option(help="Also write the pairs that clicks do not decide, as JSON lines."),
    ] = None,
) -> None:
    """Label documents by a click model: judgments that other commands take like a model's."""
    import pyarrow.parquet as pq

    from podium.clicks import fit_clicks, label_clicks

    for written in (output, table, undecided):
        require_other_file(written, log, topics, people)
    fitted = fit_clicks(log, model, depth=depth)
    names = None
    if topics is not None:
        names = {text: identity for _, identity, text in tabbed_lines(topics)}
    judged = None if people is None else _named_as_in_log(people, names)
    labels = label_clicks(fitted, people=judged)
    judgments = labels.judgments(kind, k=k, least_shown=least_shown, names=names)
    if plain_suffix(output) == ".parquet":
        write_parquet(judgments, output)
    else:
        try:
            write_qrels(judgments, output)
        except DataError as error:  # queries are texts where no file has their ids
            raise DataError(
                error.problem,
                path=output,
                hint="Give --topics, a file of ids and texts, or name a file .parquet.",
            ) from error
    if table is not None:
        pq.write_table(labels.table, table)
    pairs = 0
    if undecided is not None:
        with open_write(undecided) as write:
            for query, first, second, better in labels.undecided(k=k, names=names):
                pairs += 1
                line = {"query": query, "documents": [first, second], "better": round(better, 4)}
                write(json_line(line))
    facts = {
        "queries": f"{len(judgments):,} of {fitted.log.queries:,}",
        "documents": f"{judgments.rows:,} of {labels.table.num_rows:,}",
        "grades from": ", ".join(f"{cut:.3f}" for cut in labels.cuts),
    }
    if undecided is not None:
        facts["undecided pairs"] = f"{pairs:,}"
    print_facts(facts)


@app.command("evaluate")
def evaluate_command(
    log: Log,
    run: Annotated[str, typer.Argument(help="Rankings of the log's queries: a run.")],
    topics: Annotated[
        str | None,
        typer.Option(help="Ids of queries by their texts, as .tsv: id, text."),
    ] = None,
    depth: Depth = 20,
    as_json: JsonOutput = False,
) -> None:
    """Estimate how often users would click if a run were shown, from a log of another ranking.

    Propensities are those of the log, or the shares of a query's searches that show a document at
    its rank. A log that shows too little of the run is refused.
    """
    from podium.clicks import evaluate_policy

    names = None
    if topics is not None:
        names = {text: identity for _, identity, text in tabbed_lines(topics)}
    result = evaluate_policy(log, as_rankings(run), names=names, depth=depth)
    if as_json:
        typer.echo(json.dumps(asdict(result)))
        return
    estimates = {
        "logged": result.logged,
        "inverse propensity": result.ips,
        "self-normalized": result.self_normalized,
        "doubly robust": result.doubly_robust,
    }
    rows = [
        [name, *(f"{value:.4f}" for value in (each.value, each.low, each.high))]
        for name, each in estimates.items()
    ]
    print_table(["clicks per search", "estimate", "low", "high"], rows, names=1)
    typer.echo()
    print_facts(
        {
            "propensities": "of the log" if result.known else "shares of each query's searches",
            "overlap": f"{result.overlap:.0%}",
            "effective documents": f"{result.effective:,.0f}",
            "searches": f"{result.searches:,}, {result.left_out:,} for other queries left out",
            "intervals": f"95 %, clustered by {result.clustered_by} ({result.groups:,})",
        }
    )


@app.command("simulate")
def simulate_command(
    data: Annotated[str, typer.Argument(help="Judged data: LETOR, CSV, Parquet or shards.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The folder of the log.")],
    user: Annotated[
        Literal["pbm", "cascade", "dbn"], typer.Option(help="What users are like.")
    ] = "pbm",
    policy: Annotated[
        str | None,
        typer.Option(help="What ranks: a feature's name, or a run; by default a random order."),
    ] = None,
    searches: Annotated[int, typer.Option(min=1, help="Searches for each query.")] = 100,
    depth: Annotated[int, typer.Option(min=1, help="Documents that a search shows.")] = 10,
    shuffled: Annotated[
        float, typer.Option(min=0, max=1, help="The share of searches in a random order.")
    ] = 0.0,
    eta: Annotated[float, typer.Option(help="Rank r is examined with r to the power -ETA.")] = 1.0,
    noise: Annotated[
        float, typer.Option(min=0, max=1, help="Clicks on the least relevant, if examined.")
    ] = 0.1,
    trust: Annotated[
        float, typer.Option(min=0, max=1, help="How much likelier high ranks are clicked.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Simulate searches and clicks on judged data: to plan what to log, and to test on."""
    from podium.clicks import SimulatedUser, simulate_clicks

    rows = Reading().whole_data_set(data)
    chosen: Any = policy
    if policy is not None and policy not in rows.feature_names:
        chosen = _run_scores(policy, rows)
    log = simulate_clicks(
        rows, output, user=SimulatedUser(user, eta=eta, noise=noise, trust=trust), policy=chosen,
        searches=searches, depth=depth, shuffled=shuffled, random_state=seed,
    )  # fmt: skip
    print_facts({name: f"{value:,}" for name, value in _summary(log).items()})


def _run_scores(path: str, rows: Dataset) -> Any:
    if not Path(path).exists():
        raise ArgumentError(
            f"{path!r} is neither a feature nor a run",
            hint=f"Features are {', '.join(rows.feature_names[:12])}.",
        )
    run = as_rankings(path)
    keys = zip(run.query_id_of_row().to_pylist(), run.document_ids.to_pylist(), strict=True)
    scores = dict(zip(keys, run.scores.tolist(), strict=True))
    named = rows.with_document_ids()
    own = zip(named.query_id_of_row().to_pylist(), named.document_ids.to_pylist(), strict=True)  # type: ignore[union-attr]
    return [scores.get(key, -1e300) for key in own]


def _named_as_in_log(path: str, names: dict[str, str] | None) -> Judgments:
    judged = Reading().truth(path)
    if not isinstance(judged, Judgments):
        raise DataError("has preferences", path=path, hint="Give grades.")
    if names is None:
        return judged
    texts = {identity: text for text, identity in names.items()}
    queries = [texts.get(each, each) for each in judged.query_id_of_row().to_pylist()]
    return Judgments.from_columns(queries, judged.document_ids, judged.labels)


def _finite(value: Any) -> Any:
    return value if isinstance(value, int) or math.isfinite(value) else None
