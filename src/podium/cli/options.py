"""Options shared by several commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from podium.cluster import Cluster

GroupFile = Annotated[
    str | None,
    typer.Option("--group", help="LETOR text without qid: the file with rows per query."),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="LETOR text: feature indices start at 0.")
]
KeepNonfinite = Annotated[
    bool, typer.Option("--keep-nonfinite", help="LETOR text: read nan and inf as missing.")
]
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
SourceFormat = Annotated[
    str | None, typer.Option("--from", help="Format of the source, if not clear from its name.")
]


def cluster_at(address: str | None) -> Cluster | None:
    """Return the cluster named by ``--cluster``, if any."""
    if address is None:
        return None
    from podium.cluster import Cluster

    return Cluster(address)
