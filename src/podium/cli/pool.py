"""Where commands take queries and the texts of their candidates from."""

from __future__ import annotations

from dataclasses import dataclass

from podium.data import CandidateList, read_jsonl
from podium.data.pool import run_candidates
from podium.data.sources import as_rankings
from podium.errors import ArgumentError, DataError


@dataclass(frozen=True)
class CandidatePool:
    """Where queries and candidates come from."""

    source: str | None
    run: str | None
    topics: str | None
    documents: str | None
    depth: int
    query: str | None

    def lists(self) -> list[CandidateList] | None:
        """Return the queries to judge with their candidates; None if no source was named."""
        if self.run is not None:
            if self.source is not None:
                raise ArgumentError("--run and --from name two sources. Give one of them.")
            if self.topics is None or self.documents is None:
                raise ArgumentError("a run has ids only. Give --topics and --documents too.")
            rankings = as_rankings(self.run)
            lists = run_candidates(rankings, self.topics, self.documents, depth=self.depth)
        elif self.source is not None:
            lists = list(read_jsonl(self.source))
        else:
            return None
        if self.query is not None:
            lists = [entry for entry in lists if entry.query_id == self.query]
            if not lists:
                raise DataError(f"has no query {self.query!r}", path=self.name)
        return lists

    @property
    def name(self) -> str:
        """The source's name."""
        return str(self.source or self.run)
