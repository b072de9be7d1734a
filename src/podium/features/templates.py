"""Placeholders of engine queries: ``{{query}}`` and columns of the queries, bound and never parsed.

A placeholder may only stand in a string. OpenSearch and Elasticsearch escape what they put there;
Solr does not, so there it may only be all that follows a query parser's local params.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from podium.errors import DataError

QUERY = "query"
"""The parameter that is the text of the query."""

SOLR_PREFIX = "podium_"
"""Before the names of parameters of requests to Solr, which has names of its own."""

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,99})\s*\}\}")
_SOLR = re.compile(
    r"\{!(?P<parser>[a-z]+)(?P<options>(?:\s[^{}$]*)?)\}\{\{\s*(?P<name>[A-Za-z_]\w{0,99})\s*\}\}",
    re.ASCII,
)
_SOLR_PARSERS = ("dismax", "field", "term")
"""Query parsers that take all that follows their local params as words; ``edismax`` has a syntax
for other fields and for all documents."""
_MOST_CHARACTERS = 10_000
_DEEPEST = 20


def check_template(template: object, depth: int = 0) -> None:
    """Raise a DataError unless a template is JSON whose strings have plain placeholders only."""
    if depth > _DEEPEST:
        raise DataError(f"is nested deeper than {_DEEPEST} levels", hint="Make it flatter.")
    if isinstance(template, dict):
        for key, value in template.items():
            if "{{" in key:
                raise DataError(f"has a placeholder in the key {key!r}", hint="Put it in a string.")
            check_template(value, depth + 1)
    elif isinstance(template, list):
        for value in template:
            check_template(value, depth + 1)
    elif isinstance(template, str):
        _check_text(template)
    elif isinstance(template, float) and not math.isfinite(template):
        raise DataError(f"has the number {template}, which JSON does not have", hint="Change it.")
    elif not isinstance(template, bool | int | float):
        raise DataError(
            f"has a {type(template).__name__}, which JSON does not have", hint="Write a string."
        )


def _check_text(text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise DataError(f"has more than {_MOST_CHARACTERS} characters", hint="Shorten it.")
    rest = _PLACEHOLDER.sub("", text)
    if "{{" in rest or "}}" in rest or re.search(r"\{\{\{|\}\}\}", text):
        raise DataError(
            f"{text[:60]!r} has something else than placeholders in braces",
            hint="Write {{query}} or {{NAME}}, with a column of the queries: what it stands for is "
            "escaped.",
        )


def parameters(template: object) -> tuple[str, ...]:
    """Return the parameters of a template, sorted.

    Example:
        >>> parameters({"match": {"title": "{{query}} {{place}}"}})
        ('place', 'query')
    """
    return tuple(sorted(set(_PLACEHOLDER.findall(json.dumps(template)))))


def bound(template: Any, value_of: Callable[[str], str]) -> Any:
    """Return a template with the values of its parameters, as parts of strings.

    Example:
        >>> bound({"match": {"title": "{{query}}"}}, {"query": 'x", "y": "'}.__getitem__)
        {'match': {'title': 'x", "y": "'}}
    """
    if isinstance(template, dict):
        return {key: bound(value, value_of) for key, value in template.items()}
    if isinstance(template, list):
        return [bound(value, value_of) for value in template]
    if isinstance(template, str):
        return _PLACEHOLDER.sub(lambda match: value_of(match[1]), template)
    return template


def check_solr(query: str) -> None:
    """Raise a DataError unless a Solr query is fixed, or ends with its only placeholder.

    Solr replaces macros in the text of a query and parses the result. After the local params of
    these parsers everything is words, whatever characters it has.

    Example:
        >>> check_solr("{!field f=title}{{query}}")
        >>> check_solr("title:({{query}})")
        Traceback (most recent call last):
        podium.errors.DataError: 'title:({{query}})' would let the query's words ...
    """
    _check_text(query)
    if "${" in query:
        raise DataError("has a macro of Solr (${...})", hint="Write {{query}}.")
    if not parameters(query):
        return
    match = _SOLR.fullmatch(query)
    if match is None or match["parser"] not in _SOLR_PARSERS:
        raise DataError(
            f"{query[:60]!r} would let the query's words change the structure of the request",
            hint="Write {!PARSER OPTIONS}{{query}} with one of the parsers "
            f"{', '.join(_SOLR_PARSERS)}, such as {{!field f=title}}{{{{query}}}}.",
        )


def solr_macros(query: str) -> str:
    """Return a Solr query with macros for its placeholders, as features of Solr have them.

    Example:
        >>> solr_macros("{!field f=title}{{ query }}")
        '{!field f=title}${query}'
    """
    return _PLACEHOLDER.sub(r"${\1}", query)


def solr_references(query: str) -> str:
    """Return a Solr query whose placeholder is a reference to a parameter of the request.

    Example:
        >>> solr_references("{!dismax qf='title text'}{{query}}")
        "{!dismax qf='title text' v=$podium_query}"
    """
    match = _SOLR.fullmatch(query)
    if match is None:
        return query  # it has no placeholder
    return f"{{!{match['parser']}{match['options']} v=${SOLR_PREFIX}{match['name']}}}"


def without_macros(text: str) -> str:
    """Return the value of a parameter for Solr, which would expand macros in it.

    Example:
        >>> without_macros("price ${x}")
        'price $ {x}'
    """
    return text.replace("${", "$ {")
