"""``podium audit``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.options import JsonOutput
from podium.cli.outputs import require_other_file
from podium.cli.pool import CandidatePool
from podium.cli.printing import print_facts, print_table
from podium.cli.reading import is_answer_log, read_grades
from podium.data.files import numbered_lines, open_write
from podium.data.html_text import plain_text
from podium.errors import ArgumentError, DataError
from podium.judging.entries import MOST_GRADES

if TYPE_CHECKING:
    from podium.judging.auditing.audit import Audit
    from podium.judging.auditing.plan import AuditPlan
    from podium.judging.auditing.sample import HumanLabels, Unit
    from podium.judging.models.answer_log import ModelAnswer


def audit_command(
    answers: Annotated[
        str | None,
        typer.Argument(
            help="The log of a model's answers, from podium judge --model, or a machine's grades "
            "as judgments (qrels), such as those of clicks."
        ),
    ] = None,
    people: Annotated[
        list[str] | None,
        typer.Argument(
            help="What people said: sheets (.csv) or judgments (.qrels), one per person and named "
            "after them, session files, or folders of sessions."
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print how many units people must judge, and stop.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Draw this many units for people to judge blind, to the sheet"),
    ] = None,
    sheet: Annotated[str | None, typer.Option("--to", help="with this name (.csv), with")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="the texts in a JSONL file of candidates,")
    ] = None,
    run: Annotated[str | None, typer.Option(help="or of a run, with")] = None,
    topics: Annotated[str | None, typer.Option(help="the texts of its queries and")] = None,
    documents: Annotated[str | None, typer.Option(help="the texts of its documents.")] = None,
    depth: Annotated[
        int, typer.Option(min=1, help="With --run: how many documents of each query there are.")
    ] = 100,
    model: Annotated[
        str | None, typer.Option(help="The model, if the answers are by several.")
    ] = None,
    rubric: Annotated[
        str | None,
        typer.Option(help="The rubric: its TOML file or, if there are several, its name or hash."),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Margin of the alternative annotator test: 0.2 for experts, 0.15 for trained "
            "people, 0.1 for a crowd.",
        ),
    ] = 0.15,
    groups: Annotated[
        str | None, typer.Option(help="Agreement by group: a file of query id, tab, group.")
    ] = None,
    assessors: Annotated[
        int, typer.Option(min=1, help="With --plan: how many people judge each unit.")
    ] = 3,
    agreement: Annotated[
        float, typer.Option(help="Of the plan: the share on which two people agree.")
    ] = 0.6,
    width: Annotated[
        float, typer.Option(help="Of the plan: half the width of the agreement's interval.")
    ] = 0.1,
    values: Annotated[
        int, typer.Option(min=2, help="Of the plan: how many values a judgment can have.")
    ] = 2,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the report to this HTML file.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of samples.")] = 0,
    as_json: JsonOutput = False,
) -> None:
    """Audit a language model: may it judge in the place of a person, and for what?

    Plan the sample (`podium audit --plan`), draw it (`podium audit answers.jsonl --sample 160 --to
    sheet.csv --from candidates.jsonl`), let people fill copies of the sheet, and hold them against
    the model (`podium audit answers.jsonl ann.csv bob.csv cem.csv -o audit.html`). From fewer units
    than planned there is no yes: repeat the plan's options here.
    """
    from podium.judging.auditing.alt_test import LEAST_PEOPLE
    from podium.judging.auditing.audit import audit
    from podium.judging.auditing.plan import plan_audit
    from podium.judging.auditing.report import audit_page
    from podium.judging.auditing.sheet import draw_units
    from podium.judging.models.answer_log import read_answers
    from podium.judging.models.rubric import RUBRICS, read_rubric

    size = partial(plan_audit, agreement=agreement, epsilon=epsilon, width=width, values=values)
    if plan:
        _print_plan(size(people=assessors), as_json)
        return
    if answers is None:
        raise ArgumentError("there are no answers to audit", hint="Name a log, or give --plan.")
    for written in (sheet, output):
        require_other_file(
            written, answers, *(people or ()), source, run, topics, documents, groups
        )
    log = read_answers(answers) if is_answer_log(answers) else _graded(answers)
    rubrics = [read_rubric(name) for name in RUBRICS]
    if rubric is not None and rubric.endswith(".toml"):
        rubrics.append(read_rubric(rubric))
        rubric = rubrics[-1].hash
    if sample is not None:
        if sheet is None:
            raise ArgumentError("--sample has nowhere to go", hint="Name a sheet: --to sheet.csv.")
        pool = CandidatePool(source, run, topics, documents, depth, None)
        units = draw_units(log, sample, model=model, rubric=rubric, random_state=seed)
        _write_sample(units, sheet, pool, seed)
        return
    if not people:
        raise ArgumentError(
            "there are no people to hold the model against",
            hint="Draw a sample for them: --sample 160 --to sheet.csv --from candidates.jsonl.",
        )
    hashes = {each.rubric_hash for each in log if rubric in (None, each.rubric_hash)}
    known = next((each for each in rubrics if each.task == "grade" and each.hash in hashes), None)
    votes = _votes(people, model or log[0].model, None if known is None else known.labels)
    members = None if groups is None else _groups(groups)
    result = audit(
        log, votes, model=model, rubric=rubric, epsilon=epsilon, groups=members, random_state=seed,
        plan=size(people=max(len(votes), LEAST_PEOPLE)),
    )  # fmt: skip
    if output is not None:
        with open_write(output, compress=False) as write:
            write(audit_page(result).encode())
    if as_json:
        typer.echo(json.dumps(_as_json(result), indent=2))
    else:
        _print(result)


def _print_plan(plan: AuditPlan, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(plan) | {"judgments": plan.judgments}))
        return
    print_facts(
        {
            "units": f"{plan.units:,}",
            "for the test": f"{plan.for_test:,}",
            "for the interval": f"{plan.for_interval:,}",
            "people": f"{plan.people:,}",
            "judgments": f"{plan.judgments:,}",
        }
    )


def _write_sample(units: list[Unit], sheet: str, pool: CandidatePool, seed: int) -> None:
    from podium.judging.auditing.sheet import write_sheet

    lists = pool.lists()
    if lists is None:
        raise ArgumentError(
            "a sheet needs the texts",
            hint="Give --from candidates.jsonl, or --run, --topics and --documents.",
        )
    texts = {
        entry.query_id: {
            candidate.document_id: "\n".join(
                filter(None, (candidate.title, candidate.text or plain_text(candidate.html)))
            )
            for candidate in entry.candidates
        }
        for entry in lists
    }
    queries = {entry.query_id: entry.query for entry in lists}
    write_sheet(units, texts, queries, sheet, random_state=seed)


def _graded(path: str) -> list[ModelAnswer]:
    """Read a machine's grades as answers of a model that is called like the file."""
    from podium.judging.models.answer_log import ModelAnswer

    grades = read_grades(path)
    wrong = next((each for each in grades.values() if each not in range(MOST_GRADES)), None)
    if wrong is not None:
        raise DataError(
            f"has label {wrong:g}, and grades are integers from 0 to {MOST_GRADES - 1}",
            path=path, hint="Write grades: podium clicks label --as grades.",
        )  # fmt: skip
    name = Path(path).stem
    return [
        ModelAnswer(f"{query}/{document}", name, "grades", "", query, (document,), f"{grade:g}")
        for (query, document), grade in grades.items()
    ]


def _votes(paths: list[str], model: str, grades: Sequence[str] | None = None) -> HumanLabels:
    from podium.judging import SessionFile
    from podium.judging.auditing.sample import human_labels
    from podium.judging.auditing.sheet import read_sheet

    votes: dict[str, dict[tuple[str, ...], float]] = {}
    for name in paths:
        path = Path(name)
        if path.suffix in (".csv", ".qrels"):
            if path.stem in votes:
                raise ArgumentError(
                    f"two sheets are by {path.stem!r}", hint="Name each after another person."
                )
            if path.suffix == ".qrels":
                votes[path.stem] = dict(read_grades(name).items())
            else:
                votes[path.stem] = dict(
                    read_sheet(path) if grades is None else read_sheet(path, grades)
                )
            continue
        files = sorted(path.glob("*.session")) if path.is_dir() else [path]
        if not files:
            raise DataError("has no sessions", path=path, hint="Name a folder of sessions.")
        for file in files:
            with SessionFile.open(file) as journal:
                query = str(journal.about.get("query_id", "q"))
                # Each log by itself: what is undone is named by its position there.
                cast = human_labels({query: journal.session.log}, without=model)
            for person, own in cast.items():
                votes.setdefault(person, {}).update(own)
    for person, own in votes.items():
        for unit, value in own.items():
            if grades is not None and len(unit) == 2 and f"{value:g}" not in grades:
                raise DataError(
                    f"{person}'s grade of document {unit[1]!r} for query {unit[0]!r} is {value:g}, "
                    f"and the rubric has {', '.join(grades)}",
                    hint="Correct it, or let people judge by the model's rubric.",
                )
    return votes


def _groups(path: str) -> dict[str, str]:
    members = {}
    for number, line in numbered_lines(path):
        query, tab, group = line.decode(errors="replace").rstrip("\r\n").partition("\t")
        if not tab or not group:
            raise DataError(
                "is not a query id, a tab and a group", path=path, line=number, hint="Fix it."
            )
        members[query] = group
    return members


def _as_json(result: Audit) -> dict[str, Any]:
    def figure(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "model": result.sample.model,
        "task": result.sample.task,
        "units": len(result.sample.units),
        "people": list(result.sample.people),
        **asdict(result.conclusion),
        "figures": {
            name: {
                "value": figure(interval.value),
                "low": figure(interval.low),
                "high": figure(interval.high),
            }
            for name, interval in result.figures.items()
        },
        "test": None if result.test is None else asdict(result.test),
        "groups": {
            name: {
                "units": group.units,
                "with_people": figure(group.with_people.value),
                "between_people": figure(group.between_people.value),
            }
            for name, group in result.groups.items()
        },
    }


def _print(result: Audit) -> None:
    rows = [
        [
            name,
            *(
                f"{value:.3f}" if not math.isnan(value) else "-"
                for value in (interval.value, interval.low, interval.high)
            ),
        ]
        for name, interval in result.figures.items()
        if not math.isnan(interval.value)
    ]
    for name, group in result.groups.items():
        interval = group.with_people
        ends = (interval.value, interval.low, interval.high)
        rows.append([f"kappa, {name}", *("-" if math.isnan(end) else f"{end:.3f}" for end in ends)])
    print_table(["figure", "value", "low", "high"], rows)
    conclusion = result.conclusion
    typer.echo(conclusion.sentence)
    for line in (*conclusion.reasons, *conclusion.warnings, *conclusion.uses):
        typer.echo(f"- {line}")
