"""``podium hybrid lists``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from podium.cli.outputs import require_other_file
from podium.cli.progress import stage_progress
from podium.cli.text import shown
from podium.data import write_run
from podium.data.pool import read_texts
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.export.texts import TextGraph


def lists_command(
    documents: Annotated[
        str, typer.Argument(help="The documents (.tsv: id, text or id, title, text; .jsonl).")
    ],
    queries: Annotated[str, typer.Argument(help="The queries (.tsv: id, text; .jsonl).")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder to write bm25.run and dense.run to."),
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="What embeds texts for dense.run: an export of a bi-encoder to ONNX, or a "
            "checkpoint of sentence-transformers. Without it there is only bm25.run.",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=1, help="The maximum number of documents of a query.")
    ] = 100,
) -> None:
    """Make a lexical and a dense list of each query, without a search engine.

    Words are scored by BM25 (bm25s), and vectors compared exactly, all with all: for some 100,000
    documents, not for millions.
    """
    from podium.hybrid.lists import lexical_list, nearest_list

    files = [output / "bm25.run", *([] if encoder is None else [output / "dense.run"])]
    for file in files:
        require_other_file(str(file), documents, queries)
    texts, asked = _texts(documents), _texts(queries)
    runs = [lexical_list(texts, asked, depth=depth)]
    if encoder is not None:
        graph = _encoder(encoder)
        with stage_progress() as stage:
            vectors = [
                dict(zip(each, graph.embed(list(each.values()), stage(what)), strict=True))
                for each, what in ((texts, "Documents"), (asked, "Queries"))
            ]
        runs.append(nearest_list(*vectors, depth=depth))
    output.mkdir(parents=True, exist_ok=True)
    for file, run in zip(files, runs, strict=True):
        write_run(run, file)
        answered = len(run.query_ids)
        without = len(asked) - answered
        left_out = f"; {without} have no document" if without else ""
        Console(stderr=True).print(
            shown(f"Wrote {file}: {run.rows:,} documents of {answered} queries{left_out}."),
            soft_wrap=True,
        )


def _texts(path: str) -> dict[str, str]:
    texts = {}
    for identity, title, text in read_texts(path):
        if identity in texts:
            raise DataError(f"{identity!r} appears twice", path=path, hint="Remove one.")
        texts[identity] = f"{title}\n{text}" if title else text
    return texts


def _encoder(folder: str) -> TextGraph:
    from podium.export.texts import encoder_graph, open_graph

    return (
        open_graph(folder) if (Path(folder) / "manifest.json").is_file() else encoder_graph(folder)
    )
