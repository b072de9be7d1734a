"""For operators of the server: whether it lives, whether it is ready, its figures."""

from __future__ import annotations

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from podium.studio.metrics import count_jobs, database_text
from podium.studio.store.migrate import revisions

router = APIRouter(tags=["operations"])

_SCRAPE_SECONDS = 1.5
"""How long a scrape waits for the database."""


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the process answers."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": "Not ready; the status says why."}})
async def readyz(request: Request) -> JSONResponse:
    """Whether the database answers and has the tables of this version, and the worker works."""
    state = request.app.state
    problem = await anyio.to_thread.run_sync(_database_problem, state.probe, limiter=state.probing)
    if problem is None and not all(worker.is_alive() for worker in state.workers):
        problem = "the worker has stopped"
    if problem is not None:
        return JSONResponse({"status": problem}, 503)
    return JSONResponse({"status": "ready"})


def _database_problem(probe: Engine) -> str | None:
    try:
        with probe.connect() as connection:
            connection.execute(text("SELECT 1"))
        present, newest = revisions(probe)
    except (DBAPIError, PoolTimeoutError):
        return "no database"
    return None if present == newest else f"the tables are of {present}, not {newest}"


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Figures for Prometheus; ``podium_database_up`` is whether the database answers."""
    state = request.app.state
    jobs = None
    # Prometheus gives up after some seconds, and what needs no database is wanted most when the
    # database hangs: a thread that still waits for it is abandoned.
    with anyio.move_on_after(_SCRAPE_SECONDS):
        jobs = await anyio.to_thread.run_sync(
            count_jobs, state.probe, limiter=state.scraping, abandon_on_cancel=True
        )
    figures = await anyio.to_thread.run_sync(state.metrics.text, limiter=state.scraping)
    return Response(figures + database_text(jobs), media_type=CONTENT_TYPE_LATEST)
