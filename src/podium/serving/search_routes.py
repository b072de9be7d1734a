"""``/search``: the page of a query's results, as a model ranks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from msgspec import UNSET, UnsetType

from podium.features.search_query import LoggedDocument
from podium.serving.descriptions import answers, body_of, schema_of
from podium.serving.gateway import read_body
from podium.serving.ranking_log import SearchNames
from podium.serving.refusal import Refusal
from podium.serving.search_ids import HEADER, search_id_of
from podium.serving.search_request import (
    UNCHANGED,
    SearchRequest,
    check_search,
    parse_search,
    parse_search_parameters,
)
from podium.serving.search_settings import SearchSettings
from podium.serving.searcher import REASONS, NoAnswer, SearchResult
from podium.serving.service import Service


class FoundDocument(msgspec.Struct, gc=False):
    """A document of a page."""

    id: str
    score: float
    fields: dict[str, Any]


class SearchAnswer(msgspec.Struct, gc=False, rename={"start": "from"}):
    """A page, best first, and the model that ranked it, if one has."""

    search_id: str
    query: str
    start: int
    reranked: bool
    reason: str | None
    hits: list[FoundDocument]
    model: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    experiment: str | UnsetType = UNSET


def add_search_routes(app: FastAPI, service: Service, settings: SearchSettings) -> None:
    """Add the routes of a search to an application."""
    described = answers(
        SearchAnswer, "The page, best first, and whether the model ranked it.",
        400, 401, 408, 413, 415, 503,
    )  # fmt: skip
    schema = schema_of(SearchRequest)
    parameters = [
        {"name": name, "in": "query", "required": name == "q", "schema": each}
        for name, each in {
            "q": schema["properties"]["query"],
            **{name: schema["properties"][name] for name in sorted(UNCHANGED)},
            "fields": {"type": "string"}, "columns.NAME": {"type": "string"},
        }.items()
    ]  # fmt: skip

    async def answer(sent: Request, request: SearchRequest) -> Response:
        search_id = search_id_of(sent, request.search_id)
        searcher = service.searcher
        if searcher is None:
            raise Refusal(503, "the service is not ready")
        check_search(request, settings.depth, settings.fields, searcher.query_columns)
        try:
            result = await searcher.search(request, search_id)
        except NoAnswer as no_answer:
            service.metrics.searched(no_answer.outcome)
            raise
        service.metrics.searched(result.outcome)
        ranked = result.ranked
        if result.failed or result.interleaved is not None:
            service.metrics.interleaved("failed" if result.failed else "interleaved")
        if ranked is not None:
            names = SearchNames(
                search_id, request.query_id, request.query, request.start, request.size,
                service.client_hash(request.client), result.interleaved,
            )  # fmt: skip
            service.note(ranked.model, names, ranked.ids, ranked.rows, ranked.scores)
        content = msgspec.json.encode(_answer(search_id, request, result))
        return Response(content, headers={HEADER: search_id}, media_type="application/json")

    @app.post("/search", responses=described, openapi_extra=body_of(schema))
    async def search(request: Request) -> Response:
        """Search, and rank the results by a model."""
        body = await read_body(request.scope, request.receive, service.settings)
        return await answer(request, parse_search(body))

    @app.get("/search", responses=described, openapi_extra={"parameters": parameters})
    async def search_by_parameters(request: Request) -> Response:
        """Search, and rank the results by a model."""
        return await answer(request, parse_search_parameters(request.query_params))


def _answer(search_id: str, request: SearchRequest, result: SearchResult) -> SearchAnswer:
    hits = [
        FoundDocument(document.id, score, _fields(document, request.fields))
        for document, score in result.page
    ]
    reason = REASONS.get(result.outcome)
    if result.ranked is None:
        return SearchAnswer(search_id, request.query, request.start, False, reason, hits)
    model = result.ranked.model
    return SearchAnswer(
        search_id, request.query, request.start, True, reason, hits,
        model.name, str(model.version), model.digest,
        UNSET if result.interleaved is None else result.interleaved.experiment,
    )  # fmt: skip


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
