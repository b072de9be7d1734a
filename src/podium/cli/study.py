"""``podium study``."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from podium.cli.progress import stage_progress
from podium.cli.text import shown
from podium.errors import MissingPackageError
from podium.threads import thread_count

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Published tables and figures, and Podium's own, each one command.")


@app.callback()
def _studies() -> None:
    """Published tables and figures, and Podium's own, each one command."""


@app.command("leaderboard")
def leaderboard_command(
    data: Annotated[Path, typer.Argument(help="The folder with the data sets (letor/MQ2007, …).")],
    results: Annotated[
        Path, typer.Option(help="Where results are kept; what is there is not run again.")
    ] = Path("build/leaderboard"),
    page: Annotated[
        Path, typer.Option(help="The Markdown page to write; pictures go to ../images from it.")
    ] = Path("build/leaderboard/page/leaderboard.md"),
    only: Annotated[
        list[str] | None, typer.Option(help="A data set, as MQ2007; repeatable. All if absent.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One fold, small grids.")] = False,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Only write the page, of the results there are.")
    ] = False,
) -> None:
    """Train every model on every data set, and write the table; continues where it was stopped."""
    try:
        import matplotlib as _matplotlib  # noqa: F401
        import sklearn as _sklearn  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(str(error.name), extra="studies") from error
    from podium.studies.leaderboard import Plan, run
    from podium.studies.leaderboard_page import page as written
    from podium.studies.leaderboard_plots import draw
    from podium.studies.standings import collect

    folds = 1 if quick else 5
    where = results / "quick" if quick else results
    plan = Plan(data, where, tuple(only or ()), folds=folds, quick=quick)
    if not no_run:
        with stage_progress() as stage:
            report = stage("Training")
            run(plan, lambda done, total, _task: report(done, total))
    standings = collect(plan.tasks(), where)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(written(standings, _about()), encoding="utf-8")
    draw(standings, page.parent.parent / "images")
    Console(stderr=True).print(shown(f"Wrote {page}."))


def _about() -> str:
    packages = ["podium", "lightgbm", "xgboost-cpu", "xgboost", "catboost", "scikit-learn", "numba"]
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except ImportError:
            continue
    return f"Measured with {', '.join(found)} on {thread_count()} cores."
