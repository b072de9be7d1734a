"""What a search request may hold: everything that is not listed here is refused.

Search engines can read other indices, open files, run scripts and call other hosts from within a
search, and learn new ways with every version. So these are lists of what is allowed: clauses,
query parsers, parameters and the shapes of their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.studio.json_types import JsonObject

_Refused = Iterator[str]
"""Names of the parts of a request that are not allowed."""

# OpenSearch and Elasticsearch
_BODY_VALUES = {"size", "from", "min_score", "timeout", "terminate_after", "track_scores",
                "track_total_hits", "search_pipeline"}  # fmt: skip
_BODY_CLAUSES = {"query", "post_filter", "knn", "retriever"}
_LEAVES = {"match", "match_all", "match_none", "match_bool_prefix", "match_phrase",
           "match_phrase_prefix", "multi_match", "combined_fields", "query_string",
           "simple_query_string", "term", "terms", "range", "exists", "prefix", "wildcard",
           "regexp", "fuzzy", "ids", "rank_feature", "distance_feature", "geo_distance",
           "semantic", "sltr"}  # fmt: skip
"""Clauses without clauses in them; but for ``terms``, none of them can name another index."""
_COMPOUNDS = {
    "bool": {"must", "should", "must_not", "filter"},
    "boosting": {"positive", "negative"},
    "constant_score": {"filter"},
    "dis_max": {"queries"},
    "function_score": {"query"},
    "has_child": {"query"},
    "has_parent": {"query"},
    "hybrid": {"queries"},
    "nested": {"query"},
    "rrf": {"retrievers"},
    "standard": {"query", "filter"},
}
"""Clauses with clauses in them, and the keys that hold these."""
_VECTORS = {"knn", "neural"}
_VECTOR_OPTIONS = {"method_parameters", "rescore", "rescore_vector"}
_FUNCTIONS = {"field_value_factor", "random_score", "gauss", "exp", "linear"}
"""Functions of ``function_score`` that run no script."""
_FIELD = re.compile(r"_score|_doc|[A-Za-z][\w.-]*", re.ASCII)

# Solr
_PARSERS = {"lucene", "dismax", "edismax", "simple", "field", "term", "terms", "prefix", "bool",
            "boost", "func", "frange", "knn", "collapse", "parent", "child", "rerank",
            "ltr"}  # fmt: skip
"""Query parsers that read the named index alone: ``xmlparser`` opens what its XML refers to, and
``join`` reads other collections."""
_SEARCH_PARAMETERS = {"df", "q.op", "q.alt", "qf", "qs", "pf", "pf2", "pf3", "ps", "ps2", "ps3",
                      "mm", "mm.autoRelax", "tie", "bq", "bf", "boost", "lowercaseOperators",
                      "stopwords", "sow"}  # fmt: skip
_PARAMETERS = _SEARCH_PARAMETERS | {"q", "fq", "rq", "fl", "sort", "rows", "start", "defType",
                                    "timeAllowed"}  # fmt: skip
_OWN = re.compile(r"words|qq|user_\w+", re.ASCII)
"""Names of parameters for ``$name``; Solr has none of these itself."""
_LOCAL = _SEARCH_PARAMETERS | {
    "v", "query", "f", "b", "must", "should", "must_not", "filter", "which", "of", "filters",
    "score", "l", "u", "incl", "incu", "separator", "method", "cache", "cost", "field",
    "nullPolicy", "min", "max", "sort", "size", "hint", "topK", "reRankQuery", "reRankDocs",
    "reRankWeight", "model", "store", "format",
}  # fmt: skip
"""Local parameters; ``efi.…`` of learning to rank besides."""
_PAIR = r"""[\w.]+=(?:"[^"\\]*"|'[^'\\]*'|[\w.$^*,:+-]*)"""
_LOCAL_PARAMS = re.compile(rf"\{{!(?:([\w-]+)(?: +{_PAIR})*|{_PAIR}(?: +{_PAIR})*) *\}}", re.ASCII)
"""Local params: ``{!parser key=value}`` or ``{!key=value}``."""
_LOCAL_PAIR = re.compile(_PAIR, re.ASCII)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)", re.DOTALL)
_NESTED = re.compile(r"\{!|\$\{|_query_")
"""What makes a part of a string a query of its own, or puts one parameter into another."""
_SOLR_FIELDS = re.compile(r"[\w*., -]+", re.ASCII)
"""Names of fields, which may have wildcards: nothing is computed, renamed or fetched."""


def refused_in_search(body: JsonObject) -> _Refused:
    """What a search of OpenSearch or Elasticsearch must not have in its body.

    Example:
        >>> list(refused_in_search({"query": {"match": {"title": "shoes"}}, "size": 10}))
        []
        >>> list(refused_in_search({"query": {"bool": {"must": [{"script": {"source": "1"}}]}}}))
        ['script']
    """
    for key, value in body.items():
        if key in _BODY_CLAUSES:
            yield from _refused_clauses(key, value)
        elif key == "rescore":
            for each in _listed(value):
                yield from _refused_rescore(each)
        elif key == "sort":
            for each in _listed(value):
                names = {each: "asc"} if isinstance(each, str) else each
                fits = isinstance(names, dict) and all(map(_FIELD.fullmatch, names))
                if not (fits and _is_flat(names, 1)):
                    yield key
        elif key == "collapse":
            if not (isinstance(value, dict) and value.keys() <= {"field"} and _is_flat(value, 0)):
                yield key
        elif key == "_source":
            if not _is_flat(value, 0):
                yield key
        elif key not in _BODY_VALUES or not _is_scalar(value):
            yield key


def _refused_clauses(where: str, value: object) -> _Refused:
    for each in _listed(value):
        if not isinstance(each, dict):
            yield where
        elif where == "knn" and "field" in each:  # Elasticsearch's, beside the query
            yield from _refused_clause("knn", each)
        else:
            for name, content in each.items():
                yield from _refused_clause(name, content)


def _refused_clause(name: str, content: object) -> _Refused:
    if name in _VECTORS and isinstance(content, dict):
        yield from _refused_vector(content)
        return
    if name not in _COMPOUNDS:
        # Where a list of terms is expected, an object says which index and document has them.
        if name not in _LEAVES or not _is_flat(content, 0 if name == "terms" else 1):
            yield name
        return
    if not isinstance(content, dict):
        yield name
        return
    for key, value in content.items():
        if key in _COMPOUNDS[name]:
            yield from _refused_clauses(key, value)
        elif name == "function_score" and key == "functions":
            for each in _listed(value):
                yield from _refused_function(each)
        elif name == "function_score" and key in _FUNCTIONS:
            yield from _refused_function({key: value})
        elif not _is_flat(value, -1):
            yield key


def _refused_vector(content: JsonObject) -> _Refused:
    for key, value in content.items():
        if key == "filter":
            yield from _refused_clauses(key, value)
        elif key in _VECTOR_OPTIONS:
            if not _is_flat(value, 0):
                yield key
        elif key == "query_vector_builder":
            # Another one, ``lookup``, takes the vector of a document of any index.
            named = value.keys() if isinstance(value, dict) else {""}
            if named - {"text_embedding"} or not _is_flat(value, 1):
                yield key
        elif isinstance(value, dict) and not isinstance(content.get("field"), str):
            yield from _refused_vector({**value, "field": key})  # OpenSearch has it as a key
        elif not _is_flat(value, -1):
            yield key


def _refused_function(value: object) -> _Refused:
    if not isinstance(value, dict):
        yield "functions"
        return
    for key, content in value.items():
        if key == "filter":
            yield from _refused_clauses(key, content)
        elif key in _FUNCTIONS:
            if not _is_flat(content, 1):
                yield key
        elif key != "weight" or not _is_scalar(content):
            yield key


def _refused_rescore(value: object) -> _Refused:
    query = value.get("query") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(query, dict):
        yield "rescore"
        return
    yield from value.keys() - {"query", "window_size"}
    for key, content in query.items():
        if key == "rescore_query":
            yield from _refused_clauses(key, content)
        elif not _is_scalar(content):
            yield key


def refused_in_solr(body: JsonObject) -> _Refused:
    """What a search of Solr must not have in its body.

    Example:
        >>> list(refused_in_solr({"query": "{!edismax v=$words}", "params": {"words": "shoes"}}))
        []
        >>> list(refused_in_solr({"query": "{!join from=a to=b fromIndex=staff}x"}))
        ['{!join from=a to=b fromIndex=staff}x']
    """
    for key, value in body.items():
        if key in ("query", "filter"):
            for each in _listed(value):
                yield from _refused_query(each)
        elif key == "params":
            if not isinstance(value, dict):
                yield key
                continue
            for name, content in value.items():
                yield from _refused_parameter(name, content)
        elif key == "fields":
            yield from _refused_parameter("fl", value)
        elif key in ("sort", "limit", "offset"):
            yield from _refused_strings(value)
        else:
            yield key


def _refused_parameter(name: str, value: object) -> _Refused:
    if name not in _PARAMETERS and not _OWN.fullmatch(name):
        yield name
    elif name == "fl":
        yield from (
            str(each)
            for each in _listed(value)
            if not (isinstance(each, str) and _SOLR_FIELDS.fullmatch(each.strip()))
        )
    elif name == "defType":
        if value not in _PARSERS:
            yield str(value)
    else:
        yield from _refused_strings(value)


def _refused_query(value: object) -> _Refused:
    """A query as a string, or as an object: a parser with its local parameters."""
    if not isinstance(value, dict):
        yield from _refused_strings(value)
        return
    for parser, content in value.items():
        if parser not in _PARSERS:
            yield parser
        elif not isinstance(content, dict):
            yield from _refused_strings(content)
        else:
            for key, each in content.items():
                if key not in _LOCAL:
                    yield key
                for one in _listed(each):
                    yield from _refused_query(one)


def _refused_strings(value: object) -> _Refused:
    for each in _listed(value):
        if isinstance(each, str):
            if not _is_plain(each):
                yield each
        elif not _is_scalar(each):
            yield str(each)


def _is_plain(text: str) -> bool:
    """Whether a string chooses none but the parsers allowed, and only at its beginning."""
    local = _LOCAL_PARAMS.match(text)
    if local is not None:
        keys = {pair.partition("=")[0] for pair in _LOCAL_PAIR.findall(local[0])}
        if local[1] not in _PARSERS | {None} or any(
            key not in _LOCAL and not key.startswith("efi.") for key in keys
        ):
            return False
        text = text[2:]
    written = None
    while written != text:  # there may be escapes within escapes
        written, text = text, _ESCAPE.sub(_unescaped, text)
    return not _NESTED.search(text)


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_flat(value: object, depth: int) -> bool:
    """Whether a value is made of scalars and lists of them, in objects at most so deep."""
    if isinstance(value, dict):
        return depth >= 0 and all(_is_flat(each, depth - 1) for each in value.values())
    return all(map(_is_scalar, _listed(value)))
