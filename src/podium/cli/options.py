"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.errors import ArgumentError, DataError

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


def parse_pair(text: str) -> tuple[str, str]:
    """Read two different names, as old,new."""
    old, comma, new = text.partition(",")
    if not comma or not old or not new or old == new:
        raise ArgumentError(f"{text!r} is not a pair", hint="Give two names: old,new.")
    return old, new


def parse_share(text: str) -> float:
    """Read a share: 2% or 0.02."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise ArgumentError(f"{text!r} is not a share", hint="Give one as 2%.") from error
