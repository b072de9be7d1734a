"""``podium study``."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from podium.cli.options import ClusterAddress, cluster_at
from podium.cli.progress import stage_progress
from podium.cli.text import shown
from podium.data.files import open_write
from podium.errors import MissingPackageError
from podium.threads import thread_count

STUDIES = {
    "bounds": "Lan et al. 2013, theorems 1 and 2: which inequalities hold.",
    "consistency": "Xia et al. 2009: which losses find the right top 1, and their tables 1 and 4.",
    "labeling": "Niu et al. 2012, tables 1 to 3: pairs against five grades.",
    "sufficiency": "Lan et al. 2013, figures 1 and 2: how much of the order is enough.",
    "end-to-end": "Ours: what hours of judging buy, by grades and by pairs.",
    "metric": "Zhou et al. 2012: gains and discounts learned from preferences.",
    "toprank": "Cheng et al. 2014, figures 2 to 4: slack scaling and aggregation.",
    "focused": "Niu et al. 2012, tables 4 and 5, figures 1 and 2: FocusedRank.",
}
"""Every study but the leaderboard; its module is called so."""

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
    cluster: ClusterAddress = None,
) -> None:
    """Train every model on every data set, and write the table; continues where it was stopped."""
    _need_packages()
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
            run(plan, lambda done, total, _task: report(done, total), cluster=cluster_at(cluster))
    standings = collect(plan.tasks(), where)
    page.parent.mkdir(parents=True, exist_ok=True)
    _write(page, written(standings, _about()))
    draw(standings, page.parent.parent / "images")
    Console(stderr=True).print(shown(f"Wrote {page}."))


def _study_command(name: str) -> None:
    """Add the command of a study."""

    def command(
        data: Annotated[
            Path | None, typer.Argument(help="The folder with the data sets (letor/MQ2007, …).")
        ] = None,
        results: Annotated[
            Path, typer.Option(help="Results go to a folder in it; what is there is not run again.")
        ] = Path("build"),
        page: Annotated[
            Path | None,
            typer.Option(help="The Markdown page to write; pictures go to ../images from it."),
        ] = None,
        quick: Annotated[bool, typer.Option("--quick", help="Small sizes.")] = False,
        no_run: Annotated[
            bool, typer.Option("--no-run", help="Only write the page, of the results there are.")
        ] = False,
        cluster: ClusterAddress = None,
    ) -> None:
        _need_packages()
        from podium.studies.registry import study_called
        from podium.studies.study import Setup, run_study, study_page

        study = study_called(name)
        setup = Setup(results, data, quick)
        target = page or setup.results(name) / "page" / f"{name}.md"
        if not no_run:
            with stage_progress() as stage:
                run_study(study, setup, stage(study.title), cluster=cluster_at(cluster))
        text = study_page(study, setup, target.parent.parent / "images")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, text)
        Console(stderr=True).print(shown(f"Wrote {target}."))

    app.command(name, help=f"{STUDIES[name]} Continues where it was stopped.")(command)


for _name in STUDIES:
    _study_command(_name)


@app.command("evidence")
def evidence_command(
    pages: Annotated[Path, typer.Argument(help="The folder with the pages of the studies.")],
) -> None:
    """Gather the verdicts of all pages in a folder into one table, its ``index.md``."""
    from podium.studies.evidence import evidence_page

    target = pages / "index.md"
    _write(target, evidence_page(pages))
    Console(stderr=True).print(shown(f"Wrote {target}."))


def _write(page: Path, text: str) -> None:
    with open_write(page, compress=False) as write:
        write(text.encode())


def _need_packages() -> None:
    try:
        import matplotlib as _matplotlib  # noqa: F401
        import sklearn as _sklearn  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(str(error.name), extra="studies") from error


def _about() -> str:
    packages = ["podium", "lightgbm", "xgboost-cpu", "xgboost", "catboost", "scikit-learn", "numba"]
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except ImportError:
            continue
    return f"Measured with {', '.join(found)} on {thread_count()} cores."
