"""Candidates to judge, from what a retrieval experiment has: a run, topics, and documents."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from podium.data.candidates import Candidate, CandidateList
from podium.data.files import numbered_lines, plain_suffix, source_name
from podium.data.json_lines import json_lines
from podium.data.judged import Rankings
from podium.errors import DataError

# Common names of fields in JSON lines: Podium's own, BEIR's, ir_datasets' and Pyserini's.
ID_FIELDS = ("query_id", "document_id", "_id", "id", "qid", "docno", "doc_id", "docid")
TEXT_FIELDS = ("text", "query", "contents", "body", "passage")


def run_candidates(
    run: Rankings,
    topics: str | os.PathLike[str],
    documents: str | os.PathLike[str],
    *,
    depth: int = 20,
) -> list[CandidateList]:
    r"""Return the first documents of each of a run's queries with their texts.

    Topics and documents are JSON lines (``.jsonl``), or lines of an id, a tab and a text; documents
    may have a title between the two. Only what the run needs is kept in memory.

    Args:
        run: The rankings; their scores become prior scores.
        topics: The file with the text of each query.
        documents: The file with the text of each document.
        depth: How many documents of a query to take from the top.

    Raises:
        DataError: If none of the queries, or none of the documents, has a text.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> run = Rankings.from_columns(["q", "q"], ["a", "b"], [0.3, 0.7])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     topics, documents = Path(folder, "topics.tsv"), Path(folder, "documents.tsv")
        ...     _ = topics.write_text("q\tred shoes\n")
        ...     _ = documents.write_text("a\tA shoe\nb\tA red shoe\n")
        ...     (query,) = run_candidates(run, topics, documents)
        >>> query.query, [each.text for each in query.candidates]
        ('red shoes', ['A red shoe', 'A shoe'])
    """
    queries = run.query_ids.to_pylist()
    tops = [_top(run, query, depth) for query in range(len(queries))]
    texts = {identity: text for identity, _, text in read_texts(topics, set(queries))}
    if not texts:
        raise DataError(
            f"has none of the run's {len(queries)} queries",
            path=source_name(topics),
            hint="Compare the query ids of both.",
        )
    needed = {document for top in tops for document, _ in top}
    contents = {identity: (title, text) for identity, title, text in read_texts(documents, needed)}
    if not contents:
        raise DataError(
            f"has none of the {len(needed)} documents of the run's top {depth}",
            path=source_name(documents),
            hint="Compare the document ids of both.",
        )
    lists = []
    for query, top in zip(queries, tops, strict=True):
        candidates = tuple(
            Candidate(document, *contents[document], score=score)
            for document, score in top
            if document in contents
        )
        if query in texts and candidates:
            lists.append(CandidateList(query, texts[query], candidates))
    if not lists:
        raise DataError(
            "no query of the run has both its text and a document with a text",
            path=source_name(topics),
            hint="Give the topics and documents that the run was made for.",
        )
    return lists


def _top(run: Rankings, query: int, depth: int) -> list[tuple[str, float]]:
    rows = np.arange(run.offsets[query], run.offsets[query + 1])
    best = rows[np.argsort(-run.scores[rows], kind="stable")][:depth].tolist()
    return [(run.document_ids[row].as_py(), float(run.scores[row])) for row in best]


def read_texts(
    source: str | os.PathLike[str], needed: Collection[str] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Read topics or documents: id, title and text of those that are needed, or of all."""
    if plain_suffix(source) in (".jsonl", ".json"):
        for entry in json_lines(source, _fields):
            if needed is None or entry[0] in needed:
                yield entry
        return
    for _, key, rest in tabbed_lines(source):
        if needed is None or key in needed:
            title, more, text = rest.partition("\t")
            yield (key, title, text) if more else (key, "", title)


def tabbed_lines(source: str | os.PathLike[str]) -> Iterator[tuple[int, str, str]]:
    """Yield each line's number, its id and the text after the first tab, skipping empty lines."""
    name = source_name(source)
    for number, line in numbered_lines(source):
        if not line.strip():
            continue
        identity, tab, rest = line.partition(b"\t")
        if not tab:
            raise DataError(
                "is not an id, a tab and a text", path=name, line=number, hint="Or use .jsonl."
            )
        try:
            yield number, identity.decode().strip(), rest.decode()
        except UnicodeError as error:
            raise DataError(
                "is not UTF-8 text", path=name, line=number, hint="Convert the file first."
            ) from error


def _fields(content: dict[str, Any]) -> tuple[str, str, str]:
    identity = next((content[name] for name in ID_FIELDS if name in content), None)
    text = next((content[name] for name in TEXT_FIELDS if name in content), None)
    if not isinstance(identity, str | int) or not isinstance(text, str):
        raise DataError(
            "has no id or no text",
            hint=f"Name them as one of {', '.join(ID_FIELDS)} and one of {', '.join(TEXT_FIELDS)}.",
        )
    title = content.get("title", "")
    return str(identity), title if isinstance(title, str) else "", text
