"""Lists without a search engine: words by BM25, and exact nearest neighbors of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from podium.data import Rankings
from podium.data.numbers import as_numbers
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.kernels import Floats

_QUERIES, _DOCUMENTS = 256, 65_536
"""The most queries and documents whose products are in memory together."""


def lexical_list(
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    *,
    depth: int = 100,
    name: str = "bm25",
) -> Rankings:
    """Return each query's first documents by BM25, of the package bm25s.

    Words are lower-case without English stop words, not stemmed. A document without a word of the
    query is not in its list.

    Args:
        documents: The texts by id.
        queries: The texts by id.
        depth: The maximum number of documents of a query.
        name: The run's name.
    """
    try:
        import bm25s
    except ImportError as error:
        raise MissingPackageError("bm25s", extra="hybrid") from error
    _check(len(documents), depth)
    model = bm25s.BM25()
    options = {"stopwords": "en", "show_progress": False}
    model.index(bm25s.tokenize(list(documents.values()), **options), show_progress=False)
    ids = np.array(list(documents), object)
    rows = []
    words = bm25s.tokenize(list(queries.values()), return_ids=False, **options)
    for query, tokens in zip(queries, words, strict=True):
        known = [token for token in tokens if token in model.vocab_dict]
        if known:
            scores = model.get_scores(known)
            best = _first(scores, depth)
            rows += [(query, ids[each], float(scores[each])) for each in best if scores[each] > 0]
    return _run(rows, name)


def nearest_list(
    documents: Mapping[str, ArrayLike],
    queries: Mapping[str, ArrayLike],
    *,
    depth: int = 100,
    name: str = "dense",
) -> Rankings:
    """Return each query's nearest documents: the largest products of vectors, all of them computed.

    Args:
        documents: The vectors by id.
        queries: The vectors by id.
        depth: The maximum number of documents of a query.
        name: The run's name.

    Example:
        >>> run = nearest_list({"a": [1, 0], "b": [0.6, 0.8]}, {"q": [0, 1]}, depth=1)
        >>> run.document_ids.to_pylist(), run.scores.round(3).tolist()
        (['b'], [0.8])
    """
    _check(len(documents), depth)
    document_vectors, query_vectors = _matrix("documents", documents), _matrix("queries", queries)
    if len(query_vectors) and document_vectors.shape[1] != query_vectors.shape[1]:
        raise DataError(
            f"documents have vectors of {document_vectors.shape[1]} numbers, queries of "
            f"{query_vectors.shape[1]}",
            hint="Embed both with one model.",
        )
    document_ids, query_ids = list(documents), list(queries)
    rows = []
    for start in range(0, len(query_vectors), _QUERIES):
        block = query_vectors[start : start + _QUERIES]
        scores = np.empty((len(block), 0), np.float32)
        nearest = np.empty((len(block), 0), np.int64)
        for first in range(0, len(document_vectors), _DOCUMENTS):
            products = block @ document_vectors[first : first + _DOCUMENTS].T
            numbers = np.broadcast_to(np.arange(first, first + products.shape[1]), products.shape)
            scores = np.concatenate([scores, products], axis=1)
            nearest = np.concatenate([nearest, numbers], axis=1)
            best = np.stack([_first(each, depth) for each in scores])
            scores = np.take_along_axis(scores, best, axis=1)
            nearest = np.take_along_axis(nearest, best, axis=1)
        for query, each, values in zip(query_ids[start:], nearest, scores, strict=False):
            rows += [
                (query, document_ids[number], value)
                for number, value in zip(each.tolist(), values.tolist(), strict=True)
            ]
    return _run(rows, name)


def _check(documents: int, depth: int) -> None:
    if not documents:
        raise DataError("there are no documents", hint="Give at least one.")
    if depth < 1:
        raise ArgumentError(f"depth is {depth}", hint="Give at least 1.")


def _matrix(what: str, vectors: Mapping[str, ArrayLike]) -> Floats:
    try:
        rows = np.array(list(vectors.values()), np.float32)
    except ValueError as error:
        raise DataError(f"vectors of {what} differ in length", hint="Embed them alike.") from error
    return as_numbers(rows, np.float32, f"vectors of {what}", dimensions=2)


def _first(scores: Floats, depth: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the numbers of the largest scores, best first; of those that tie, the first."""
    chosen = np.arange(len(scores))
    if depth < len(scores):
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        chosen = np.flatnonzero(scores >= least)
    return chosen[np.argsort(-scores[chosen], kind="stable")][:depth]


def _run(rows: Sequence[tuple[str, str, float]], name: str) -> Rankings:
    if not rows:
        raise DataError("no query has a document", hint="Check the texts.")
    return Rankings.from_columns(*zip(*rows, strict=True), name=name)
