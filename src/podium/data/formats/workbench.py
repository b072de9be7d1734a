"""Judgments in the JSON of OpenSearch's Search Relevance Workbench and of ``_rank_eval``.

    {"name": "shop", "type": "IMPORT_JUDGMENT", "judgmentRatings": [
        {"query": "red shoes", "ratings": [{"docId": "d1", "rating": "3.0"}, …]}, …]}

What the Workbench answers (``hits``) is read as well, and what ``_rank_eval`` takes
(``{"requests": [{"id": "q", "ratings": [{"_id": "d1", "rating": 3}, …]}]}``). The Workbench has no
ids of queries: the query's text is its id. Written is what the Workbench imports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from podium.data.files import Reporter, Source, numbered_lines, open_write, source_name
from podium.data.judged import Judgments
from podium.errors import DataError


def read_workbench(source: Source, *, progress: Reporter | None = None) -> Judgments:
    """Read judgments.

    Example:
        >>> import io
        >>> ratings = b'[{"query": "a", "ratings": [{"docId": "d", "rating": "2"}]}]'
        >>> read_workbench(io.BytesIO(b'{"judgmentRatings": ' + ratings + b"}")).labels.tolist()
        [2.0]
    """
    name = source_name(source)
    text = b"\n".join(line for _, line in numbered_lines(source, progress=progress))
    try:
        rows = list(_rows(json.loads(text)))
        queries, documents, labels = zip(*rows, strict=True) if rows else ((), (), ())
        return Judgments.from_columns(queries, documents, [float(label) for label in labels])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise error.at(name) from error
        raise DataError(
            f"is not a list of judgments ({type(error).__name__}: {str(error)[:100]})",
            path=name,
            hint='Give {"judgmentRatings": [{"query": "…", "ratings": [{"docId": …, …}]}]}.',
        ) from error


def _rows(content: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    if "requests" in content:
        for request in content["requests"]:
            for each in request["ratings"]:
                yield str(request["id"]), str(each["_id"]), each["rating"]
        return
    for hit in content["hits"]["hits"] if "hits" in content else [{"_source": content}]:
        ratings = hit["_source"]["judgmentRatings"]
        if isinstance(ratings, dict):  # as versions before 3.1 have them
            ratings = [{"query": query, "ratings": rated} for query, rated in ratings.items()]
        for entry in ratings:
            for each in entry["ratings"]:
                yield str(entry["query"]), str(each["docId"]), each["rating"]


def write_workbench(judgments: Judgments, target: Source) -> None:
    """Write judgments for the Workbench to import.

    Example:
        >>> import io
        >>> write_workbench(Judgments.from_columns(["q"], ["d"], [2]), out := io.BytesIO())
        >>> json.loads(out.getvalue())["judgmentRatings"]
        [{'query': 'q', 'ratings': [{'docId': 'd', 'rating': '2.0'}]}]
    """
    documents, labels = judgments.document_ids.to_pylist(), judgments.labels.tolist()
    spans = zip(judgments.query_ids.to_pylist(), pairwise(judgments.offsets.tolist()), strict=True)
    ratings = [
        {
            "query": query,
            "ratings": [
                {"docId": documents[row], "rating": str(labels[row])} for row in range(begin, end)
            ],
        }
        for query, (begin, end) in spans
    ]
    content = {"name": "podium", "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings}
    with open_write(target) as write:
        write(json.dumps(content, ensure_ascii=False).encode())
