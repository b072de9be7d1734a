"""``podium online``: what users do with two rankings."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from podium.cli.app import App
from podium.cli.options import JsonOutput, parse_pair, parse_share
from podium.cli.outputs import require_other_file
from podium.cli.printing import on_terminal, print_facts, print_notes, print_table
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.text import shown
from podium.data.files import open_write
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.online.comparison import OnlineReport
    from podium.online.report import OnlineRequirement

_WRITERS = (".html", ".md", ".json")
_SECONDARY = ("relative low", "relative high", "clients", "past saves")

app = App(
    help="What users do with two rankings: interleaving and A/B tests.",
    no_args_is_help=True, rich_markup_mode="markdown",
)  # fmt: skip


@app.callback()
def _online() -> None:
    """What users do with two rankings: interleaving and A/B tests."""


@app.command("report")
def report_command(
    source: Annotated[
        str,
        typer.Argument(
            help="A log from podium clicks import, a ranking log with --events, or a table "
            "(.parquet, .csv): a row per document, search or client."
        ),
    ],
    events: Annotated[
        list[str] | None,
        typer.Option(
            help="With a ranking log: JSON lines with its clicks, or the address of an OpenSearch "
            "with UBI's indices; repeatable."
        ),
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="Of interleaving: which one; by default the latest.")
    ] = None,
    assignment: Annotated[
        str | None, typer.Option(help="Of an A/B test: the column with the group.")
    ] = None,
    pair: Annotated[
        str | None, typer.Option(metavar="OLD,NEW", help="The names of the old and the new one.")
    ] = None,
    action: Annotated[
        Literal["clicked", "add_to_cart", "purchase"],
        typer.Option(help="Of interleaving, what counts."),
    ] = "clicked",
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Of an A/B test: a metric or column; repeatable."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="When an A/B test began: what clients did before explains differences."),
    ] = None,
    past: Annotated[
        str | None, typer.Option(help="Or the column with what each client did before.")
    ] = None,
    slices: Annotated[str | None, typer.Option(help="A column to slice by.")] = None,
    share: Annotated[
        float, typer.Option(min=0, max=1, help="The planned share of clients in the new group.")
    ] = 0.5,
    level: Annotated[
        float, typer.Option(help="How often the intervals of all looks hold together.")
    ] = 0.95,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="What must be shown: 'new > old', 'click_rate >= baseline - 1%', 'preference > "
            "0.05'; repeatable. The exit status is 0 if all is shown, 1 if not, 2 for errors.",
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", help="Also write a report: .html, .md or .json."),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Report who wins: intervals that hold however often one looks, by slice and over time."""
    from podium.online import compare_groups, compare_interleaved
    from podium.online.report import online_json, require_online

    for path in output or []:
        if Path(path).suffix not in _WRITERS:
            raise DataError(
                "cannot be written as a report", path=path,
                hint=f"Name a file that ends with {', '.join(_WRITERS)}.",
            )  # fmt: skip
        require_other_file(path, source, *(events or ()))
    common: dict[str, Any] = {
        "pair": None if pair is None else parse_pair(pair),
        "slices": slices,
        "level": level,
    }
    of_groups = {"--metric": metric, "--since": since, "--past": past}
    with tempfile.TemporaryDirectory(prefix="podium-online-") as folder:
        log: str | Path = source
        if _is_ranking_log(source):
            log = _imported(source, events or [], Path(folder) / "log")
        elif events:
            raise ArgumentError("--events are of a ranking log", hint="Leave them out.")
        if assignment is None:
            if wrong := [name for name, value in of_groups.items() if value]:
                raise ArgumentError(f"{wrong[0]} is of A/B tests", hint="Add --assignment COLUMN.")
            report = compare_interleaved(log, experiment=experiment, action=action, **common)
        else:
            report = compare_groups(
                log, assignment=assignment, metrics=metric or (), past=past, share=share,
                since=None if since is None else _moment(since), **common,
            )  # fmt: skip
    results = require_online(report, require or [])
    for path in output or []:  # first: whoever reads what is printed may stop early
        _write(path, report, results)
    if as_json:
        typer.echo(json.dumps(online_json(report, results)))
    else:
        _print(report, results)
    if not all(each.shown for each in results):
        raise typer.Exit(1)


@app.command("plan")
def plan_command(
    log: Annotated[str, typer.Argument(help="The log: a folder, from podium clicks import.")],
    gain: Annotated[
        str, typer.Option(help="The gain to be shown, as a share of today's clicks: 2%.")
    ],
    differs: Annotated[
        str | None,
        typer.Option(
            help="The share of clicks where the rankings differ; by default that of the log's "
            "interleaved searches, or 20%."
        ),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Plan a comparison: searches and days until a decision, interleaving beside an A/B test."""
    from podium.online.planning import plan_online

    plan = plan_online(
        log, gain=parse_share(gain), differs=None if differs is None else parse_share(differs)
    )
    if as_json:
        content = asdict(plan)
        typer.echo(json.dumps({n: v if math.isfinite(v) else None for n, v in content.items()}))
        return
    rows = [
        [
            name, f"{searches:,.0f}" if math.isfinite(searches) else "never",
            f"{searches / plan.per_day:,.1f}" if searches / plan.per_day < math.inf else "-",
        ]
        for name, searches in (
            ("interleaving", plan.interleaving), ("A/B test", plan.groups),
        )
    ]  # fmt: skip
    print_table(["until a decision", "searches", "days"], rows)
    typer.echo()
    print_facts(
        {
            "gain": f"{plan.gain:.1%} of {plan.clicks:.3f} clicks per search, with 80 % power",
            "rankings differ": f"where {plan.differs:.0%} of the clicks are",
            "variance": "between clients" if plan.by_client else "between searches",
        }
    )


@app.command("agree")
def agree_command(
    table: Annotated[
        str,
        typer.Argument(
            help="A table (.csv, .parquet) with measure, offline and online: two differences of "
            "a pair of rankers by each measure."
        ),
    ],
    as_json: JsonOutput = False,
) -> None:
    """Say which offline measure predicts what users do: pairs of rankers with both differences."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    from podium.online.planning import online_agreement
    from podium.online.report import without_nan

    read = pq.read_table if table.endswith(".parquet") else pyarrow.csv.read_csv
    try:
        rows = read(table)
        columns = {name: rows[name].to_pylist() for name in ("measure", "offline", "online")}
        numbers = [np.array(columns[each], float) for each in ("offline", "online")]
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"has no differences ({error})", path=table,
            hint="Columns are measure, offline and online.",
        ) from error  # fmt: skip
    results = online_agreement([str(each) for each in columns["measure"]], *numbers)
    if as_json:
        typer.echo(json.dumps([without_nan(asdict(each)) for each in results]))
        return
    print_table(
        ["measure", "pairs", "left out", "same sign", "low", "high", "tau", "low", "high"],
        [
            [
                each.measure, f"{each.pairs:,}", f"{each.left_out:,}", f"{each.same_sign:.0%}",
                f"{each.sign_low:.0%}", f"{each.sign_high:.0%}", f"{each.correlation:+.2f}",
                f"{each.low:+.2f}", f"{each.high:+.2f}",
            ]
            for each in results
        ],
    )  # fmt: skip
    print_notes(["95 % intervals; pairs that share a ranker are not independent."])


@app.command("preferences")
@reads_data
def preferences_command(
    log: Annotated[
        str, typer.Argument(help="A log or table of interleaved searches, with the query of each.")
    ],
    judgments: Annotated[str, typer.Argument(help="The documents' grades: a qrels file.")],
    old: Annotated[str, typer.Argument(help="The run of the old ranking.")],
    new: Annotated[str, typer.Argument(help="The run of the new ranking.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The pairs to write, for podium utility (.jsonl).")
    ],
    experiment: Annotated[str | None, typer.Option(help="Which one, if there are several.")] = None,
    pair: Annotated[
        str | None, typer.Option(metavar="OLD,NEW", help="The names of the rankings in the log.")
    ] = None,
    action: Annotated[
        Literal["clicked", "add_to_cart", "purchase"], typer.Option(help="What counts.")
    ] = "clicked",
    depth: Annotated[
        int, typer.Option(min=1, max=1000, help="How many documents of each ranking count.")
    ] = 10,
    as_json: JsonOutput = False,
    *,
    reading: Reading,
) -> None:
    """Write what users preferred as pairs of rankings, to learn gains and discounts from."""
    from podium.data import Judgments
    from podium.online.comparison import query_outcomes
    from podium.online.planning import online_preferences
    from podium.utility.preferences_file import write_preferences

    require_other_file(output, log, judgments, old, new)
    grades = reading.truth(judgments, [old, new])
    if not isinstance(grades, Judgments):
        raise DataError("has no grades", path=judgments, hint="Give a qrels file.")
    outcomes, left_out = query_outcomes(
        log, experiment=experiment, pair=None if pair is None else parse_pair(pair), action=action
    )
    runs = (reading.rankings(each) for each in (old, new))
    pairs, queries, counts = online_preferences(outcomes, grades, *runs, depth=depth)
    write_preferences(pairs, output, query_ids=queries)
    if as_json:
        typer.echo(json.dumps(counts | left_out))
        return
    facts = {name: f"{count:,}" for name, count in (counts | left_out).items()}
    print_facts(facts, to_stderr=True)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentError(f"{text!r} is not a time", hint="Give 2026-11-19T08:00.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_ranking_log(source: str) -> bool:
    path = Path(source)
    return path.name.startswith("rankings-") or (
        path.is_dir() and any(path.glob("rankings-*.jsonl*"))
    )


def _imported(source: str, events: list[str], folder: Path) -> Path:
    """Import a ranking log and its events to a folder for the time of the command."""
    from podium.clicks import import_clicks
    from podium.clicks.fetching import fetch_ubi

    files: list[str | Path] = [each for each in events if not each.startswith("http")]
    with byte_progress("Reading") as progress:
        for address in (each for each in events if each.startswith("http")):
            from podium.export.live.http_client import EngineClient, Retry

            with EngineClient(address, "OpenSearch", Retry()) as client:
                files.append(fetch_ubi(client, folder.parent / "ubi", progress=progress))
        return import_clicks(
            source, folder, kind="rankings", events=files, progress=progress
        ).folder


def _write(path: str, report: OnlineReport, results: list[OnlineRequirement]) -> None:
    from podium.online.report import online_document, online_json

    if path.endswith(".json"):
        text = json.dumps(online_json(report, results), indent=1)
    else:
        document = online_document(report, results)
        text = document.as_html() if path.endswith(".html") else document.as_markdown()
    with open_write(path) as write:
        write(text.encode())


def _print(report: OnlineReport, results: list[OnlineRequirement]) -> None:
    from podium.online.report import facts, requirement_rows, result_table

    typer.echo(shown(report.verdict).plain)
    typer.echo()
    headings, rows = result_table(report, _SECONDARY if on_terminal() else ())
    print_table(headings, rows, names=2 if "slice" in headings else 1)
    if results:
        typer.echo()
        columns = ["requirement", "slice", "beyond it by", "low", "shown"]
        print_table(columns, requirement_rows(results), names=2)
    typer.echo()
    print_facts(facts(report) | {name: f"{count:,}" for name, count in report.counts.items()})
    for each in report.warnings:
        typer.echo(f"Warning: {shown(each).plain}", err=True)
