"""``/search``: the page of a query's results, as a model ranks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI, Request, Response

from podium.features.search_query import LoggedDocument
from podium.serving.descriptions import (
    SEARCH_ANSWER,
    SEARCH_PARAMETERS,
    SEARCH_REQUEST,
    body_of,
    refusals,
)
from podium.serving.gateway import read_body
from podium.serving.ranking_log import SearchNames
from podium.serving.refusal import Refusal
from podium.serving.search.request import (
    SearchRequest,
    check_search,
    parse_search,
    parse_search_parameters,
)
from podium.serving.search.searcher import REASONS, NoAnswer, SearchResult
from podium.serving.search.settings import SearchSettings
from podium.serving.search_ids import HEADER, search_id_of

if TYPE_CHECKING:
    from podium.serving.service import Service


class FoundDocument(msgspec.Struct, gc=False):
    """A document of a page."""

    id: str
    score: float
    fields: dict[str, Any]


def add_search_routes(app: FastAPI, service: Service, settings: SearchSettings) -> None:
    """Add the routes of a search to an application."""
    answers: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The page, best first, and whether the model ranked it.",
            "content": {"application/json": {"schema": SEARCH_ANSWER}},
        },
        **refusals(400, 401, 408, 413, 415, 503),
    }

    async def answer(sent: Request, request: SearchRequest) -> Response:
        search_id = search_id_of(sent, request.search_id)
        searcher = service.searcher
        if searcher is None:
            raise Refusal(503, "the service is not ready")
        check_search(request, settings.depth, settings.fields, searcher.query_columns)
        try:
            result = await searcher.search(
                request, lambda: service.repository.get_for_search(settings.model)
            )
        except NoAnswer as no_answer:
            service.metrics.searched(no_answer.outcome)
            raise
        service.metrics.searched(result.outcome)
        ranked = result.ranked
        if ranked is not None:
            names = SearchNames(
                search_id, request.query_id, request.query, request.start, request.size
            )
            service.note(ranked.model, names, ranked.ids, ranked.rows, ranked.scores)
        content = msgspec.json.encode({"search_id": search_id} | _content(request, result))
        return Response(content, headers={HEADER: search_id}, media_type="application/json")

    @app.post("/search", responses=answers, openapi_extra=body_of(SEARCH_REQUEST))
    async def search(request: Request) -> Response:
        """Search, and rank the results by a model."""
        body = await read_body(request.scope, request.receive, service.settings)
        return await answer(request, parse_search(body))

    @app.get("/search", responses=answers, openapi_extra={"parameters": SEARCH_PARAMETERS})
    async def search_by_parameters(request: Request) -> Response:
        """Search, and rank the results by a model."""
        return await answer(request, parse_search_parameters(request.query_params))


def _content(request: SearchRequest, result: SearchResult) -> dict[str, Any]:
    content: dict[str, Any] = {
        "query": request.query,
        "from": request.start,
        "reranked": result.ranked is not None,
        "reason": REASONS.get(result.outcome),
        "hits": [
            FoundDocument(document.id, score, _fields(document, request.fields))
            for document, score in result.page
        ],
    }
    if result.ranked is not None:
        model = result.ranked.model
        content |= {"model": model.name, "version": str(model.version), "sha256": model.digest}
    return content


def _fields(document: LoggedDocument, names: list[str]) -> dict[str, Any]:
    """Return the fields that were asked for: others are there for features only."""
    values = {name: _field(document.fields, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _field(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field by its name, or by a path into objects; None if it is absent."""
    if name in fields:
        return fields[name]
    value: Any = fields
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
