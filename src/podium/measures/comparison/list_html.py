"""Two ranked lists of a query side by side, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from podium.measures.comparison.single_queries import ListedDocument, ListPair

LIST_STYLE = """
.lists { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr));
  gap: 16px; }
.lists table { width: 100%; table-layout: fixed; white-space: normal; }
.lists th, .lists td { text-align: right; vertical-align: top; }
.lists th, .lists td { padding: 4px 5px; }
.lists th:nth-child(1) { width: 1.4em; } .lists th:nth-child(n+3) { width: 2.6em; }
.lists th:nth-child(2), .lists td:nth-child(2) { text-align: left; overflow-wrap: anywhere; }
.lists small { color: var(--soft); display: block; }
.lists span.title { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; }
.query { margin: 10px 0; } .query summary { cursor: pointer; font-weight: 600; }
.query .lists { margin-top: 10px; }
"""
_LONGEST = 160


def list_pair(pair: ListPair, baseline: str, *, is_open: bool) -> str:
    """A card with the query's text and how much it moved, which opens to show both lists."""
    tone = "up" if pair.is_better else "down"
    title = f"{escape(pair.query_id)}: {escape(pair.text)}" if pair.text else escape(pair.query_id)
    return (
        f"<details class='card query'{' open' if is_open else ''}><summary>{title} "
        f"<span class='{tone}'>{pair.difference:+.4f}</span></summary><div class='lists'>"
        f"{_table(baseline, pair.baseline)}{_table(pair.system, pair.ranked)}</div></details>"
    )


def _table(system: str, documents: Sequence[ListedDocument]) -> str:
    rows = "".join(
        f"<tr><td>{rank}</td><td>{_document(each)}</td><td>{_label(each)}</td>"
        f"<td>{_other(rank, each)}</td></tr>"
        for rank, each in enumerate(documents, start=1)
    )
    empty = "<tr><td></td><td>nothing was returned</td><td></td><td></td></tr>"
    return (
        f"<table><tr><th></th><th>{escape(system)}</th><th>label</th><th>other</th></tr>"
        f"{rows or empty}</table>"
    )


def _document(document: ListedDocument) -> str:
    if not document.title:
        return escape(document.document_id)
    title = document.title
    short = title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"
    return (
        f"<span class='title'>{escape(short)}</span><small>{escape(document.document_id)}</small>"
    )


def _label(document: ListedDocument) -> str:
    return "?" if document.label is None else f"{document.label:g}"


def _other(rank: int, document: ListedDocument) -> str:
    """The rank in the other list, with the colour of this one's gain or loss."""
    if document.other_rank is None:
        return "-"
    if document.other_rank == rank:
        return str(rank)
    tone = "up" if rank < document.other_rank else "down"
    return f"<span class='{tone}'>{document.other_rank}</span>"
