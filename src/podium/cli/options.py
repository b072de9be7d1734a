"""Options that several verbs have."""

from __future__ import annotations

from typing import Annotated

import typer

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
    bool, typer.Option("--whole", help="Read all at once: rows of a query may lie apart.")
]
SourceFormat = Annotated[
    str | None, typer.Option("--from", help="Format of the source, if its name does not tell.")
]
