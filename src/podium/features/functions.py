"""Features of a query's words and of a document's text that Podium computes itself."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping

_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 1_000_000


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters, digits and underscores, in one case.

    Example:
        >>> words("The Straße, 2nd")
        ['the', 'strasse', '2nd']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text[:_MOST_CHARACTERS]).casefold())


def _term_overlap(query: list[str], text: str) -> float:
    """Return the share of the query's distinct words that the text has."""
    distinct = set(query)
    return len(distinct & set(words(text))) / len(distinct) if distinct else math.nan


def _term_matches(query: list[str], text: str) -> float:
    """Return how many of the query's distinct words the text has."""
    return float(len(set(query) & set(words(text))))


def _phrase_match(query: list[str], text: str) -> float:
    """Return 1 if the text has the query's words in a row, else 0."""
    tokens, size = words(text), len(query)
    starts = range(len(tokens) - size + 1) if size else range(0)
    return float(any(tokens[start : start + size] == query for start in starts))


def _exact_match(query: list[str], text: str) -> float:
    """Return 1 if the words of the text are those of the query, else 0."""
    return float(words(text) == query)


def _words(_query: list[str], text: str) -> float:
    """Return the number of words of the text."""
    return float(len(words(text)))


def _characters(_query: list[str], text: str) -> float:
    """Return the number of characters of the text."""
    return float(len(text))


FUNCTIONS: Mapping[str, Callable[[list[str], str], float]] = {
    "term_overlap": _term_overlap,
    "term_matches": _term_matches,
    "phrase_match": _phrase_match,
    "exact_match": _exact_match,
    "words": _words,
    "characters": _characters,
}
"""Functions of the query's words and the text of a field, by name."""

PROPERTIES: Mapping[str, Callable[[str], float]] = {
    "words": lambda text: float(len(words(text))),
    "characters": lambda text: float(len(text)),
}
"""Properties of the text of a query, by name."""
