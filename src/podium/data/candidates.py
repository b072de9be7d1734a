"""Queries with the contents of their candidate documents, as shown to assessors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from podium.data.judged import Judgments, Rankings
from podium.errors import DataError


@dataclass(frozen=True)
class Candidate:
    """A candidate document of a query.

    Attributes:
        document_id: Its id.
        title: Its title.
        text: Its plain text.
        html: Its HTML as received: never display it without sanitizing.
        url: Its address.
        score: An existing ranker's score, larger is better.
        label: A judgment, larger is better.
        metadata: Anything else, kept unchanged.
    """

    document_id: str
    title: str = ""
    text: str = ""
    html: str = ""
    url: str = ""
    score: float | None = None
    label: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CandidateList:
    """A query, a description of the information need, and its candidates.

    Example:
        >>> CandidateList("q1", "red shoes", (Candidate("d1", text="Red shoes, size 42"),)).query
        'red shoes'
    """

    query_id: str
    query: str
    candidates: tuple[Candidate, ...]
    description: str = ""


def candidate_judgments(lists: Iterable[CandidateList]) -> Judgments:
    """Collect the labels of all candidates that have one.

    Example:
        >>> shoes = CandidateList("q1", "shoes", (Candidate("a", label=2), Candidate("b")))
        >>> candidate_judgments([shoes]).labels.tolist()
        [2.0]
    """
    rows = _rows(lists, "label")
    return Judgments.from_columns(*zip(*rows, strict=True))


def candidate_rankings(lists: Iterable[CandidateList], *, name: str = "podium") -> Rankings:
    """Collect the scores of all candidates that have one.

    Example:
        >>> shoes = CandidateList("q1", "shoes", (Candidate("a", score=0.7), Candidate("b")))
        >>> candidate_rankings([shoes], name="bm25").scores.tolist()
        [0.7]
    """
    rows = _rows(lists, "score")
    return Rankings.from_columns(*zip(*rows, strict=True), name=name)


def _rows(lists: Iterable[CandidateList], field_name: str) -> list[tuple[str, str, float]]:
    rows = [
        (entry.query_id, candidate.document_id, getattr(candidate, field_name))
        for entry in lists
        for candidate in entry.candidates
        if getattr(candidate, field_name) is not None
    ]
    if not rows:
        raise DataError(
            f"no candidate has a {field_name}", hint=f'Give candidates a "{field_name}".'
        )
    return rows
