"""Whether an engine ranks real queries by an exported model as the ranker would.

The candidates of each query are fetched with their features, and scored by what the export's files
compute. Then the engine ranks the same query by the model that it has, and its first documents must
be those, in that order, but where scores differ by no more than rounding explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from podium.data.files import Reporter
from podium.errors import ArgumentError, DataError
from podium.export.folder import ExportFolder
from podium.export.live.http_client import EngineClient
from podium.export.live.versions import version_name
from podium.export.targets.base import EngineModel
from podium.export.verifying import read_written, score_tolerance
from podium.features.definitions import FeatureRows
from podium.features.feature_log import check_feature_set, send
from podium.features.feature_search import (
    MOST_DOCUMENTS,
    EngineRequest,
    FeatureSearch,
    QueryRefusedError,
)
from podium.features.search_query import LoggedDocument, SearchQuery

_MOST_DIFFERENCES = 20
_WIDER = 10
"""How many times as many candidates are looked through for documents of other shards."""
_PREFERENCE = "preference=podium-verify"
"""So that the same copies of the shards answer both requests."""


@dataclass(frozen=True)
class QueryDifference:
    """A document that the engine ranks otherwise.

    Attributes:
        query: The id of the query.
        document: The id of the document.
        text: What differs.
    """

    query: str
    document: str
    text: str


@dataclass(frozen=True)
class QueryVerification:
    """What a comparison of real queries found.

    Attributes:
        queries: The number of queries that were compared.
        documents: The number of candidates that were scored.
        differing: The number of queries whose first documents differ.
        empty: The number of queries without a candidate.
        wider: The number of queries with documents beyond the first candidates of the whole index.
        refused: The number of queries that the engine refuses, as they are and as plain words.
        differences: The first differences.
        unchecked: What the comparison could not notice, in words.
    """

    queries: int
    documents: int
    differing: int
    empty: int
    wider: int
    refused: int
    differences: tuple[QueryDifference, ...]
    unchecked: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether queries were compared, and none differs."""
        return self.queries > 0 and not self.differing


def verify_queries(
    export: ExportFolder,
    search: FeatureSearch,
    queries: Iterable[SearchQuery],
    *,
    depth: int = 100,
    top: int = 10,
    model: str | None = None,
    progress: Reporter | None = None,
) -> QueryVerification:
    """Compare the engine's first documents of queries with those of the exported ranker.

    Args:
        export: The export whose model the engine has.
        search: The engine's searches; its feature set must be there.
        queries: The queries.
        depth: The number of candidates that are ranked.
        top: The number of documents that are compared.
        model: The model's name in the engine, by default the version of the export.
        progress: Called with the number of queries done, and None.

    Raises:
        DataError: If the engine does not answer, or has another feature set.

    Example:
        >>> import tempfile
        >>> from podium.export import export_ranker
        >>> from podium.features.definitions import FeatureDefinitions
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import EngineSource, FieldSource
        >>> from podium.features.feature_search import feature_search
        >>> from podium.features.search_query import SearchQuery
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> export = export_ranker(ranker, "opensearch", tempfile.mkdtemp())
        >>> clicks = FeatureDefinition("1", FieldSource("clicks"))
        >>> definitions = FeatureDefinitions((clicks,), EngineSource({"match_all": {}}))
        >>> search = feature_search(definitions, "opensearch", "http://localhost:1/shop")
        >>> verify_queries(export, search, [SearchQuery("q1", "red shoes")])
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    if not 1 <= top <= depth <= MOST_DOCUMENTS:
        raise ArgumentError(
            f"the first {top} documents of {depth} cannot be compared",
            hint=f"Give 1 to {MOST_DOCUMENTS} candidates, and not more documents than these.",
        )
    check = _Check(export, search, depth, top, model or version_name(export))
    with EngineClient(search.address, search.title) as client:
        check_feature_set(search, client)
        for number, query in enumerate(queries, 1):
            check.compare(client, query)
            if progress is not None:
                progress(number, None)
    return check.result()


class _Check:
    def __init__(
        self, export: ExportFolder, search: FeatureSearch, depth: int, top: int, model: str
    ) -> None:
        self._search, self._depth, self._top, self._name = search, depth, top, model
        self._target = export.manifest.target
        self._reference = export.reference()
        self._written: EngineModel = read_written(export, self._reference)
        names = search.definitions.names
        unknown = [each.name for each in export.manifest.features if each.name not in names]
        if unknown:
            raise DataError(
                f"feature {unknown[0]!r} of the export is not defined",
                hint="Give the definitions that the ranker's data were logged by.",
            )
        self._columns = [names.index(each.name) for each in export.manifest.features]
        self._rows = FeatureRows(search.definitions)
        self._rows.load()
        counts = ("queries", "documents", "differing", "empty", "wider", "refused")
        self._counts = dict.fromkeys(counts, 0)
        self._differences: list[QueryDifference] = []
        self._reached: set[int] = set()
        self._unscored = 0

    def compare(self, client: EngineClient, query: SearchQuery) -> None:
        try:
            documents = self._candidates(client, query, self._depth)
        except QueryRefusedError:
            self._counts["refused"] += 1
            return
        if not documents:
            self._counts["empty"] += 1
            return
        ranking = self._ranking(client, query)
        scores = self._scores(query, documents)
        first = list(scores)
        if not {name for name, _ in ranking} <= scores.keys():
            self._counts["wider"] += 1
            more = self._candidates(client, query, min(_WIDER * self._depth, MOST_DOCUMENTS))
            scores = self._scores(query, more) | scores
        differences = list(self._differ(query, ranking, scores, first))
        self._counts["queries"] += 1
        self._counts["documents"] += len(scores)
        self._counts["differing"] += bool(differences)
        self._differences += differences[: _MOST_DIFFERENCES - len(self._differences)]

    def _candidates(
        self, client: EngineClient, query: SearchQuery, size: int
    ) -> list[LoggedDocument]:
        steps = self._search.asking(query, size)
        request = next(steps)
        try:
            while True:
                answer = send(client, _pinned(request, self._target))
                try:
                    request = steps.send(answer)
                except StopIteration as end:
                    documents: list[LoggedDocument] = end.value
                    return documents
        except QueryRefusedError:
            raise
        except DataError as error:
            raise DataError(f"query {query.id!r}: {error.problem}", hint=error.hint) from error

    def _ranking(self, client: EngineClient, query: SearchQuery) -> list[tuple[str, float]]:
        """Return the engine's first documents by its model, of a query or else of its words."""
        for asked in (query, query.words_only()):
            request = self._search.reranked(asked, self._name, self._depth, self._top)
            status, answer = send(client, _pinned(request, self._target))
            if status == 200:
                return self._search.ranking(answer)
        raise DataError(
            f"query {query.id!r}: {self._search.title} answers a search with the model "
            f"{self._name} with status {status}",
            hint="Look at what its log says.",
        )

    def _scores(
        self, query: SearchQuery, documents: list[LoggedDocument]
    ) -> dict[str, tuple[float, float]]:
        """Return the score of each document by the export, and what rounding explains of it."""
        rows = self._rows(query, documents)[:, self._columns].astype(np.float64)
        scores = self._written.predict(rows).tolist()
        bounds = score_tolerance(self._target, self._reference, rows).tolist()
        reached = self._written.model.reached_leaves(self._written.rows(rows))
        self._reached.update(reached.tolist())
        pairs = zip(scores, bounds, strict=True)
        return dict(zip((each.id for each in documents), pairs, strict=True))

    def _differ(
        self,
        query: SearchQuery,
        ranking: list[tuple[str, float]],
        scores: dict[str, tuple[float, float]],
        first: list[str],
    ) -> list[QueryDifference]:
        differences = []

        def differ(document: str, text: str) -> None:
            differences.append(QueryDifference(query.id, document, text))

        known = [(name, score) for name, score in ranking if name in scores]
        self._unscored += len(ranking) - len(known)
        for name, score in known:
            expected, bound = scores[name]
            if not abs(score - expected) <= bound:
                differ(name, f"scores {score:.7g} instead of {expected:.7g}")
        for (above, _), (below, _) in pairwise(known):
            slack = scores[above][1] + scores[below][1]
            if scores[above][0] + slack < scores[below][0]:
                differ(below, f"is below {above}, whose score is less")
        if not known:
            differ("", f"none of {len(ranking)} documents that are returned is a candidate")
        elif len(ranking) < min(self._top, len(first)):
            differ("", f"{len(ranking)} documents are returned, of {len(first)} candidates")
        ranked = {name for name, _ in ranking}
        lowest = min((scores[name][0] + scores[name][1] for name, _ in known), default=np.inf)
        for name in first:
            if name not in ranked and scores[name][0] - scores[name][1] > lowest:
                differ(name, f"is not among the first {self._top}, and its score is larger")
        return differences

    def result(self) -> QueryVerification:
        unchecked = [
            "what changed since the ranker's data were logged: both sides read the engine's "
            "documents and analyzers as they are now"
        ]
        leaves = self._written.model.leaf_count or 0
        if len(self._reached) < leaves:
            unchecked.append(
                f"{leaves - len(self._reached)} of {leaves} leaves: no candidate reaches them"
            )
        if self._counts["empty"]:
            unchecked.append(f"{self._counts['empty']} queries without a candidate")
        if self._counts["refused"]:
            unchecked.append(f"{self._counts['refused']} queries that the engine refuses")
        if self._unscored:
            unchecked.append(
                f"{self._unscored} documents of other shards, which are not among the first "
                f"{_WIDER * self._depth} candidates of the whole index"
            )
        return QueryVerification(
            **self._counts, differences=tuple(self._differences), unchecked=tuple(unchecked)
        )


def _pinned(request: EngineRequest, target: str) -> EngineRequest:
    """Return a request that the same copies of shards answer each time."""
    if target == "solr":
        return request
    joint = "&" if "?" in request.path else "?"
    return replace(request, path=f"{request.path}{joint}{_PREFERENCE}")
