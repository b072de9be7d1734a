"""``podium clicks``: logs of searches and clicks as one more assessor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli.options import JsonOutput
from podium.cli.printing import print_facts, print_table
from podium.cli.progress import byte_progress
from podium.errors import ArgumentError

if TYPE_CHECKING:
    from podium.clicks import ClickLog

app = typer.Typer(
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
    from podium.clicks import ImportRules, fetch_ubi, import_clicks

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
