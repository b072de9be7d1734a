"""``podium card``: what is known of a ranker, or of data, as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.evaluate import ConventionName, Measure
from podium.cli.options import RANKER_HELP
from podium.cli.outputs import require_other_file
from podium.cli.progress import byte_progress, spinner
from podium.cli.reading import Reading, reads_data
from podium.data.files import open_write
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.reports.document import ReportDocument


@reads_data
def card_command(
    source: Annotated[str, typer.Argument(help=f"{RANKER_HELP} Or data, for a data card.")],
    data: Annotated[
        str | None,
        typer.Argument(help="Labeled queries that the ranker was not trained on."),
    ] = None,
    measures: Measure = None,
    conventions: ConventionName = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Permutations behind the importance of features.")
    ] = 5,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="A file to write instead: .md or .html."),
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Write a model card or a data card, as Markdown or as an HTML page.

    The model card has the parameters and the features; with DATA also measures with intervals, the
    importance of features, what the data are, and limits. The data card has labels, features and
    limits of the data.
    """
    if output is not None and Path(output).suffix not in (".md", ".html"):
        raise DataError(
            "cannot be written as a card",
            path=output,
            hint="Name a file that ends in .md or .html.",
        )
    require_other_file(output, source, data, reading.group)
    if _is_ranker(source):
        card = _model_card(source, data, measures, conventions, repeats, reading)
    elif data is not None or measures or conventions:
        raise ArgumentError(
            f"{source} is not a saved ranker. Give the ranker first, then the data."
        )
    else:
        card = _data_card(source, reading)
    if output is None:
        typer.echo(card.as_markdown(), nl=False)
    else:
        text = card.as_html() if output.endswith(".html") else card.as_markdown()
        with open_write(output) as write:
            write(text.encode())


def _is_ranker(path: str) -> bool:
    """Whether a file is a model: data begin otherwise, or have other names."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        start = file.read(5)
    if start.startswith(b"{"):
        return Path(path).suffix in (".json", ".ubj")
    return start.startswith((b"PK", b"CBM1", b"\x80")) or start == b"tree\n"


def _model_card(
    source: str,
    data: str | None,
    measures: list[str] | None,
    conventions: str | None,
    repeats: int,
    reading: Reading,
) -> ReportDocument:
    # Imported here: rankers need packages that other commands do not.
    from podium.explain.cards import model_card
    from podium.export.reading import read_ranker

    ranker = read_ranker(source)
    if data is None:
        if measures or conventions:
            raise ArgumentError("Measures need DATA. Give labeled queries.")
        return model_card(ranker)
    with byte_progress("Reading") as progress:
        rows = reading.whole_data_set(data, progress=progress)
    with spinner("Evaluating"):
        return model_card(ranker, rows, measures or (), conventions=conventions, repeats=repeats)


def _data_card(source: str, reading: Reading) -> ReportDocument:
    from podium.explain.cards import data_card

    with byte_progress("Reading") as progress:
        rows = reading.whole_data_set(source, progress=progress)
    return data_card(rows, name=Path(source).name)
