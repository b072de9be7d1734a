"""``podium simulate``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from podium.cli.printing import on_terminal, print_notes, print_table
from podium.data.files import open_write
from podium.reports.charts import Bar, bar_chart_file

if TYPE_CHECKING:
    from podium.judging.workload import Workload

HabitName = Literal["perfect", "real", "crowd", "tie-prone", "sided", "tired"]

_BAR = 18


def simulate_command(
    queries: Annotated[int, typer.Option(min=1, help="How many queries to judge.")] = 100,
    items: Annotated[int, typer.Option(min=1, help="How many documents each query has.")] = 50,
    k: Annotated[int, typer.Option(min=1, help="How many documents to put in order.")] = 10,
    prior: Annotated[
        float,
        typer.Option(min=0, max=1, help="Correlation of an existing ranking with the truth."),
    ] = 0.0,
    judges: Annotated[HabitName, typer.Option(help="How reliably people judge.")] = "real",
    seconds: Annotated[
        float, typer.Option(min=0.01, help="Seconds it takes to compare two documents.")
    ] = 5.51,
    overlap: Annotated[
        float, typer.Option(min=0, max=1, help="Share of pairs that several people judge.")
    ] = 0.0,
    assessors: Annotated[int, typer.Option(min=1, help="How many people judge each of those.")] = 2,
    hours_each: Annotated[
        float, typer.Option(min=0.1, help="Hours of judging each person can give.")
    ] = 20.0,
    runs: Annotated[int, typer.Option(min=2, help="How many queries to simulate.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulation.")] = 0,
    plot: Annotated[str | None, typer.Option(help="Write the plot to this SVG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Plan a judging project: how many judgments, hours and people it takes.

    Every selection algorithm is simulated, the default one first, and compared with
    five-level grading. Times are Niu et al.'s: 5.5 s for a pair of web
    pages, 13.9 s for a grade.
    """
    from podium.judging import HABITS, Overlap
    from podium.judging.algorithms import ALGORITHMS
    from podium.judging.workload import estimate_grading_workload, estimate_workload

    habits = replace(HABITS[judges], seconds=seconds)
    shared = Overlap(overlap, assessors) if overlap else None
    works = [
        estimate_workload(
            queries,
            items,
            k,
            algorithm=name,
            prior=prior,
            habits=habits,
            overlap=shared,
            runs=runs,
            random_state=seed,
        )
        for name in ALGORITHMS
    ]
    works.append(
        estimate_grading_workload(
            queries, items, k, habits=habits, overlap=shared, runs=runs, random_state=seed
        )
    )
    if plot is not None:
        title = f"Judgments per query: top {k} of {items}, {judges} judges"
        caption = f"Line: 5th to 95th percentile of queries. Hours: for all {queries:,} queries."
        chart = bar_chart_file(title, [_bar(work) for work in works], caption)
        with open_write(plot, compress=False) as write:
            write(chart.encode())
    if as_json:
        typer.echo(json.dumps([_as_json(work, hours_each) for work in works], indent=2))
        return
    _print(works, hours_each, f"{queries:,} queries, the top {k} of {items} documents")


def _bar(work: Workload) -> Bar:
    low, high = np.quantile(work.judgments, [0.05, 0.95]) * work.votes_per_pair
    note = f"{work.per_query:.0f}, {work.hours:,.0f} h"
    return Bar(work.algorithm, work.per_query, float(low), float(high), note)


def _as_json(work: Workload, hours_each: float) -> dict[str, object]:
    bar = _bar(work)
    return {
        "algorithm": work.algorithm,
        "judgments_per_query": {"mean": bar.value, "low": bar.low, "high": bar.high},
        "batches_per_query": float(work.rounds.mean()),
        "quality": float(work.quality.mean()),
        "judgments": work.total,
        "hours": work.hours,
        "hours_90_percent": work.hours_within(0.9),
        "people": work.people(hours_each),
    }


def _print(works: list[Workload], hours_each: float, title: str) -> None:
    headings = ["algorithm", "per query", "judgments", "hours", "people", "κ-NDCG"]
    longest = max(_bar(work).high for work in works)
    rows = []
    for work in works:
        bar = _bar(work)
        rows.append(
            [
                work.algorithm,
                f"{bar.value:.0f}",
                f"{work.total:,.0f}",
                f"{work.hours:,.1f}",
                f"{work.people(hours_each)}",
                f"{work.quality.mean():.2f}",
            ]
        )
        if on_terminal():
            filled = max(round(_BAR * bar.value / longest), 1)
            reach = max(round(_BAR * bar.high / longest) - filled, 0)
            rows[-1].append(f"{'█' * filled}{'░' * reach}".ljust(_BAR))
    typer.echo(title)
    print_table([*headings, ""] if on_terminal() else headings, rows)
    best = works[0]
    low, high = best.hours_within(0.9)
    typer.echo(
        f"{best.algorithm}: {low:,.1f} to {high:,.1f} hours (90 % interval), "
        f"{best.people(hours_each)} people at {hours_each:g} hours each."
    )
    notes = ["░ extends to the 95th percentile of queries."]
    print_notes([*notes, "κ-NDCG is 1 if the result is the truth."])
