"""``/rerank``: a query and the texts of documents, as clients of Cohere and others send them."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Annotated

import msgspec
import numpy as np
from fastapi import FastAPI, Request, Response
from msgspec import UNSET, Meta, UnsetType

from podium.kernels import Doubles
from podium.serving.descriptions import answers, body_of, schema_of
from podium.serving.gateway import read_body
from podium.serving.refusal import Refusal, decoding
from podium.serving.search_ids import LONGEST_QUERY
from podium.serving.service import Service
from podium.serving.text_model import ServedTextModel

PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")
"""Clients of Cohere add their version to the address that they are given."""


class _Document(msgspec.Struct, gc=False):
    text: str


class _Request(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    query: Annotated[str, Meta(max_length=LONGEST_QUERY)]
    documents: list[str | _Document]
    model: str | None = None
    top_n: Annotated[int, Meta(ge=1)] | None = None
    return_documents: bool = False


class _Result(msgspec.Struct, gc=False):
    index: int
    relevance_score: float
    document: _Document | UnsetType = UNSET


class _Model(msgspec.Struct, gc=False):
    model: str
    version: str
    sha256: str


class _Answer(msgspec.Struct, gc=False):
    id: str
    results: list[_Result]
    meta: _Model


_decoder = msgspec.json.Decoder(_Request)


def add_rerank_routes(app: FastAPI, service: Service) -> None:
    """Add the routes; those of several versions are the same."""
    turn = asyncio.Lock()

    def end_turn(scoring: asyncio.Future[Doubles]) -> None:
        turn.release()
        if not scoring.cancelled():
            scoring.exception()  # retrieved: of one that nobody waits for, it would be logged

    async def scores(model: ServedTextModel, query: str, documents: list[str]) -> Doubles:
        """Score one request at a time: each uses all cores, and time is limited."""
        stop = threading.Event()
        try:
            async with asyncio.timeout(service.settings.most_seconds):
                await turn.acquire()
                scoring = asyncio.ensure_future(
                    asyncio.to_thread(model.score, query, documents, stop)
                )
                # Not when the time is up: a thread cannot be stopped, and another one beside it
                # would take its memory, too.
                scoring.add_done_callback(end_turn)
                return await asyncio.shield(scoring)
        except TimeoutError:
            raise Refusal(503, "scoring took too long") from None
        finally:
            stop.set()  # the thread ends after what it is scoring

    async def rerank(request: Request) -> Response:
        """Rank texts for a query: the best ``top_n`` documents by their positions and scores."""
        body = await read_body(request.scope, request.receive, service.settings)
        with decoding():
            asked = _decoder.decode(body)
        most = service.settings.most_documents
        if len(asked.documents) > most:
            raise Refusal(400, f"there are more than {most} documents")
        model = service.repository.get_text(asked.model)
        texts = [each if isinstance(each, str) else each.text for each in asked.documents]
        values = await scores(model, asked.query, texts)
        service.metrics.ranked(model.name, model.version, len(texts))
        results = [
            _Result(
                row, float(values[row]), _Document(texts[row]) if asked.return_documents else UNSET
            )
            for row in np.argsort(-values, kind="stable")[: asked.top_n].tolist()
        ]
        meta = _Model(model.name, str(model.version), model.digest)
        answer = _Answer(str(uuid.uuid4()), results, meta)
        return Response(msgspec.json.encode(answer), media_type="application/json")

    described = answers(
        _Answer, "The documents, best first; equal scores in the order of the request.",
        400, 401, 404, 408, 413, 415, 503,
    )  # fmt: skip
    for path in PATHS:
        app.post(
            path, responses=described, openapi_extra=body_of(schema_of(_Request)),
            operation_id=path.replace("/", "_"),
        )(rerank)  # fmt: skip
