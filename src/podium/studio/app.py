"""The application: its parts put together."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio.to_thread
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel
from sqlalchemy.exc import DataError as UnstorableError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

import podium
from podium.errors import PodiumError
from podium.logs import set_up_logs
from podium.studio.accounts.openid import OpenIDProvider
from podium.studio.accounts.service import forget_expired
from podium.studio.errors import RefusedError, describe_error
from podium.studio.job_child import KINDS
from podium.studio.jobs.outbox import Outbox, forget_deliveries
from podium.studio.jobs.process import JobExecutor, JobProcess
from podium.studio.jobs.worker import Worker
from podium.studio.json_types import JsonObject
from podium.studio.judging.bulk_discards import DISCARD, RESTORE
from podium.studio.judging.service import JudgingService
from podium.studio.judging.unit_of_work import delete_old_leases
from podium.studio.messages import Message
from podium.studio.metrics import Metrics, forget_process
from podium.studio.models.assessors import RUN
from podium.studio.settings import Settings
from podium.studio.store.database import connect
from podium.studio.transfer.exports import KIND as EXPORT
from podium.studio.transfer.images import ImageStore
from podium.studio.transfer.imports import KIND as IMPORT
from podium.studio.web.assets import Assets
from podium.studio.web.languages import language_of
from podium.studio.web.middleware import RequestMiddleware
from podium.studio.web.pages import render
from podium.studio.web.routes import (
    accounts,
    crowd,
    dashboard,
    documents,
    health,
    history,
    judging,
    members,
    models,
    openid,
    projects,
    quality,
    results,
    screen,
    server,
    signing_in,
    transfers,
    webhooks,
)


class Problem(BaseModel):
    """Why a request was refused, in words."""

    detail: str


def _problem(description: str) -> JsonObject:
    # As content and not as a model: routes that do not answer in JSON refuse in JSON too.
    schema = Problem.model_json_schema()
    return {"description": description, "content": {"application/json": {"schema": schema}}}


PROBLEMS: dict[int | str, JsonObject] = {
    400: _problem("The request is malformed."),
    401: _problem("You are not signed in, or the API token has expired."),
    403: _problem("Your role does not allow this."),
    404: _problem("Not found, or you do not have access to it."),
    409: _problem("The request conflicts with the current state."),
    413: _problem("The request is too large."),
    422: _problem("A value is missing or wrong."),
    429: _problem("Too many requests: try again later."),
    503: _problem("The database cannot be reached: try again."),
}
"""The refusals of every route, for the API's description."""


_ROUTES = (
    judging,
    documents,
    projects,
    transfers,
    members,
    dashboard,
    results,
    history,
    quality,
    models,
    webhooks,
    crowd,
    accounts,
    signing_in,
    screen,
    server,
)
_PROBE_SECONDS = 2.0


def create_app(settings: Settings, execute: JobExecutor | None = None) -> FastAPI:
    """The web application for some settings; the database must be migrated.

    Args:
        settings: The server's settings.
        execute: What does a job: by default child processes of low priority.

    Example:
        >>> create_app(Settings(database="sqlite://")).title
        'Podium Studio'
    """
    engine = connect(settings, seconds=settings.statement_seconds)
    # Readiness and metrics have connections and threads of their own: they must answer when all
    # others wait.
    probe = connect(settings, seconds=_PROBE_SECONDS, pooled=False)
    metrics = Metrics(engine)
    # Models judge for hours and imports take minutes, which no export and no report waits for.
    groups = [KINDS.keys() - {IMPORT, RUN}, {IMPORT}, {RUN}]
    processes = [JobProcess(settings) for _ in groups]
    workers = [
        Worker(
            settings,
            {kind: KINDS[kind] for kind in kinds},
            metrics,
            execute=execute or process.execute,
            kept=(DISCARD, RESTORE),  # their rows say what can be restored
            cleanups=(forget_expired, delete_old_leases, forget_deliveries),
            cleans_up=EXPORT in kinds,
        )
        for kinds, process in zip(groups, processes, strict=True)
    ]
    outbox = Outbox(settings)

    @asynccontextmanager
    async def running(_app: FastAPI) -> AsyncIterator[None]:
        # As many requests at once as there are connections; more would only wait for one.
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.pool_size
        for worker in workers:
            worker.start()
        outbox.start()
        yield
        for worker in workers:
            worker.stop()
        outbox.stop()
        for process in processes:
            process.close()
        engine.dispose()
        probe.dispose()
        forget_process()

    app = FastAPI(
        title="Podium Studio",
        version=podium.__version__,
        lifespan=running,
        # The documentation pages that come with FastAPI load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,  # such a redirect leads to whatever a request's Host says
    )
    app.state.settings = settings
    app.state.engine = engine
    app.state.probe = probe
    app.state.probing = anyio.CapacityLimiter(2)
    app.state.scraping = anyio.CapacityLimiter(2)
    app.state.calling_provider = anyio.CapacityLimiter(4)
    app.state.fetching_images = anyio.CapacityLimiter(4)
    app.state.images = ImageStore(settings)
    app.state.service = JudgingService(engine)
    app.state.metrics = metrics
    app.state.workers = workers
    # Links that sign someone in once: by the digest of their secret, who.
    app.state.one_time = {}
    app.state.provider = OpenIDProvider(settings) if settings.oidc_issuer else None
    for module in _ROUTES:
        app.include_router(module.routes.api, responses=PROBLEMS)
        app.include_router(module.routes.pages)
    for module in (health, openid):
        app.include_router(module.router)
    app.mount("/static", Assets(), name="static")
    _answer_errors(app)
    app.add_middleware(
        RequestMiddleware,
        metrics=app.state.metrics,
        largest=settings.largest_request,
        secure=settings.is_secure,
    )
    return app


def _answer_errors(app: FastAPI) -> None:
    """One way to word what went wrong, for programs as for people."""

    @app.exception_handler(RefusedError)
    async def _refused(request: Request, error: RefusedError) -> Response:
        return _worded(request, error.status, error.problem)

    @app.exception_handler(PodiumError)
    async def _wrong_data(request: Request, error: PodiumError) -> Response:
        return _worded(request, 422, str(error))

    @app.exception_handler(HTTPException)
    async def _no_route(request: Request, error: HTTPException) -> Response:
        return _worded(request, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def _malformed(request: Request, error: RequestValidationError) -> Response:
        first: JsonObject = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return _worded(request, 422, f"{where}: {first['msg']}" if where else str(first["msg"]))

    @app.exception_handler(UnstorableError)
    @app.exception_handler(UnicodeEncodeError)
    async def _not_storable(request: Request, error: Exception) -> Response:
        # Such a value comes with the request: asking again would come to the same.
        structlog.get_logger("podium.studio").warning("unstorable value", **describe_error(error))
        problem = Message("A value cannot be stored: it contains invalid characters.")
        return _worded(request, 422, problem)

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeoutError)
    async def _no_database(request: Request, error: Exception) -> Response:
        structlog.get_logger("podium.studio").error("database", **describe_error(error))
        request.app.state.metrics.database_failed(type(error).__name__)
        problem = Message("The database cannot be reached. The page retries automatically.")
        return _worded(request, 503, problem, {"Retry-After": "1"})


def _worded(
    request: Request, status: int, problem: str, headers: Mapping[str, str] | None = None
) -> Response:
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        detail = language_of(request).translate(problem)
        return JSONResponse({"detail": detail}, status, headers=headers)
    if status == 401:
        return RedirectResponse(f"/sign-in?{signing_in.back_to(request)}", 303)
    return render(request, "error.html", {"problem": problem, "status": status}, status=status)


def application() -> FastAPI:
    """The application for the settings of the environment, which server processes start with."""
    set_up_logs()
    # An answer asks the database ten times, and has to get the interpreter back after each: from a
    # request that computes it would, by default, after 5 ms.
    sys.setswitchinterval(0.0005)
    app = create_app(Settings())
    # What is here now stays: looking through it for garbage again and again would slow answers.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    return app
