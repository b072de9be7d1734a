"""A search within its budget of time: reranked if it can be, in the engine's order if not.

The engine is asked for candidates with their features. If that fails, or has not succeeded after
half of the budget, the engine is asked for the page alone as well, and whatever is there when the
budget ends is the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import structlog

from podium.errors import DataError
from podium.export.live.http_client import check_address
from podium.features.definitions import FeatureDefinitions, FeatureRows
from podium.features.feature_search import FeatureSearch, QueryRefusedError, feature_search
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.kernels import Doubles, Floats
from podium.serving.engine_client import AsyncEngineClient
from podium.serving.experiment import Experiment, InterleavedPage
from podium.serving.model import ServedModel
from podium.serving.refusal import Refusal
from podium.serving.rows import order_of
from podium.serving.scoring import Pair
from podium.serving.search_request import SearchRequest
from podium.serving.search_settings import SearchSettings

Outcome: TypeAlias = Literal["reranked", "logging", "model", "time", "engine", "busy"]
"""How a search ended: reranked, or why not; ``engine`` and ``busy`` are those without an answer."""

REASONS: dict[Outcome, str] = {
    "logging": "the engine did not compute the features",
    "model": "the model did not score the candidates",
    "time": "the budget of time did not suffice",
}

_HEDGE = 0.5
"""The share of the budget after which the engine is asked for the page alone as well."""
_RESERVE = 0.1
"""The share of the budget that is kept for features, scores and the answer."""

_CHECK_SECONDS = 1.0
"""How often the feature set in the engine is compared with the definitions. Its name ends with a
hash of them, so it differs only if somebody has changed it by hand."""


@dataclass(frozen=True)
class RankedCandidates:
    """The candidates of a search as a model ranked them.

    Attributes:
        model: The model.
        ids: The candidates' ids, in the order of the index: that of equal scores.
        rows: Their features.
        scores: Their scores.
    """

    model: ServedModel
    ids: list[str | int]
    rows: Floats
    scores: Doubles


@dataclass(frozen=True)
class SearchResult:
    """A page of results.

    Attributes:
        outcome: How the search ended.
        page: The documents of the page, and the score that each is ranked by.
        ranked: All candidates, if the page is reranked.
        interleaved: What it shows of two rankings, if it is a draft of them.
        failed: Whether it should have been one.
    """

    outcome: Outcome
    page: list[tuple[LoggedDocument, float]]
    ranked: RankedCandidates | None = None
    interleaved: InterleavedPage | None = None
    failed: bool = False


class NoAnswer(Refusal):
    """A search that the engine does not answer."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        self.outcome = outcome
        super().__init__(503, reason)


class Searcher:
    """Searches an engine and ranks what it returns.

    Args:
        settings: The engine and the limits.
        definitions: The features.
        score: Scores rows by a model, with the texts of those that read them.
        find_model: Returns a model by its name.
        experiment: Two models of which some searches show a draft.
    """

    def __init__(
        self,
        settings: SearchSettings,
        definitions: FeatureDefinitions,
        score: Callable[[ServedModel, Floats, Sequence[Pair]], Awaitable[Doubles]],
        find_model: Callable[[str | None], ServedModel],
        experiment: Experiment | None = None,
    ) -> None:
        self._score, self._find_model, self._experiment = score, find_model, experiment
        self._model_name = settings.model
        self._rows, self._logging, self._plain = prepare_search(settings, definitions)
        self._text_fields = settings.text_fields
        self._depth, self._seconds = settings.depth, settings.budget_ms / 1000
        self._client = AsyncEngineClient(
            self._logging.address, seconds=self._seconds, connections=settings.connections
        )
        # Two connections for each search, so that none of them waits for those of others.
        self._free = asyncio.Semaphore(settings.connections // 2)
        self._check_again = 0.0
        self.query_columns = frozenset(definitions.query_columns)
        self._log = structlog.get_logger("podium.serving")

    async def close(self) -> None:
        """Close the connections to the engine."""
        await self._client.close()

    async def search(self, request: SearchRequest, search_id: str) -> SearchResult:
        """Answer a search.

        Raises:
            NoAnswer: If the engine does not answer in time, or other searches take all of it.
            Refusal: If the engine does not take the query.
        """
        start = asyncio.get_running_loop().time()
        query = self._query(request)
        try:
            async with asyncio.timeout_at(start + _HEDGE * self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise NoAnswer("busy", "too many searches at once") from None
        try:
            candidates, page, in_time = await self._ask(query, request, start)
        finally:
            self._free.release()
        if candidates is not None:
            deadline = start + self._seconds
            return await self._rank(query, request, search_id, candidates, deadline)
        if page is None:
            raise NoAnswer("engine", "the search engine does not answer")
        outcome: Outcome = "logging" if in_time else "time"
        return SearchResult(outcome, _by_engine(page, request.fields))

    def _query(self, request: SearchRequest) -> SearchQuery:
        query = SearchQuery(request.query, request.query, request.columns)
        try:
            self._logging.check_query(query)
            if request.columns:
                self._rows(query, [])  # a column that is not a number is the client's mistake
        except DataError as error:
            raise Refusal(400, error.problem) from error
        return query

    async def _ask(
        self, query: SearchQuery, request: SearchRequest, start: float
    ) -> tuple[list[LoggedDocument] | None, list[LoggedDocument] | None, bool]:
        """Return the candidates or else the page, and whether the engine answered about both."""
        now = asyncio.get_running_loop().time
        last = start + (1 - _RESERVE) * self._seconds
        logged = asyncio.ensure_future(self._candidates(query, request.fields))
        tasks = {logged}
        try:
            # Less than half of the budget is left for a search that had to wait for others.
            hedge = max(_HEDGE * self._seconds + start - now(), _HEDGE * (last - now()))
            await asyncio.wait(tasks, timeout=hedge)
            if _result(logged) is not None:
                return _result(logged), None, True
            plain = asyncio.ensure_future(
                self._documents(self._plain, query, request.size, request.start, request.fields)
            )
            tasks.add(plain)
            waiting = {task for task in tasks if not task.done()}
            while waiting and now() < last and _result(logged) is None:
                _, waiting = await asyncio.wait(
                    waiting, timeout=last - now(), return_when=asyncio.FIRST_COMPLETED
                )
            refused = _exception(logged), _exception(plain)
            if all(isinstance(error, QueryRefusedError) for error in refused):
                raise Refusal(400, "the search engine refuses this query")
            return _result(logged), _result(plain), logged.done()
        finally:
            for task in tasks:
                task.cancel()
            errors = await asyncio.gather(*tasks, return_exceptions=True)
            for error in errors:
                if isinstance(error, Exception):
                    self._log.warning("engine", error=str(error))

    async def _documents(
        self, engine: FeatureSearch, query: SearchQuery, size: int, start: int, fields: list[str]
    ) -> list[LoggedDocument]:
        steps = engine.asking(query, size, start, fields)
        request = next(steps)
        while True:
            answer = await self._client.ask(request)
            try:
                request = steps.send(answer)
            except StopIteration as end:
                documents: list[LoggedDocument] = end.value
                return documents

    async def _candidates(self, query: SearchQuery, fields: list[str]) -> list[LoggedDocument]:
        """Return the candidates with their features, if these are the ones that are defined."""
        now = asyncio.get_running_loop().time()
        stored = self._logging.stored()
        if stored is not None and now >= self._check_again:
            self._logging.check_stored(*await self._client.ask(stored))
            self._check_again = now + _CHECK_SECONDS
        asked = list(dict.fromkeys([*fields, *self._text_fields]))
        return await self._documents(self._logging, query, self._depth, 0, asked)

    async def _rank(
        self,
        query: SearchQuery,
        request: SearchRequest,
        search_id: str,
        candidates: list[LoggedDocument],
        deadline: float,
    ) -> SearchResult:
        page = slice(request.start, request.start + request.size)
        in_index_order = sorted(candidates, key=_number)
        try:
            model, names = self._find_model(self._model_name), self._rows.definitions.names
            every = self._rows(query, in_index_order)
            rows = model.select(every, names)
            async with asyncio.timeout_at(deadline):
                scores = await self._score(model, rows, self._pairs(query, in_index_order))
        except TimeoutError:
            return SearchResult("time", _by_engine(candidates[page], request.fields))
        except (
            Exception
        ) as error:  # whatever a model or a feature does, the engine's order is there
            self._log.error("model", error=repr(error))
            return SearchResult("model", _by_engine(candidates[page], request.fields))
        order = order_of(scores)
        ids: list[str | int] = [document.id for document in in_index_order]
        interleaved, failed = None, False
        experiment = self._experiment
        if (
            experiment is not None
            and request.interleave
            and experiment.takes_part(search_id, request.client)
        ):
            try:
                other = self._find_model(experiment.partner(model.name))
                others = await experiment.score(
                    other, other.select(every, names), self._pairs(query, in_index_order),
                    until=deadline,
                )  # fmt: skip
                rankings = {
                    model.name: (model.digest, order), other.name: (other.digest, order_of(others)),
                }  # fmt: skip
                order, interleaved = experiment.page(search_id, rankings, ids, page)
            except Exception as error:  # a model that is tried costs no search
                self._log.error("interleaving", error=repr(error))
                failed = True
        values = scores.tolist()
        return SearchResult(
            "reranked",
            [(_shown(in_index_order[row], request.fields), values[row]) for row in order[page]],
            RankedCandidates(model, ids, rows, scores),
            interleaved,
            failed,
        )

    def _pairs(self, query: SearchQuery, documents: list[LoggedDocument]) -> list[Pair]:
        """Return the query and each document as texts, if models read them."""
        if not self._text_fields:
            return []
        return [
            (query.text, "\n".join(_texts(each.fields.get(name) for name in self._text_fields)))
            for each in documents
        ]


def prepare_search(
    settings: SearchSettings, definitions: FeatureDefinitions
) -> tuple[FeatureRows, FeatureSearch, FeatureSearch]:
    """Return what computes features, and the searches with and without logging.

    Raises:
        PodiumError: If the engine cannot be asked so, or a ranker of a feature cannot be loaded.
    """
    check_address(settings.url)
    rows = FeatureRows(definitions)
    rows.load()
    # Without features there is nothing to log.
    plain = FeatureDefinitions((), definitions.candidates)
    logging, page = (
        feature_search(each, settings.engine, settings.url, settings.feature_set, settings.id_field)
        for each in (definitions, plain)
    )
    return rows, logging, page


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield the strings of fields, of which some have several."""
    for value in values:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each


def _number(document: LoggedDocument) -> int:
    return document.number


def _by_engine(
    documents: list[LoggedDocument], fields: list[str]
) -> list[tuple[LoggedDocument, float]]:
    return [(_shown(document, fields), document.score) for document in documents]


def _shown(document: LoggedDocument, fields: list[str]) -> LoggedDocument:
    """Return a document with the fields that were asked for, without those a model reads."""
    kept = {name: value for name, value in document.fields.items() if name in fields}
    return document if len(kept) == len(document.fields) else document._replace(fields=kept)


def _result(task: asyncio.Future[list[LoggedDocument]]) -> list[LoggedDocument] | None:
    """Return the result of a task that has ended well."""
    if task.done() and not task.cancelled() and task.exception() is None:
        return task.result()
    return None


def _exception(task: asyncio.Future[list[LoggedDocument]]) -> BaseException | None:
    """Return why a task has failed, if it has."""
    return task.exception() if task.done() and not task.cancelled() else None
