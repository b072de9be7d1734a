"""``podium compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal
from warnings import catch_warnings

import typer

from podium.cli.evaluate import (
    ConventionName,
    JudgedOnly,
    Measure,
    ScoreColumn,
    Truth,
    read_systems,
    resolved,
)
from podium.cli.options import JsonOutput
from podium.cli.outputs import require_other_file
from podium.cli.powered import MachineLabels, print_powered
from podium.cli.printing import on_terminal, print_notes, print_table
from podium.cli.progress import spinner
from podium.cli.reading import Reading, read_properties, reads_data
from podium.cli.text import shown
from podium.data import Judgments, Rankings
from podium.data.files import open_write
from podium.data.pool import read_texts
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, CoverageWarning, DataError
from podium.measures import Conventions, compare, require, slice_differences
from podium.measures.comparison.decision import Requirement
from podium.measures.comparison.details import Details
from podium.measures.comparison.formats import as_json, as_latex, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.comparison.result import HEADINGS, Comparison, notes, warnings
from podium.measures.comparison.single_queries import hard_queries, moved_lists
from podium.measures.comparison.slice_differences import search_slices
from podium.measures.comparison.statistics import TestName
from podium.measures.comparison.unjudged import unjudged_bounds

_TEST: Final = "randomization"
_WRITERS = {".html": as_html, ".md": as_markdown, ".tex": as_latex, ".json": as_json}


@reads_data
def compare_command(
    truth: Truth,
    runs: Annotated[list[str], typer.Argument(help="Two runs or more; the first is the baseline.")],
    measures: Measure = None,
    conventions: ConventionName = None,
    test: Annotated[
        Literal["randomization", "t", "wilcoxon", "sign"],
        typer.Option(help="The paired test for significance."),
    ] = _TEST,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", help="Also write a report: .html, .md, .tex or .json."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the randomization test.")] = 0,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="What every other run must be shown to reach: 'nDCG@10 >= baseline - 0.005', "
            "'nDCG@10 > baseline', 'RR >= 0.4', with 'in each COLUMN' for slices; repeatable. "
            "The exit status is 0 if all is shown, 1 if not, 2 for errors.",
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option(help="A table (.csv, .tsv, .parquet): query_id and columns to slice by."),
    ] = None,
    topics: Annotated[
        str | None,
        typer.Option(help="Texts of the queries for reports: id and text, .tsv or .jsonl."),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(help="Texts of the documents for reports: id, title and text."),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            help="How often runs may pass that do not meet the requirements; 0.05 by default.",
            show_default=False,
        ),
    ] = None,
    look: Annotated[
        str | None,
        typer.Option(help="Which of several planned looks this is: 2/5 shares out the level."),
    ] = None,
    judged_only: JudgedOnly = False,
    score_column: ScoreColumn = "score",
    machine: MachineLabels = None,
    as_json_output: JsonOutput = False,
    *,
    reading: Reading,
) -> None:
    """Compare systems: means, intervals, tests, effects, and whether results are coherent.

    A result is coherent if other sensible gains and discounts of DCG agree with it.
    """
    _compare(
        truth,
        runs,
        measures or [],
        [Requirement.parse(text) for text in require or []],
        output or [],
        _Asked(
            conventions,
            judged_only,
            test,
            seed,
            slices,
            topics,
            documents,
            level,
            look,
            machine,
            score_column,
        ),
        reading,
        as_json_output=as_json_output,
    )


@dataclass(frozen=True)
class _Asked:
    """Options that are passed on as they are."""

    conventions: str | None
    judged_only: bool
    test: TestName
    seed: int
    slices: str | None
    topics: str | None
    documents: str | None
    level: float | None
    look: str | None
    machine: str | None
    score_column: str


def _compare(
    truth: str,
    runs: list[str],
    measures: list[str],
    requirements: list[Requirement],
    output: list[str],
    asked: _Asked,
    reading: Reading,
    *,
    as_json_output: bool,
) -> None:
    for path in output:
        if Path(path).suffix not in _WRITERS:
            raise DataError(
                "cannot be written as a report",
                path=path,
                hint=f"Name a file that ends with {', '.join(_WRITERS)}.",
            )
        texts = (asked.topics, asked.documents)
        require_other_file(path, truth, *runs, asked.slices, *texts, reading.group)
    if asked.machine is not None:
        others = {
            "--output": bool(output),
            "--require": bool(requirements),
            "--slices": asked.slices is not None,
            "--topics": asked.topics is not None,
            "--documents": asked.documents is not None,
            "--level": asked.level is not None,
            "--look": asked.look is not None,
            "--test": asked.test != _TEST,
            "--seed": asked.seed != 0,
        }
        if any(others.values()):
            superfluous = ", ".join(name for name, is_set in others.items() if is_set)
            raise ArgumentError(
                "--machine prints means and differences only", hint=f"Leave out {superfluous}."
            )
        print_powered(
            truth,
            asked.machine,
            read_systems(runs, reading, asked.score_column),
            *resolved(measures or ["nDCG@10"], asked.conventions, judged_only=asked.judged_only),
            reading,
            differences=True,
            as_json=as_json_output,
        )
        return
    if not requirements and (asked.level is not None or asked.look is not None):
        raise ArgumentError("--level and --look are of requirements. Give --require too.")
    with spinner("Comparing"):
        systems = read_systems(runs, reading, asked.score_column)
        judged = reading.truth(truth, runs)
        default = ["ppref"] if isinstance(judged, Preferences) else ["nDCG@10"]
        names = [*measures, *(each.name for each in requirements)] or default
        parsed, conventions = resolved(names, asked.conventions, judged_only=asked.judged_only)
        # It is among the comparison's own.
        with catch_warnings(action="ignore", category=CoverageWarning):
            comparison = compare(
                parsed,
                judged,
                systems,
                conventions=conventions,
                test=asked.test,
                random_state=asked.seed,
            )
        details = complete = _details(comparison, requirements, asked)
        # Single queries are for readers of a report, not for a terminal.
        if (output or as_json_output) and isinstance(judged, Judgments):
            complete = _with_queries(details, comparison, judged, systems, conventions, asked)
    for path in output:  # first: the reader of standard output may stop early
        with open_write(path) as write:
            write(_WRITERS[Path(path).suffix](comparison, complete).encode())
    if as_json_output:
        typer.echo(as_json(comparison, complete))
    else:
        _print(comparison)
        _print_details(details)
    if details.decision is not None and not details.decision.shown:
        raise typer.Exit(1)


def _details(comparison: Comparison, requirements: list[Requirement], asked: _Asked) -> Details:
    properties = None if asked.slices is None else read_properties(asked.slices)
    decision = None
    if requirements:
        decision = require(
            comparison,
            *requirements,
            properties=properties,
            level=0.05 if asked.level is None else asked.level,
            look=asked.look,
        )
    if properties is None:
        return Details(decision)
    return Details(
        decision,
        slices=slice_differences(comparison, properties),
        searched=search_slices(comparison, properties, random_state=asked.seed),
    )


def _with_queries(
    details: Details,
    comparison: Comparison,
    judgments: Judgments,
    systems: dict[str, Rankings],
    conventions: Conventions,
    asked: _Asked,
) -> Details:
    """Add hard queries, unjudged documents, and lists with the texts that are known."""
    texts = {}
    if asked.topics is not None:
        known = read_texts(asked.topics, set(comparison.query_ids))
        texts = {identity: text for identity, _, text in known}
    lists = moved_lists(comparison, judgments, systems, texts=texts)
    if asked.documents is not None:
        needed = {each.document_id for pair in lists for each in (*pair.baseline, *pair.ranked)}
        known = read_texts(asked.documents, needed)
        titles = {identity: title or text for identity, title, text in known}
        lists = moved_lists(comparison, judgments, systems, texts=texts, titles=titles)
    baseline = systems[comparison.baseline]
    return replace(
        details,
        hard=hard_queries(comparison, comparison.measures[0]),
        unjudged=tuple(
            unjudged_bounds(
                measure,
                conventions,
                judgments,
                baseline,
                systems[name],
                name=name,
                query_ids=comparison.query_ids,
            )
            for measure in comparison.measures
            for name in comparison.systems[1:]
        ),
        lists=lists,
        systems=comparison.systems,
        texts=texts,
    )


_SHORT = ("measure", "system", "mean", "difference", "p (Holm)", "win/tie/loss", "coherent")
"""What fits a terminal of 80 columns; reports and pipes have every column."""


def _print(comparison: Comparison) -> None:
    """Print the table; in a pipe with what a terminal's notes say."""
    terminal = on_terminal()
    facts = {
        "queries": str(len(comparison.query_ids)),
        "test": comparison.test,
        "conventions": comparison.conventions,
    }
    depth = comparison.coverage[comparison.baseline].depth
    columns = _SHORT if terminal else (*HEADINGS, "answered", f"judged@{depth}", *facts)
    rows, bold = [], []
    for row in comparison.rows():
        cells = dict(zip(HEADINGS, row, strict=True)) | facts
        coverage = comparison.coverage[cells["system"]]
        cells["answered"] = f"{coverage.answered}/{coverage.queries}"
        cells[f"judged@{depth}"] = f"{coverage.share:.4f}"
        bold.append(cells["difference"].endswith("*"))
        if not terminal:  # a number for programs; the star stands for the p beside it
            cells["difference"] = cells["difference"].rstrip("*")
        rows.append([cells[heading] for heading in columns])
    print_table(columns, rows, names=2, bold=bold)
    print_notes(list(notes(comparison)))
    _print_warnings(warnings(comparison))


def _print_details(details: Details) -> None:
    for section in details.sections():
        typer.echo(f"\n{section.title}")
        # A terminal of 80 columns has to do with the most important ones; a pipe gets all.
        left_out = section.secondary if on_terminal() else ()
        kept = [at for at, name in enumerate(section.headings) if name not in left_out]
        rows = [[row[at] for at in kept] for row in section.rows]
        print_table([section.headings[at] for at in kept], rows, names=section.names)
        print_notes(section.notes)
        _print_warnings(section.findings)


def _print_warnings(sentences: Sequence[str]) -> None:
    for sentence in sentences:  # seen in the log of a pipeline, too
        typer.echo(shown(sentence).plain, err=True)
