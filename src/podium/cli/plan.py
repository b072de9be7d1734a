"""``podium plan``: how many queries, and which judgments, a comparison needs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from podium.cli.evaluate import ConventionName, Measure, Truth, read_systems
from podium.cli.options import JsonOutput
from podium.cli.printing import on_terminal, print_notes, print_table
from podium.cli.progress import spinner
from podium.cli.reading import Reading, reads_data
from podium.data import Judgments, Rankings
from podium.data.preferences import Preferences
from podium.errors import ArgumentError
from podium.measures import compare, next_judgments, plan_queries
from podium.measures.comparison.next_judgments import JudgingPlan
from podium.measures.comparison.power import QueryPlan


@reads_data
def plan_command(
    truth: Truth,
    runs: Annotated[list[str], typer.Argument(help="Two runs or more; the first is the baseline.")],
    measures: Measure = None,
    conventions: ConventionName = None,
    difference: Annotated[
        float, typer.Option(help="The true difference that a test is to show.")
    ] = 0.01,
    power: Annotated[float, typer.Option(help="The chance to show it.")] = 0.8,
    level: Annotated[float, typer.Option(help="The level of the two-sided test.")] = 0.05,
    next_count: Annotated[
        int | None,
        typer.Option(
            "--next",
            metavar="COUNT",
            help="Print instead the unjudged documents to judge next, those that say most about "
            "the difference of two runs first.",
        ),
    ] = None,
    as_json: JsonOutput = False,
    *,
    reading: Reading,
) -> None:
    """Plan a comparison: how many queries it takes, or which documents to judge next.

    The deviation of the differences between the runs, query by query, is taken from the queries
    at hand.
    """
    with spinner("Planning"):
        judged = reading.truth(truth, runs)
        systems = read_systems(runs, reading)
        if next_count is not None:
            plan = _next(judged, systems, measures, conventions, next_count)
        else:
            default = ["ppref"] if isinstance(judged, Preferences) else ["nDCG@10"]
            comparison = compare(measures or default, judged, systems, conventions=conventions)
            plans = plan_queries(comparison, difference=difference, power=power, level=level)
    if next_count is not None:
        _print_next(plan, as_json=as_json)
    else:
        _print(plans, difference, power, level, as_json=as_json)


def _next(
    judged: Judgments | Preferences,
    systems: dict[str, Rankings],
    measures: list[str] | None,
    conventions: str | None,
    count: int,
) -> JudgingPlan:
    if len(systems) != 2 or len(measures or []) > 1:
        raise ArgumentError(
            f"{len(systems)} runs and {len(measures or []) or 1} measures to choose documents for",
            hint="Give two runs and one measure with --next.",
        )
    if isinstance(judged, Preferences):
        raise ArgumentError("--next chooses documents to label. Give qrels as TRUTH.")
    measure = measures[0] if measures else "nDCG@10"
    return next_judgments(measure, judged, *systems.values(), count=count, conventions=conventions)


def _print(
    plans: tuple[QueryPlan, ...], difference: float, power: float, level: float, *, as_json: bool
) -> None:
    if as_json:
        content = [{**vars(plan), "measure": repr(plan.measure)} for plan in plans]
        typer.echo(json.dumps(content))
        return
    headings = ("measure", "system", "deviation", "queries", "power", "needed", "detectable")
    rows = [
        [
            repr(plan.measure),
            plan.system,
            f"{plan.deviation:.4f}",
            f"{plan.queries:,}",
            f"{plan.power:.1%}",
            "-" if plan.needed is None else f"{plan.needed:,}",
            f"{plan.detectable:.4f}",
        ]
        for plan in plans
    ]
    print_table(headings, rows, names=2)
    print_notes(
        [
            f"needed: queries that show a true difference of {difference:g} with {power:.0%} "
            f"power, by a two-sided paired t-test at level {level:g}, if they vary as those at "
            "hand.",
            f"power: the chance that the queries at hand show it; detectable: the difference that "
            f"they show with {power:.0%} power.",
        ]
    )


def _print_next(plan: JudgingPlan, *, as_json: bool) -> None:
    if as_json:
        content: dict[str, Any] = {
            "measure": repr(plan.measure),
            "difference": plan.difference,
            "expected": plan.expected,
            "deviation": plan.deviation,
            "why_unknown": plan.why_unknown or None,
            "labels": plan.labels,
            "least": plan.least,
            "most": plan.most,
            "exact": plan.exact,
            "could_turn": plan.could_turn,
            "unlikely_to_turn": plan.unlikely_to_turn,
            "unjudged": plan.unjudged,
            "documents": [vars(each) for each in plan.documents],
        }
        typer.echo(json.dumps(content, ensure_ascii=False))
        return
    rows = [
        [
            each.query_id,
            each.document_id,
            "-" if each.baseline_rank is None else str(each.baseline_rank),
            "-" if each.system_rank is None else str(each.system_rank),
            f"{each.swing:.5f}",
        ]
        for each in plan.documents
    ]
    print_table(("query", "document", "baseline rank", "rank", "swing"), rows, names=2)
    notes = [
        f"{plan.measure!r}: the difference is {plan.difference:+.4f} as judged.",
        *_outlook(plan),
        "swing: the standard deviation of the mean difference that is due to this document"
        + (", if unjudged ones are like those judged." if plan.why_unknown else "."),
    ]
    if not on_terminal():  # seen in the log of a pipeline, too
        typer.echo("\n".join(notes), err=True)
    print_notes(notes)


def _outlook(plan: JudgingPlan) -> list[str]:
    """What the difference will be once all documents among the first are judged."""
    if not plan.unjudged:
        return ["All documents among the first are judged."]
    facts = [_expectation(plan)]
    if plan.least is None:
        facts.append("They are too many for bounds.")
    else:
        kind = "exact" if plan.exact else "safe bounds, which may be wide"
        low, high = plan.labels
        facts.append(
            f"With labels in use ({low:g} to {high:g}), it will be from {plan.least:+.4f} to "
            f"{plan.most:+.4f} ({kind})."
        )
    if not plan.could_turn:
        facts.append("So none of these labels turn its sign.")
    elif plan.unlikely_to_turn:
        facts.append("Its sign may turn, but is unlikely to.")
    else:
        facts.append("Its sign may turn.")
    return facts


def _expectation(plan: JudgingPlan) -> str:
    unjudged = f"the {plan.unjudged:,} unjudged documents among the first"
    if plan.expected is None:
        return f"What to expect of {unjudged} cannot be learned: {plan.why_unknown}."
    return f"Expected once {unjudged} are judged: {plan.expected:+.4f} ± {plan.deviation:.4f}."
