"""The application: the Open Inference Protocol, and rankings of named features."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

import podium
from podium.errors import PodiumError
from podium.serving.descriptions import (
    INFER_REQUEST,
    answers,
    body_of,
    refusals,
    schema_of,
)
from podium.serving.experiment import InterleavedPage
from podium.serving.gateway import Gateway, read_body
from podium.serving.model import ServedModel
from podium.serving.rank_request import RankBody, RankRequest
from podium.serving.ranking_log import SearchNames
from podium.serving.refusal import Refusal, decoding
from podium.serving.releases import Release
from podium.serving.rerank import add_rerank_routes
from podium.serving.rows import order_of
from podium.serving.search_ids import HEADER, search_id_of
from podium.serving.search_routes import add_search_routes
from podium.serving.service import Service
from podium.serving.settings import ServingSettings
from podium.serving.tensors import infer_answer, parse_infer
from podium.serving.tokens import Tokens

_encode = msgspec.json.encode


class Ranked(msgspec.Struct, gc=False):
    """A document of a ranking."""

    id: str | int
    score: float


class RankAnswer(msgspec.Struct, gc=False):
    """The answer of ``/rank``."""

    model: str
    version: str
    sha256: str
    search_id: str
    ranking: list[Ranked]
    experiment: str | UnsetType = UNSET


class DirectRoute(APIRoute):
    """Calls its function with the request and the parameters of the path, and nothing else.

    FastAPI resolves dependencies and validates results for each request. These routes have
    neither, so requests do not pay for that. What they take and answer is still described in the
    OpenAPI document.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        endpoint = self.endpoint

        async def handle(request: Request) -> Response:
            response: Response = await endpoint(request, **request.path_params)
            return response

        return handle


def create_app(settings: ServingSettings) -> FastAPI:
    """Make the application.

    Example:
        >>> from podium.serving.settings import parse_model
        >>> app = create_app(ServingSettings(models=(parse_model("web.podium"),)))
        >>> "/v2/models/{name}/infer" in app.openapi()["paths"]
        True
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="Podium serving",
        version=podium.__version__,
        lifespan=lifespan,
        docs_url=None,  # its pages load scripts from other hosts
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    tokens = None if settings.token_file is None else Tokens.read(settings.token_file)
    app.state.service = service
    app.router.route_class = DirectRoute
    app.add_middleware(Gateway, settings=settings, metrics=service.metrics, tokens=tokens)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _refused_by_framework)
    _add_rank_routes(app, service)
    add_rerank_routes(app, service)
    _add_protocol_routes(app, service)
    _add_repository_routes(app, service)
    if settings.search is not None:
        add_search_routes(app, service, settings.search)
    return app


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _json({"error": error.reason}, error.status)


async def _refused_by_framework(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(
        _encode({"error": error.detail}), error.status_code, error.headers,
        media_type="application/json",
    )  # fmt: skip


def _json(content: Any, status: int = 200) -> Response:
    return Response(_encode(content), status, media_type="application/json")


def _add_rank_routes(app: FastAPI, service: Service) -> None:
    log = structlog.get_logger("podium.serving")
    described: dict[str, Any] = {
        "responses": answers(
            RankAnswer, "The documents, best first; equal scores in the order of the request.",
            400, 401, 404, 408, 413, 415, 503,
        ),
        "openapi_extra": body_of(schema_of(RankBody)),
    }  # fmt: skip

    async def rank(request: Request, name: str | None) -> Response:
        model = service.repository.get(name, request.query_params.get("version"))
        body = await read_body(request.scope, request.receive, service.settings)
        asked = model.decoder(body)
        scores = await service.score(model, asked.rows)
        search_id = search_id_of(request, asked.search_id)
        order, page = order_of(scores), None
        if asked.interleave:
            order, page = await interleaved(model, asked, order, search_id)
        ids, values = asked.ids, scores.tolist()
        names = SearchNames(
            search_id, asked.query_id, asked.query, client=service.client_hash(asked.client),
            page=page,
        )  # fmt: skip
        service.note(model, names, ids, asked.rows, scores)
        content = RankAnswer(
            model.name, str(model.version), model.digest, search_id,
            [Ranked(ids[row], values[row]) for row in order],
            UNSET if page is None else page.experiment,
        )  # fmt: skip
        return Response(
            _encode(content), headers={HEADER: search_id}, media_type="application/json"
        )

    async def interleaved(
        model: ServedModel, asked: RankRequest, order: list[int], search_id: str
    ) -> tuple[list[int], InterleavedPage | None]:
        """Return the draft of both models' orders, or this order if the search takes no part."""
        experiment = service.experiment
        partner = None if experiment is None else experiment.partner(model.name)
        if experiment is None or partner is None:
            raise Refusal(400, f"model {model.name!r} is not interleaved with another one")
        if not experiment.takes_part(search_id, asked.client):
            return order, None
        try:
            other = service.repository.get(partner)
            scores = await experiment.score(
                other, other.select(asked.rows, model.feature_names),
                until=asyncio.get_running_loop().time() + service.settings.most_seconds,
            )  # fmt: skip
            rankings = {
                model.name: (model.digest, order), other.name: (other.digest, order_of(scores)),
            }  # fmt: skip
            draft = experiment.page(search_id, rankings, asked.ids, slice(0, len(order)))
        except Exception as error:  # a model that is tried costs no search
            log.error("interleaving", error=repr(error))
            service.metrics.interleaved("failed")
            return order, None
        service.metrics.interleaved("interleaved")
        return draft

    @app.post("/rank", **described)
    async def rank_default(request: Request) -> Response:
        """Rank documents by the first model."""
        return await rank(request, None)

    @app.post("/rank/{name}", **described)
    async def rank_named(request: Request, name: str) -> Response:
        """Rank documents by a model; ``?version=`` chooses one of its versions."""
        return await rank(request, name)


def _add_protocol_routes(app: FastAPI, service: Service) -> None:
    repository = service.repository
    read = refusals(400, 401, 404, 408, 413, 415, 503)
    read[200] = {
        "description": "The scores, as JSON or as the client asked for them.",
        "content": {"application/json": {}, "application/octet-stream": {}},
    }

    @app.get("/v2/health/live")
    async def live(_request: Request) -> Response:
        """Whether the process answers."""
        return _json({"live": True})

    @app.get("/v2/health/ready", responses=refusals(503))
    async def ready(_request: Request) -> Response:
        """Whether a model is loaded."""
        return _json({"ready": repository.ready}, 200 if repository.ready else 503)

    @app.get("/v2", responses=refusals(401))
    async def server_metadata(_request: Request) -> Response:
        """The server's name, version and extensions of the protocol."""
        extensions = ["binary_tensor_data", "model_repository"]
        return _json({"name": "podium", "version": podium.__version__, "extensions": extensions})

    def metadata(name: str, version: str | None) -> Response:
        model = repository.find(name, version)
        return _json(model.metadata(repository.versions(name)))

    @app.get("/v2/models/{name}", responses=refusals(401, 404))
    async def model_metadata(_request: Request, name: str) -> Response:
        """A model's inputs, outputs, features and digest."""
        return metadata(name, None)

    @app.get("/v2/models/{name}/versions/{version}", responses=refusals(401, 404))
    async def version_metadata(_request: Request, name: str, version: str) -> Response:
        """A version's inputs, outputs, features and digest."""
        return metadata(name, version)

    def model_is_ready(name: str, version: str | None) -> Response:
        model = repository.find(name, version)
        return _json({"name": model.name, "ready": True})

    @app.get("/v2/models/{name}/ready", responses=refusals(401, 404))
    async def model_ready(_request: Request, name: str) -> Response:
        """Whether a model is loaded."""
        return model_is_ready(name, None)

    @app.get("/v2/models/{name}/versions/{version}/ready", responses=refusals(401, 404))
    async def version_ready(_request: Request, name: str, version: str) -> Response:
        """Whether a version is loaded."""
        return model_is_ready(name, version)

    async def infer(request: Request, name: str, version: str | None) -> Response:
        model = repository.get(name, version)
        body = await read_body(request.scope, request.receive, service.settings)
        length = request.headers.get("inference-header-content-length")
        width, most = len(model.feature_names), service.settings.most_documents
        asked = parse_infer(body, length, width, most, single=model.single)
        scores = await service.score(model, asked.rows)
        search_id = search_id_of(request, asked.search_id)
        query_id = asked.id if asked.query_id is None else asked.query_id
        names = SearchNames(search_id, query_id, asked.query)
        service.note(model, names, None, asked.rows, scores)
        content, header = infer_answer(
            model.name, model.version, model.digest, search_id, asked, scores
        )
        headers = {HEADER: search_id}
        if header is None:
            return Response(content, headers=headers, media_type="application/json")
        headers["Inference-Header-Content-Length"] = str(header)
        return Response(content, headers=headers, media_type="application/octet-stream")

    @app.post("/v2/models/{name}/infer", responses=read, openapi_extra=body_of(INFER_REQUEST))
    async def model_infer(request: Request, name: str) -> Response:
        """Score rows by the newest version of a model."""
        return await infer(request, name, None)

    @app.post(
        "/v2/models/{name}/versions/{version}/infer",
        responses=read, openapi_extra=body_of(INFER_REQUEST),
    )  # fmt: skip
    async def version_infer(request: Request, name: str, version: str) -> Response:
        """Score rows by a version of a model."""
        return await infer(request, name, version)

    @app.get("/metrics", response_class=PlainTextResponse, responses=refusals(401))
    async def metrics(_request: Request) -> Response:
        """Figures for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_repository_routes(app: FastAPI, service: Service) -> None:
    repository = service.repository
    changes = refusals(400, 401, 403, 404, 408, 413, 415, 503)

    @app.post("/v2/repository/index", responses=refusals(401))
    async def index(_request: Request) -> Response:
        """Every version of every model, and whether it is loaded."""
        return _json(
            [
                {
                    "name": spec.name, "version": str(spec.version),
                    "state": "READY" if loaded else "UNAVAILABLE", "reason": "",
                }
                for spec, loaded in repository.index()
            ]
        )  # fmt: skip

    async def change(request: Request, make: Callable[[], Release]) -> Response:
        service.require_admin(request)
        body = await read_body(request.scope, request.receive, service.settings)
        if body.strip():
            _refuse_parameters(body)
        try:
            release = await service.release(make)
        except PodiumError as error:
            raise Refusal(400, str(error)) from error
        return _json({"generation": release.generation})

    @app.post("/v2/repository/models/{name}/load", responses=changes)
    async def load(request: Request, name: str) -> Response:
        """Read a model's files anew; answers when all processes serve them."""
        return await change(request, lambda: repository.reload([name]))

    @app.post("/v2/repository/models/{name}/unload", responses=changes)
    async def unload(request: Request, name: str) -> Response:
        """Stop serving a model; answers when all processes have."""
        return await change(request, lambda: repository.unload(name))


def _refuse_parameters(body: bytes) -> None:
    """Raise a Refusal if a load has parameters: files and settings come from the command line."""
    with decoding():
        content = msgspec.json.decode(body, type=dict[str, Any])
    parameters = content.get("parameters") or {}
    if not isinstance(parameters, dict) or set(parameters) - {"unload_dependents"}:
        raise Refusal(400, "models are loaded from the files of the command line only")


def application() -> FastAPI:
    """Make the application of a process that ``podium serve`` started."""
    from podium.serving.server import settings_from_environment

    return create_app(settings_from_environment())
