"""A query as features see it, and documents as an engine answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from podium.features.functions import words


@dataclass(frozen=True)
class SearchQuery:
    """A query.

    Attributes:
        id: Its id, by which judgments are joined.
        text: What was searched for.
        columns: Other values of it, such as a user's country, by name.
    """

    id: str
    text: str
    columns: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def words(self) -> list[str]:
        """The words of the text."""
        return words(self.text)

    def words_only(self) -> SearchQuery:
        """Return the query without what some parsers take for operators, such as quotation marks.

        Example:
            >>> SearchQuery("q", 'red "shoes" OR').words_only().text
            'red shoes or'
        """
        return SearchQuery(self.id, " ".join(self.words), self.columns)


class LoggedDocument(NamedTuple):
    """A document that an engine returned for a query.

    Attributes:
        id: Its id.
        score: The score of the query that finds candidates.
        values: The features that the engine computed, by name; an absent one is NaN, or left out.
        fields: Stored fields that were asked for, by name.
        number: Its number in the index, or in its shard: engines order equal scores by it.
    """

    id: str
    score: float
    values: Mapping[str, float]
    fields: Mapping[str, Any] = MappingProxyType({})
    number: int = 0
