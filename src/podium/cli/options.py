"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.errors import DataError

if TYPE_CHECKING:
    from podium.cluster import Cluster

Whole = Annotated[
    bool,
    typer.Option(
        "--whole", help="Read everything at once: rows of a query need not be contiguous."
    ),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on a Ray cluster: its address, auto, or local to start one here.",
    ),
]
RANKER_HELP = (
    "A ranker saved by podium train, or a model of LightGBM (text), XGBoost (JSON, UBJ) or "
    "CatBoost (JSON)."
)
JsonOutput = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

ReportFile = Annotated[
    str | None, typer.Option("--output", "-o", help="Also write a report: an HTML file.")
]


def check_report_name(path: str | None) -> None:
    """Raise a DataError if the name of a report does not end with .html."""
    if path is not None and Path(path).suffix != ".html":
        raise DataError(
            "cannot be written as a report", path=path, hint="Name a file that ends with .html."
        )


def cluster_at(address: str | None) -> Cluster | None:
    """Return the cluster named by ``--cluster``, if any."""
    if address is None:
        return None
    from podium.cluster import Cluster

    return Cluster(address)
