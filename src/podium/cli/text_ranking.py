"""``podium train --text`` and ``podium predict`` with a text ranker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from podium.cli.fit_report import FitReport
from podium.cli.pool import CandidatePool
from podium.data import Candidate, CandidateList, Judgments, Rankings, write_run
from podium.data.candidates import candidate_judgments
from podium.data.files import open_write, plain_suffix
from podium.data.html_text import plain_text
from podium.errors import ArgumentError

if TYPE_CHECKING:
    from podium.rankers import TextRanker
    from podium.rankers.text_pairs import Pair

_PANEL = "Texts"

Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="CHECKPOINT",
        rich_help_panel=_PANEL,
        help="Train a text ranker from this Hugging Face checkpoint. DATA is a run, with "
        "--topics and --documents, or JSONL with queries and candidates.",
    ),
]
TopicsFile = Annotated[
    str | None,
    typer.Option(
        "--topics",
        rich_help_panel=_PANEL,
        help="The texts of the run's queries (.tsv: id, text; or .jsonl).",
    ),
]
DocumentsFile = Annotated[
    str | None,
    typer.Option(
        "--documents",
        rich_help_panel=_PANEL,
        help="The texts of its documents (.tsv: id, text or id, title, text; .jsonl).",
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        min=1,
        rich_help_panel=_PANEL,
        help="How many documents of each query to take from the top; 100 by default.",
    ),
]
_DEPTH = 100


@dataclass(frozen=True)
class TextSource:
    """Where the texts of a run's queries and documents come from.

    Attributes:
        topics: The file with the queries.
        documents: The file with the documents.
        depth: How many documents of each query to take.
    """

    topics: str | None
    documents: str | None
    depth: int | None

    def refuse(self, hint: str, *, owner: str = "text rankers") -> None:
        """Raise an ArgumentError if any of the options was given."""
        for name in ("topics", "documents", "depth"):
            if getattr(self, name) is not None:
                raise ArgumentError(f"--{name} is for {owner}", hint=hint)

    def refuse_without_run(self, *paths: str | None) -> None:
        """Raise an ArgumentError if any of the options was given, and no path is a run."""
        if all(path is None or _is_json_lines(path) for path in paths):
            self.refuse("JSON lines have their texts: leave it out.", owner="runs")

    def lists(self, path: str) -> list[CandidateList]:
        """Read a run with its texts, or JSON lines that have them."""
        json_lines = _is_json_lines(path)
        pool = CandidatePool(
            path if json_lines else None, None if json_lines else path,
            self.topics, self.documents, self.depth or _DEPTH, None,
        )  # fmt: skip
        lists = pool.lists()
        assert lists is not None  # there is a source
        return lists


def refuse_for_texts(**options: Any) -> None:
    """Raise an ArgumentError if any of some options, by their names, was given."""
    refuse_options("text rankers", **options)


def refuse_options(what: str, **options: Any) -> None:
    """Raise an ArgumentError if any of some options, which something does not have, was given."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise ArgumentError(
                f"--{name.replace('_', '-')} is not for {what}", hint="Leave it out."
            )


def _is_json_lines(path: str) -> bool:
    return plain_suffix(path) in (".jsonl", ".json")


@dataclass(frozen=True)
class TextRows:
    """Pairs of texts with the ids of their queries and documents."""

    query_ids: list[str]
    document_ids: list[str]
    pairs: list[Pair]

    @classmethod
    def of(cls, lists: Iterable[CandidateList]) -> TextRows:
        """Create one row per candidate."""
        rows = [(each, candidate) for each in lists for candidate in each.candidates]
        return cls(
            [each.query_id for each, _ in rows],
            [candidate.document_id for _, candidate in rows],
            [(each.query, candidate_text(candidate)) for each, candidate in rows],
        )

    def rankings(self, scores: Any, name: str) -> Rankings:
        """Return scores of the rows as rankings."""
        return Rankings.from_columns(self.query_ids, self.document_ids, scores, name=name)

    def labeled(self, judgments: Judgments) -> tuple[TextRows, Any]:
        """Return the rows of judged queries and their labels; NaN where there is none."""
        joined = self.rankings(np.zeros(len(self.pairs)), "rows").join(judgments)
        rows = zip(self.query_ids, self.document_ids, strict=True)
        pairs = dict(zip(rows, self.pairs, strict=True))
        queries = np.repeat(joined.query_ids.to_pylist(), np.diff(joined.offsets)).tolist()
        documents = joined.document_ids.to_pylist()
        chosen = [pairs[row] for row in zip(queries, documents, strict=True)]
        return TextRows(queries, documents, chosen), joined.labels


def candidate_text(candidate: Candidate) -> str:
    r"""Return what a ranker reads of a document: its title and its text.

    Example:
        >>> candidate_text(Candidate("d", title="Shoes", html="<p>Red, size 42"))
        'Shoes\nRed, size 42'
    """
    text = candidate.text or plain_text(candidate.html)
    return f"{candidate.title}\n{text}" if candidate.title else text


def read_text_rows(
    role: str,
    path: str,
    source: TextSource,
    judgments: Judgments | None,
    labels: str | None,
    report: FitReport,
) -> dict[str, Any]:
    """Read training or validation rows; return the arguments ``X``, ``y`` and ``qid`` of a fit.

    Args:
        role: What the rows are for: ``training`` or ``validation``.
        path: A run or JSON lines.
        source: Where their texts are.
        judgments: The labels; None to take those of the JSON lines.
        labels: What the judgments were read from.
        report: Where to note what was read.
    """
    from podium.rankers.text_pairs import TextPairs

    lists = source.lists(path)
    if judgments is None:
        if not _is_json_lines(path):
            raise ArgumentError("a run has no labels", hint="Give --labels.")
        judgments = candidate_judgments(lists)
    rows, values = TextRows.of(lists).labeled(judgments)
    known = int(np.count_nonzero(~np.isnan(values)))
    if not known:
        raise ArgumentError(
            f"{labels or path} has no label for a document of {path}",
            hint="Compare the ids of both.",
        )
    used = len(set(rows.query_ids))
    report.matched(role, labels or path, known, len(values), used, len(lists))
    arguments = {"X": rows.pairs, "y": np.nan_to_num(values, nan=0.0), "qid": rows.query_ids}
    report.read(role, path, TextPairs.from_rows(**arguments, group=None).queries)
    return arguments


def predict_text(
    ranker: TextRanker, path: str, source: TextSource, output: str, *, as_json: bool
) -> None:
    """Score the documents of a run, or of JSON lines, and write a run or JSON lines."""
    rows = TextRows.of(source.lists(path))
    scores = ranker.predict(rows.pairs)
    if not as_json:
        write_run(rows.rankings(scores, type(ranker).__name__), output)
    else:
        with open_write(output) as write:
            for query, document, score in zip(
                rows.query_ids, rows.document_ids, scores.tolist(), strict=True
            ):
                line = {"query_id": query, "document_id": document, "score": score}
                write(f"{json.dumps(line)}\n".encode())
