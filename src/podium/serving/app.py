"""The application: the Open Inference Protocol, and rankings of named features."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import structlog
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

import podium
from podium.errors import PodiumError
from podium.kernels import Doubles, Floats
from podium.serving.descriptions import (
    INFER_REQUEST,
    RANK_ANSWER,
    RANK_REQUEST,
    body_of,
    refusals,
)
from podium.serving.gateway import Gateway, read_body
from podium.serving.metrics import ServingMetrics
from podium.serving.model import ServedModel
from podium.serving.ranking_log import LoggedRanking, RankingLog
from podium.serving.refusal import Refusal, decoding
from podium.serving.releases import Release
from podium.serving.repository import Repository
from podium.serving.settings import ServingSettings
from podium.serving.tensors import infer_answer, parse_infer
from podium.serving.tokens import Tokens
from podium.serving.workers import WorkerFile, ask_to_apply, wait_for_generation

_INLINE_VALUES = 50_000
"""Requests with more values are scored in a thread: they would delay the others too long."""

_RELEASE_SECONDS = 60.0
"""How long a load waits until all processes serve the new release."""

_encode = msgspec.json.encode


class Ranked(msgspec.Struct, gc=False):
    """A document of a ranking."""

    id: str | int
    score: float


class Service:
    """What the routes share."""

    def __init__(self, settings: ServingSettings) -> None:
        self.settings = settings
        # The only process of a service makes the folder itself, when it starts.
        own = Path(tempfile.gettempdir()) / f"podium-serving-{secrets.token_hex(8)}"
        self.folder = folder = own if settings.state_folder is None else Path(settings.state_folder)
        self.metrics = ServingMetrics()
        self.repository = Repository(settings, folder)
        self.log: RankingLog | None = None
        self._worker: WorkerFile | None = None
        self._releasing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._logger = structlog.get_logger("podium.serving")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the models and write the ranking log for as long as the service runs."""
        settings = self.settings
        with ExitStack() as stack:
            if settings.state_folder is None:
                self.folder.mkdir(mode=0o700)
                stack.callback(shutil.rmtree, self.folder)
            # Only then is it registered: a process without handlers would end at a signal.
            self._handle_signals()
            self._worker = WorkerFile(self.folder)
            stack.callback(self._worker.remove)
            await asyncio.to_thread(self._start)
            self._worker.set_generation(self.repository.generation)
            if settings.ranking_log is not None:
                self.log = RankingLog(
                    Path(settings.ranking_log), self.metrics, sample=settings.log_sample,
                    most_bytes=int(settings.log_megabytes * (1 << 20)),
                    most_seconds=settings.log_seconds,
                )  # fmt: skip
                stack.callback(self.log.close)
            self._logger.info("ready", process=os.getpid(), generation=self.repository.generation)
            yield
        self._logger.info("stopped")

    def _start(self) -> None:
        self.repository.apply()
        if not self.repository.generation:  # nobody has made a release: this is the only process
            self.repository.reload()

    def _handle_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._spawn, self._reload_for_signal)
        loop.add_signal_handler(signal.SIGUSR1, self._spawn, self._apply_for_signal)

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)  # the loop itself holds no strong reference
        task.add_done_callback(self._tasks.discard)

    async def _reload_for_signal(self) -> None:
        with suppress(PodiumError, Refusal):  # logged; the models of before are served on
            await self.release(self.repository.reload)

    async def _apply_for_signal(self) -> None:
        async with self._releasing:
            try:
                await asyncio.to_thread(self.repository.apply)
            except (PodiumError, OSError) as error:
                self._logger.error("release not applied", error=str(error))
                return
            if self._worker is not None:
                self._worker.set_generation(self.repository.generation)

    async def release(self, make: Callable[[], Release]) -> Release:
        """Make a release in this process, then wait until all others serve it."""
        async with self._releasing:
            try:
                release = await asyncio.to_thread(make)
            except PodiumError as error:
                self.metrics.loaded("failed")
                self._logger.error("models not loaded", error=str(error))
                raise
            self.metrics.loaded("done")
            if self._worker is not None:
                self._worker.set_generation(release.generation)
        self._logger.info(
            "models loaded", generation=release.generation,
            models=[f"{each.name}@{each.version} {each.digest[:16]}" for each in release.models],
        )  # fmt: skip
        ask_to_apply(self.folder)
        everywhere = await asyncio.to_thread(
            wait_for_generation, self.folder, release.generation, _RELEASE_SECONDS
        )
        if not everywhere:
            raise Refusal(503, "not all processes serve the new models yet")
        return release

    async def score(self, model: ServedModel, rows: Floats) -> Doubles:
        """Score documents: few at once, many in a thread."""
        if rows.size <= _INLINE_VALUES:
            return model.score(rows)
        try:
            async with asyncio.timeout(self.settings.most_seconds):
                return await asyncio.to_thread(model.score, rows)
        except TimeoutError:
            raise Refusal(503, "scoring took too long") from None

    def note(
        self,
        model: ServedModel,
        query: str | int | None,
        ids: list[str | int] | None,
        rows: Floats,
        scores: Doubles,
    ) -> None:
        """Count a ranking and log it."""
        self.metrics.ranked(model.name, model.version, len(scores))
        if self.log is not None:
            shadow = self.repository.shadow(model.name)
            self.log.append(LoggedRanking(time.time(), model, shadow, query, ids, rows, scores))

    def require_admin(self, request: Request) -> None:
        """Raise a Refusal unless the request's token may change models."""
        token = request.scope.get("podium_token")
        if token is None or not token.admin:
            raise Refusal(403, "only a token of an administrator may change models")


def create_app(settings: ServingSettings) -> FastAPI:
    """Make the application.

    Example:
        >>> from podium.serving import parse_model
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
    app.add_middleware(Gateway, settings=settings, metrics=service.metrics, tokens=tokens)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _refused_by_framework)
    _add_rank_routes(app, service)
    _add_protocol_routes(app, service)
    _add_repository_routes(app, service)
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
    read = refusals(400, 401, 404, 408, 413, 415, 503)
    answer: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The documents, best first; equal scores in the order of the request.",
            "content": {"application/json": {"schema": RANK_ANSWER}},
        }
    }

    async def rank(request: Request, name: str | None) -> Response:
        model = service.repository.get(name, request.query_params.get("version"))
        body = await read_body(request.scope, request.receive, service.settings)
        asked = model.decoder(body)
        scores = await service.score(model, asked.rows)
        order = np.argsort(-scores, kind="stable").tolist()
        ids, values = asked.ids, scores.tolist()
        service.note(model, asked.query, ids, asked.rows, scores)
        ranking = [Ranked(ids[row], values[row]) for row in order]
        return _json(
            {
                "model": model.name, "version": str(model.version), "sha256": model.digest,
                "ranking": ranking,
            }
        )  # fmt: skip

    @app.post("/rank", responses={**answer, **read}, openapi_extra=body_of(RANK_REQUEST))
    async def rank_default(request: Request) -> Response:
        """Rank documents by the first model."""
        return await rank(request, None)

    @app.post("/rank/{name}", responses={**answer, **read}, openapi_extra=body_of(RANK_REQUEST))
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
    async def live() -> Response:
        """Whether the process answers."""
        return _json({"live": True})

    @app.get("/v2/health/ready", responses=refusals(503))
    async def ready() -> Response:
        """Whether a model is loaded."""
        return _json({"ready": repository.ready}, 200 if repository.ready else 503)

    @app.get("/v2", responses=refusals(401))
    async def server_metadata() -> Response:
        """The server's name, version and extensions of the protocol."""
        extensions = ["binary_tensor_data", "model_repository"]
        return _json({"name": "podium", "version": podium.__version__, "extensions": extensions})

    def metadata(name: str, version: str | None) -> Response:
        model = repository.get(name, version)
        return _json(model.metadata(repository.versions(name)))

    @app.get("/v2/models/{name}", responses=refusals(401, 404))
    async def model_metadata(name: str) -> Response:
        """A model's inputs, outputs, features and digest."""
        return metadata(name, None)

    @app.get("/v2/models/{name}/versions/{version}", responses=refusals(401, 404))
    async def version_metadata(name: str, version: str) -> Response:
        """A version's inputs, outputs, features and digest."""
        return metadata(name, version)

    def model_is_ready(name: str, version: str | None) -> Response:
        model = repository.get(name, version)
        return _json({"name": model.name, "ready": True})

    @app.get("/v2/models/{name}/ready", responses=refusals(401, 404))
    async def model_ready(name: str) -> Response:
        """Whether a model is loaded."""
        return model_is_ready(name, None)

    @app.get("/v2/models/{name}/versions/{version}/ready", responses=refusals(401, 404))
    async def version_ready(name: str, version: str) -> Response:
        """Whether a version is loaded."""
        return model_is_ready(name, version)

    async def infer(request: Request, name: str, version: str | None) -> Response:
        model = repository.get(name, version)
        body = await read_body(request.scope, request.receive, service.settings)
        length = request.headers.get("inference-header-content-length")
        asked = parse_infer(body, length, len(model.feature_names), service.settings.most_documents)
        scores = await service.score(model, asked.rows)
        service.note(model, asked.query or asked.id, None, asked.rows, scores)
        content, header = infer_answer(model.name, model.version, model.digest, asked, scores)
        if header is None:
            return Response(content, media_type="application/json")
        return Response(
            content, headers={"Inference-Header-Content-Length": str(header)},
            media_type="application/octet-stream",
        )  # fmt: skip

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
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_repository_routes(app: FastAPI, service: Service) -> None:
    repository = service.repository
    changes = refusals(400, 401, 403, 404, 408, 413, 415, 503)

    @app.post("/v2/repository/index", responses=refusals(401))
    async def index() -> Response:
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
