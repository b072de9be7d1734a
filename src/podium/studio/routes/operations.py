"""For whoever runs the server: whether it lives, whether it is ready, its figures."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from podium.studio.database import reading
from podium.studio.migrate import revisions

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the process answers."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": "Not ready; the status tells why."}})
def readyz(request: Request) -> JSONResponse:
    """Whether the database answers and has the tables of this version."""
    engine = request.app.state.engine
    try:
        reading(engine, lambda connection: connection.execute(text("SELECT 1")))
        present, newest = revisions(engine)
    except DBAPIError:
        return JSONResponse({"status": "no database"}, 503)
    if present != newest:
        return JSONResponse({"status": f"the tables are of {present}, not {newest}"}, 503)
    return JSONResponse({"status": "ready"})


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
