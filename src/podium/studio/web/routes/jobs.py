"""API routes for imports and exports: start one, see its progress, download its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from podium.studio.accounts.audit import record
from podium.studio.accounts.identity import Member, check_not_archived
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import State, cancel, enqueue, files_folder
from podium.studio.json_types import JsonObject
from podium.studio.judging.bulk_discards import DISCARD, RESTORE
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow, fetch_all, fetch_one
from podium.studio.store.tables import Job
from podium.studio.transfer.exports import KIND as EXPORT
from podium.studio.transfer.exports import ExportOptions, download_name
from podium.studio.transfer.imports import KIND as IMPORT
from podium.studio.transfer.imports import (
    Source,
    delete_uploads,
    store_preview,
    store_upload,
    taken_preview,
)
from podium.studio.transfer.readers import MAX_DEPTH, Upload
from podium.studio.transfer.search_engines import EngineSearch, check_search
from podium.studio.transfer.tables import TableColumns, preview_table
from podium.studio.web.access import AManager, UploadRoute, wake_workers
from podium.studio.web.routes.judging import Number

_PLACE: JsonObject = {"prefix": "/api/v1/projects/{project}", "tags": ["imports and exports"]}
router = APIRouter(**_PLACE)
uploads = APIRouter(**_PLACE, route_class=UploadRoute)

_NEEDED: dict[str, tuple[str, ...]] = {
    "candidates": ("candidates",),
    "table": ("table",),
    "runs": ("runs", "documents"),
    "gold": ("gold",),
}
_SHOWN = 50


class JobOut(BaseModel):
    """An import or export and its progress."""

    id: int
    kind: str
    state: State
    progress: float
    result: JsonObject
    error: str | None
    has_file: bool
    created_at: float


class PreviewOut(BaseModel):
    """The beginning of a table, and a guess at what its columns are."""

    upload: str
    """Names the stored file for some days."""
    name: str
    columns: list[str]
    rows: list[list[str]]
    guess: TableColumns


class TableImport(BaseModel):
    """A table that was uploaded for a preview, and what its columns are."""

    model_config = ConfigDict(extra="forbid")

    upload: str = Field(max_length=100)
    name: str = Field(default="table", max_length=200)
    columns: TableColumns
    skip_empty: bool = False


@uploads.post("/imports", status_code=202, operation_id="import_files")
def import_files(
    request: Request,
    who: AManager,
    source: Annotated[Source, Form(description="What the files hold; not engine.")],
    candidates: Annotated[UploadFile | None, File(description="JSONL, one query per line.")] = None,
    runs: Annotated[list[UploadFile] | None, File(description="TREC runs.")] = None,
    documents: Annotated[UploadFile | None, File(description="JSONL, or id, tab, text.")] = None,
    queries: Annotated[UploadFile | None, File(description="JSONL, or id, tab, words.")] = None,
    gold: Annotated[UploadFile | None, File(description="JSONL, one pair per line.")] = None,
    depth: Annotated[int, Form(ge=1, le=MAX_DEPTH, description="Of each run.")] = 50,
    table: Annotated[UploadFile | None, File(description="CSV, TSV or JSON.")] = None,
    skip_empty: Annotated[bool, Form(description="Leave out documents without text.")] = False,
) -> JobOut:
    """Import queries and candidates (JSONL, a table, TREC runs with documents), or gold pairs.

    The columns of a table are guessed by their names; a preview lets you choose them.
    """
    files = {
        "candidates": _sent(candidates),
        "runs": [upload for each in runs or [] for upload in _sent(each)],
        "documents": _sent(documents),
        "queries": _sent(queries),
        "gold": _sent(gold),
        "table": _sent(table),
    }
    return start_import(request, who, source, files, depth, skip_empty)


@uploads.post("/imports/preview", operation_id="preview_table")
def preview(
    request: Request,
    who: AManager,
    table: Annotated[UploadFile, File(description="CSV, TSV or JSON.")],
) -> PreviewOut:
    """Store a table and show its beginning; `import_table` imports it."""
    _check_takes_tables(who)
    settings = request.app.state.settings
    token, upload = store_preview(settings, who.project.id, table.file, table.filename or "table")
    try:
        shown = preview_table(upload)
    except BaseException:
        upload.path.unlink(missing_ok=True)
        raise
    return PreviewOut(
        upload=token, name=upload.name, columns=shown.columns, rows=shown.rows, guess=shown.guess
    )


@router.post("/imports/table", status_code=202, operation_id="import_table")
def import_table(request: Request, who: AManager, body: TableImport) -> JobOut:
    """Import a table that `preview_table` stored."""
    _check_takes_tables(who)
    with taken_preview(request.app.state.settings, who.project.id, body.upload) as path:
        body.columns.check(preview_table(Upload(path, body.name)).columns)
        parameters = {
            "source": "table",
            "files": {"table": [[path.name, body.name]]},
            "columns": body.columns.model_dump(),
            "skip_empty": body.skip_empty,
        }
        return _queue(request, who, IMPORT, parameters)


@uploads.post("/imports/engine", status_code=202, operation_id="import_from_engine")
def import_from_engine(request: Request, who: AManager, search: EngineSearch) -> JobOut:
    """Import queries with candidates that a search engine finds for them."""
    if who.project.mode == Mode.RANKINGS:
        raise RefusedError(409, "This project compares rankings: import two runs or more.")
    check_search(search, request.app.state.settings.engines)
    return _queue(request, who, IMPORT, {"source": "engine", "search": search.model_dump()})


@router.post("/exports", status_code=202, operation_id="export")
def export(request: Request, who: AManager, options: ExportOptions) -> JobOut:
    """Export the project's results to a file, to be downloaded when the job is done."""
    options.check(Mode(who.project.mode))
    return _queue(request, who, EXPORT, options.model_dump())


@router.get("/jobs", operation_id="list_jobs")
def list_jobs(request: Request, who: AManager) -> list[JobOut]:
    """The latest imports and exports, newest first."""
    return jobs_of(request, who, [IMPORT, EXPORT])


@router.get("/jobs/{job}", operation_id="get_job")
def get_job(request: Request, who: AManager, job: Number) -> JobOut:
    """How far an import or export is, or a job that discards or restores judgments."""
    return job_out(_job(request, who, job, (IMPORT, EXPORT, DISCARD, RESTORE)))


@router.get(
    "/jobs/{job}/file",
    operation_id="get_job_file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
def get_file(request: Request, who: AManager, job: Number) -> FileResponse:
    """The file that an export wrote."""
    row = _job(request, who, job)
    path = files_folder(request.app.state.settings) / (row.file or "-")
    if row.file is None or not path.is_file():
        raise RefusedError(
            404, "There is no file: the export is not done, or its file has expired."
        )
    in_transaction(
        request.app.state.engine,
        lambda c: record(c, who.person.id, who.project.id, "downloaded an export", job=row.id),
    )
    return FileResponse(
        path, media_type="application/octet-stream", filename=download_name(who.project, row)
    )


@router.post("/jobs/{job}/cancel", operation_id="cancel_job")
def cancel_job(request: Request, who: AManager, job: Number) -> JobOut:
    """End an import or export that waits or runs."""
    row = _job(request, who, job)

    def work(connection: Connection) -> None:
        cancel(connection, row)
        record(connection, who.person.id, who.project.id, f"cancelled an {row.kind}", job=row.id)

    in_transaction(request.app.state.engine, work)
    if row.kind == IMPORT and row.state == State.WAITING:
        delete_uploads(request.app.state.settings, row)
    return job_out(_job(request, who, job))


def start_import(
    request: Request,
    who: Member,
    source: Source,
    files: dict[str, list[UploadFile]],
    depth: int,
    skip_empty: bool = False,
) -> JobOut:
    """Store uploads, and queue a job that imports them."""
    for role in _NEEDED.get(source, (source,)):
        if not files.get(role):
            raise RefusedError(422, "%(field)s: Choose a file.", field=role)
    if who.project.mode == Mode.RANKINGS and source != "gold" and len(files["runs"]) < 2:
        raise RefusedError(422, "This project compares rankings: give two runs or more.")
    settings = request.app.state.settings
    stored = {
        role: [store_upload(settings, upload.file, upload.filename or role) for upload in uploads]
        for role, uploads in files.items()
        if uploads
    }
    parameters = {"source": source, "files": stored, "depth": depth, "skip_empty": skip_empty}
    return _queue(request, who, IMPORT, parameters)


def jobs_of(request: Request, who: Member, kinds: list[str]) -> list[JobOut]:
    """The latest jobs of some kinds."""
    return [job_out(row) for row in job_rows(request, who, kinds)]


def job_rows(request: Request, who: Member, kinds: list[str]) -> list[JobRow]:
    """The rows of the latest jobs of some kinds, newest first."""
    return reading(
        request.app.state.engine,
        lambda c: fetch_all(
            c,
            select(Job.__table__)
            .where(Job.project_id == who.project.id, Job.kind.in_(kinds))
            .order_by(Job.id.desc())
            .limit(_SHOWN),
            JobRow,
        ),
    )


def _check_takes_tables(who: Member) -> None:
    if who.project.mode == Mode.RANKINGS:
        raise RefusedError(409, "This project compares rankings: import two runs or more.")


def _sent(upload: UploadFile | None) -> list[UploadFile]:
    """A browser sends a file field that was left empty as a file without a name."""
    return [upload] if upload is not None and (upload.filename or upload.size) else []


def _queue(request: Request, who: Member, kind: str, parameters: JsonObject) -> JobOut:
    if kind == IMPORT:
        check_not_archived(who.project)

    def work(connection: Connection) -> JobRow:
        number = enqueue(connection, who.project.id, who.person.id, kind, parameters)
        record(connection, who.person.id, who.project.id, f"requested an {kind}", job=number)
        return JobRow(*connection.execute(select(Job.__table__).where(Job.id == number)).one())

    row = in_transaction(request.app.state.engine, work)
    wake_workers(request)
    return job_out(row)


def _job(
    request: Request, who: Member, job: int, kinds: Sequence[str] = (IMPORT, EXPORT)
) -> JobRow:
    row = reading(
        request.app.state.engine,
        lambda c: fetch_one(
            c,
            select(Job.__table__).where(
                Job.id == job, Job.project_id == who.project.id, Job.kind.in_(kinds)
            ),
            JobRow,
        ),
    )
    if row is None:
        raise RefusedError(404, "The job does not exist.")
    return row


def job_out(row: JobRow) -> JobOut:
    """A job as the API shows it."""
    return JobOut(
        id=row.id,
        kind=row.kind,
        state=State(row.state),
        progress=row.progress,
        result=row.result,
        error=row.error,
        has_file=row.file is not None,
        created_at=row.created_at,
    )
