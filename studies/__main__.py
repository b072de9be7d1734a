"""``python -m studies``: published tables and figures, and Podium's own, one command each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from podium import PodiumError
from podium.cluster import Cluster
from podium.threads import thread_count
from studies.evidence import evidence_page
from studies.leaderboard import LeaderboardPlan, run
from studies.leaderboard_page import leaderboard_page, leaderboard_tables
from studies.leaderboard_plots import draw_leaderboard
from studies.standings import collect
from studies.study import PACKAGES, Setup, Study, run_study, study_page, versions

MODULES = (
    "bounds",
    "consistency",
    "labeling",
    "sufficiency",
    "end_to_end",
    "metric",
    "toprank",
    "focused",
    "defaults",
    "clicks",
    "hybrid",
)
"""The modules that define a study each, besides the leaderboard."""

STUDIES: dict[str, Study] = {
    study.name: study for study in (import_module(f"studies.{name}").STUDY for name in MODULES)
}
"""Every study but the leaderboard, by its name."""

_LEADERBOARD = "Train every model on every data set, and write the table."

app = typer.Typer(
    help="Published tables and figures, and Podium's own, one command each. A study that was "
    "stopped continues where it was when it is run again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DataFolder = Annotated[
    Path, typer.Argument(help="The folder with the data sets (letor/MQ2007, …).")
]
OptionalDataFolder = Annotated[
    Path | None,
    typer.Argument(
        help="The folder with the data sets (letor/MQ2007, …); what needs data that are not there "
        "is left out."
    ),
]
Results = Annotated[
    Path, typer.Option(help="The folder for results; what has a result there is not run again.")
]
Page = Annotated[
    Path | None,
    typer.Option(
        help="The Markdown page to write; pictures go to ../images from it. By default it is "
        "written beside the results."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Small sizes: minutes at most, too small for a verdict.")
]
PageOnly = Annotated[
    bool, typer.Option("--page-only", help="Run nothing; write the page from stored results.")
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on a Ray cluster: its address, 'auto', or 'local' to start one on this machine.",
    ),
]


@app.command("list")
def list_command() -> None:
    """List the studies."""
    table = Table("study", "what it reproduces", "needs data")
    for study in STUDIES.values():
        needs = "yes" if study.needs_data else "partly" if study.data else "no"
        table.add_row(study.name, study.about, needs)
    table.add_row("leaderboard", _LEADERBOARD, "yes")
    Console().print(table)


@app.command("leaderboard", help=_LEADERBOARD)
def leaderboard_command(
    data: DataFolder,
    results: Results = Path("build"),
    page: Page = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Run on this data set, such as MQ2007; repeatable. Default: all."),
    ] = None,
    graded_only: Annotated[
        bool, typer.Option("--graded", help="Graded truth alone, not that of the top k.")
    ] = False,
    quick: Quick = False,
    page_only: PageOnly = False,
    cluster: ClusterAddress = None,
) -> None:
    """Train every model on every data set, and write the table."""
    folder = Setup(results, data, quick).folder("leaderboard")
    plan = LeaderboardPlan(
        data,
        folder,
        tuple(only or ()),
        ground_truths=("graded",) if graded_only else ("graded", "top-k"),
        folds=1 if quick else 5,
        quick=quick,
    )
    if not page_only:
        with _progress("Leaderboard") as report:
            run(plan, report, cluster=_cluster(cluster))
    standings = collect(plan.tasks(), folder)
    target = page or folder / "page" / "leaderboard.md"
    tables = leaderboard_tables(standings)
    for name, table in tables.items():
        _write(target.with_suffix("") / f"{name}.csv", table.csv())
    _write(target, leaderboard_page(standings, tables, _measured_with(), target.stem))
    draw_leaderboard(standings, target.parent.parent / "images", target.stem)


def _add_command(study: Study) -> None:
    def command(
        data: OptionalDataFolder = None,
        results: Results = Path("build"),
        page: Page = None,
        quick: Quick = False,
        page_only: PageOnly = False,
        cluster: ClusterAddress = None,
    ) -> None:
        setup = Setup(results, data, quick)
        target = page or setup.folder(study.name) / "page" / f"{study.name}.md"
        if not page_only:
            with _progress(study.title) as report:
                run_study(study, setup, report, cluster=_cluster(cluster))
        _write(target, study_page(study, setup, target.parent.parent / "images"))

    app.command(study.name, help=study.about)(command)


for _study in STUDIES.values():
    _add_command(_study)


@app.command("evidence")
def evidence_command(
    pages: Annotated[Path, typer.Argument(help="The folder with the pages of the studies.")],
) -> None:
    """Collect the verdicts of all pages in a folder into one table, its ``index.md``."""
    _write(pages / "index.md", evidence_page(pages))


def _measured_with() -> str:
    packages = versions((*PACKAGES, "xgboost-cpu", "xgboost", "catboost"))
    return f"Measured with {packages} on {thread_count()} cores."


def _cluster(address: str | None) -> Cluster | None:
    return None if address is None else Cluster(address)


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )  # fmt: skip
    bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _write(page: Path, text: str) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    Console(stderr=True).print(f"Wrote {page}.", markup=False)


def main() -> None:
    """Run a study; an error that the user can fix is one line."""
    try:
        app(prog_name="python -m studies")
    except PodiumError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
