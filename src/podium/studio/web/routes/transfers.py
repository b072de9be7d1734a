"""Imports and exports: start one, see its progress, download its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import File, Request, UploadFile
from fastapi import Form as FormField
from fastapi import Query as Parameter
from fastapi.responses import FileResponse, HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select
from starlette.datastructures import FormData

from podium.data import CandidateList
from podium.errors import DataError
from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import State, cancel, enqueue, files_folder
from podium.studio.json_types import JsonObject
from podium.studio.judging.bulk_discards import DISCARD, RESTORE
from podium.studio.messages import Message
from podium.studio.models.assessors import models_of
from podium.studio.projects.changes import has_answers
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow, fetch_all, fetch_one
from podium.studio.store.sanitizing import sanitized
from podium.studio.store.tables import Job, User
from podium.studio.transfer.exports import KIND as EXPORT
from podium.studio.transfer.exports import (
    ExportOptions,
    download_name,
    newest_labels,
    training_lines,
)
from podium.studio.transfer.imports import KIND as IMPORT
from podium.studio.transfer.imports import (
    Source,
    delete_uploads,
    store_preview,
    store_upload,
    stored_preview,
    taken_preview,
)
from podium.studio.transfer.readers import MAX_DEPTH, Upload, has_text
from podium.studio.transfer.recognition import recognized
from podium.studio.transfer.search_engines import DEFAULTS, EngineSearch, check_search
from podium.studio.transfer.tables import TableColumns, preview_table
from podium.studio.transfer.writers import DESCRIPTIONS, EXPORT_CONTENTS, EXPORT_FORMATS
from podium.studio.web.access import Number, RequiresManager, wake_workers
from podium.studio.web.actions import Routes, outcome_of, read, write
from podium.studio.web.documents import document_page, terms_in
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render_project
from podium.studio.web.routes.documents import previewed_document
from podium.studio.web.routes.judging import PreviewedTask, task_preview

routes = Routes("imports and exports", api="/projects/{project}", pages="/projects/{project}")

_FIELDS = (
    ("query", Message("Query text"), Message("What was searched for.")),
    (
        "query_id",
        Message("Query ID"),
        Message("Without it, the query text is the ID. TREC files need IDs without spaces."),
    ),
    ("description", Message("Query description"), Message("What the searcher wants to find.")),
    ("document_id", Message("Document ID"), Message("Without it, the URL is the ID.")),
    ("title", Message("Title"), Message("Shown above the document.")),
    ("text", Message("Text"), Message("What assessors read.")),
    ("html", Message("HTML"), Message("Shown instead of the text; scripts are removed.")),
    ("url", Message("URL"), Message("Where the document comes from.")),
    (
        "score",
        Message("Score"),
        Message("Of a prior ranking; larger is better. It saves judgments."),
    ),
    ("rank", Message("Rank"), Message("In a prior ranking, from 1; used where there is no score.")),
)
"""What columns can be: the field, its label, and a hint."""
_NEEDED: dict[str, tuple[str, ...]] = {
    "candidates": ("candidates",),
    "table": ("table",),
    "runs": ("runs", "documents"),
    "gold": ("gold",),
}
_SOURCES = {"engine": Message("Search engine"), "project": Message("Copy of a project")}
"""Imports that read no file."""
_SHOWN = 50
_DEPTH, _RANKING_DEPTH = 50, 10
"""How many documents of a run are taken, unless a form says otherwise."""


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
    by: str
    """The name of who started it."""
    options: JsonObject
    """An import's source and the names of its files; an export's content, format, …"""

    @classmethod
    def of(cls, row: JobRow, by: str) -> JobOut:
        """A job as the API shows it."""
        computed = ("has_file", "by", "options")
        columns = {name: getattr(row, name) for name in cls.model_fields if name not in computed}
        return cls(**columns, has_file=row.file is not None, by=by, options=_options(row))


def _options(row: JobRow) -> JsonObject:
    """The parameters of a job without names of stored files, tokens and requests to engines."""
    if row.kind == IMPORT:
        uploads = row.parameters.get("files", {}).values()
        names = [name for files in uploads for _stored, name in files]
        return {"source": row.parameters["source"], "files": names}
    # An export of an earlier version may lack options that came later.
    return ExportOptions(**row.parameters).model_dump() if row.kind == EXPORT else {}


class PreviewOut(BaseModel):
    """The beginning of a table that was stored, and what its columns are taken for."""

    upload: str
    """Identifies the stored file for some days."""
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


@routes.page("/import")
def import_page(request: Request, who: RequiresManager) -> Response:
    """Forms for every kind of import, and those that are under way."""
    values = {
        **_jobs(request, who, IMPORT),
        "starting": _is_starting(request, who),
        "engines": bool(request.app.state.settings.engines),
        "rankings": who.project.mode == Mode.RANKINGS,
        "pairs": who.project.mode == Mode.PAIRS,
        "defaults": DEFAULTS,
        "deepest": MAX_DEPTH,
    }
    return render_project(request, who, "import.html", values)


@routes.page("/import/preview")
def table_page(
    request: Request,
    who: RequiresManager,
    upload: Annotated[str, Parameter(max_length=100)] = "",
    name: Annotated[str, Parameter(max_length=200)] = "table",
    skip_empty: bool = False,
) -> Response:
    """The beginning of a table that was stored, and what its columns are to be."""
    typed = outcome_of(request).typed
    upload, name = typed.get("upload", upload), typed.get("name", name)
    stored = stored_preview(request.app.state.settings, who.project.id, upload, name)
    shown = _table_preview(stored, upload).model_dump() | {
        "starting": _is_starting(request, who),
        "skip_empty": "skip_empty" in typed if typed else skip_empty,
    }
    if typed:
        shown["guess"] |= {field: typed.get(field, "") for field in TableColumns.model_fields}
    return render_project(request, who, "import_preview.html", shown | {"fields": _FIELDS})


@routes.page("/export")
def export_page(request: Request, who: RequiresManager) -> Response:
    """Choices for an export, and those there are."""
    models = read(request, lambda c: models_of(c, who.project.id))
    values = {
        "models": models,
        **_jobs(request, who, EXPORT),
        "choices": [
            (content, form, DESCRIPTIONS[content, form])
            for content in EXPORT_CONTENTS[Mode(who.project.mode)]
            if models or content != "answers"
            for form in EXPORT_FORMATS[content]
        ],
    }
    return render_project(request, who, "export.html", values)


@routes.page("/jobs/{kind}")
def jobs_fragment(request: Request, who: RequiresManager, kind: str) -> Response:
    """The list of jobs, which the pages fetch again and again while something is under way."""
    known = kind if kind in (IMPORT, EXPORT) else IMPORT
    return render_project(request, who, "jobs.html", _jobs(request, who, known))


_TO_IMPORT = "/projects/{project}/import"


@routes.action(
    "POST",
    "/imports",
    form="/import",
    page=import_page,
    to=_TO_IMPORT,
    uploads=True,
    status_code=202,
)
def import_files(
    request: Request,
    who: RequiresManager,
    source: Annotated[Source, FormField(description="What the files hold; not engine.")],
    candidates: Annotated[UploadFile | None, File(description="JSONL, one query per line.")] = None,
    runs: Annotated[list[UploadFile] | None, File(description="TREC runs.")] = None,
    documents: Annotated[UploadFile | None, File(description="JSONL, or id, tab, text.")] = None,
    queries: Annotated[UploadFile | None, File(description="JSONL, or id, tab, words.")] = None,
    gold: Annotated[UploadFile | None, File(description="JSONL, one pair per line.")] = None,
    depth: Annotated[int, FormField(ge=1, le=MAX_DEPTH, description="Depth of each run.")] = 50,
    table: Annotated[UploadFile | None, File(description="CSV, TSV or JSON.")] = None,
    skip_empty: Annotated[bool, FormField(description="Leave out documents without text.")] = False,
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
    for role in _NEEDED.get(source, (source,)):
        if not files.get(role):
            raise RefusedError(422, "%(field)s: Choose a file.", field=role)
    if who.project.mode == Mode.RANKINGS and source != "gold" and len(files["runs"]) < 2:
        raise RefusedError(422, "This project compares rankings: give two runs or more.")
    settings = request.app.state.settings
    stored: dict[str, list[list[str]]] = {}
    parameters = {"source": source, "files": stored, "depth": depth, "skip_empty": skip_empty}
    try:
        for role, uploads in files.items():
            for upload in uploads:
                kept = store_upload(settings, upload.file, upload.filename or role)
                stored.setdefault(role, []).append(kept)
        return _request_job(request, who, IMPORT, parameters)
    except (OSError, RefusedError):
        delete_uploads(settings, stored)
        raise


def _after_files(result: JobOut | PreviewOut, *, skip_empty: bool = False, **_: object) -> str:
    """The page of the table, or of the import that was begun."""
    if isinstance(result, JobOut):
        return _TO_IMPORT
    parameters = {"upload": result.upload, "name": result.name}
    if skip_empty:
        parameters["skip_empty"] = "true"
    return f"{_TO_IMPORT}/preview?{urlencode(parameters)}"


@routes.action(
    "POST",
    "/imports/files",
    form="/import/files",
    page=import_page,
    to=_after_files,
    uploads=True,
    status_code=202,
)
def import_any(
    request: Request,
    who: RequiresManager,
    files: Annotated[list[UploadFile], File(description="Any files that can be imported.")],
    skip_empty: Annotated[bool, FormField(description="Leave out documents without text.")] = False,
) -> JobOut | PreviewOut:
    """Import files by what they hold; a table is stored, to be imported by `import_table`."""
    sent = [upload for each in files for upload in _sent(each)]
    source, roles = recognized(
        [(upload.file, upload.filename or "file") for upload in sent], Mode(who.project.mode)
    )
    chosen = {role: [sent[position] for position in positions] for role, positions in roles.items()}
    if source == "table":
        return preview_import(request, who, chosen["table"][0])
    parts = {role: each if role == "runs" else each[0] for role, each in chosen.items()}
    depth = _RANKING_DEPTH if who.project.mode == Mode.RANKINGS else _DEPTH
    return import_files(request, who, source, depth=depth, skip_empty=skip_empty, **parts)  # type: ignore[arg-type]


@routes.action("POST", "/imports/preview", uploads=True)
def preview_import(
    request: Request,
    who: RequiresManager,
    table: Annotated[UploadFile, File(description="CSV, TSV or JSON.")],
) -> PreviewOut:
    """Store a table and show its beginning; `import_table` imports it."""
    _check_takes_tables(who)
    settings = request.app.state.settings
    token, upload = store_preview(settings, who.project.id, table.file, table.filename or "table")
    try:
        return _table_preview(upload, token)
    except BaseException:
        upload.path.unlink(missing_ok=True)
        raise


def _table_preview(upload: Upload, token: str) -> PreviewOut:
    shown = preview_table(upload)
    return PreviewOut(
        upload=token, name=upload.name, columns=shown.columns, rows=shown.rows, guess=shown.guess
    )


def _table_values(form: FormData) -> JsonObject:
    return {
        "upload": form.get("upload", ""),
        "name": form.get("name", "table"),
        "columns": {name: form.get(name, "") for name in TableColumns.model_fields},
        "skip_empty": "skip_empty" in form,
    }


def _example(request: Request, who: Member, upload: str, name: str) -> CandidateList | None:
    """A query of a table that was stored, with the columns that the request has."""
    _check_takes_tables(who)
    named = {field: request.query_params.get(field, "") for field in TableColumns.model_fields}
    columns = TableColumns.model_validate(named) if any(named.values()) else None
    stored = stored_preview(request.app.state.settings, who.project.id, upload, name)
    return preview_table(stored, columns).example


@routes.action("GET", "/imports/preview/task")
def preview_table_task(
    request: Request, who: RequiresManager, upload: str, name: str = "table"
) -> PreviewedTask:
    """A task as people would see it, of a table that `preview_import` stored.

    Parameters with the names of fields, such as ``title``, say which column is what.
    """
    example = _example(request, who, upload, name)
    if example is None:
        problem = Message("Choose the columns of the query and of the ID of the document.")
        return PreviewedTask(state="blocked", problems=[language_of(request).translate(problem)])
    sides = 1 if who.project.mode == Mode.GRADES else 2
    if not any(map(has_text, example.candidates[:sides])):
        problem = Message("These documents have no text: choose the column that has it.")
        return PreviewedTask(state="blocked", problems=[language_of(request).translate(problem)])
    try:
        documents = [
            previewed_document(who, example.query, position, each)
            for position, each in enumerate(example.candidates[:sides])
        ]
    except DataError as error:
        return PreviewedTask(state="blocked", problems=[error.problem])
    return task_preview(who, example.query, example.description, documents)


@routes.action("GET", "/imports/preview/document", response_class=HTMLResponse)
def preview_table_document(
    request: Request,
    who: RequiresManager,
    upload: str,
    position: Annotated[int, Parameter(ge=0, lt=2)],
    name: str = "table",
) -> HTMLResponse:
    """The HTML of one of the documents of that task, sanitised; without its pictures."""
    example = _example(request, who, upload, name)
    if example is None or position >= len(example.candidates):
        raise RefusedError(404, "The document does not exist.")
    shown, markup = example.candidates[position], sanitized(example.candidates[position].html)
    return document_page(
        shown.title, markup, terms_in(example.query, markup), {}, language_of(request)
    )


@routes.action(
    "POST",
    "/imports/table",
    form="/import/table",
    page=table_page,
    to=_TO_IMPORT,
    values=_table_values,
    status_code=202,
)
def import_table(request: Request, who: RequiresManager, body: TableImport) -> JobOut:
    """Import a table that `preview_import` stored."""
    _check_takes_tables(who)
    with taken_preview(request.app.state.settings, who.project.id, body.upload) as path:
        body.columns.check(preview_table(Upload(path, body.name)).columns)
        parameters = {
            "source": "table",
            "files": {"table": [[path.name, body.name]]},
            "columns": body.columns.model_dump(),
            "skip_empty": body.skip_empty,
        }
        return _request_job(request, who, IMPORT, parameters)


@routes.action(
    "POST",
    "/imports/engine",
    form="/import/engine",
    page=import_page,
    to=_TO_IMPORT,
    uploads=True,
    status_code=202,
)
def import_from_engine(request: Request, who: RequiresManager, search: EngineSearch) -> JobOut:
    """Import queries with candidates that a search engine finds for them."""
    if who.project.mode == Mode.RANKINGS:
        raise RefusedError(409, "This project compares rankings: import two runs or more.")
    check_search(search, request.app.state.settings.engines)
    parameters = {"source": "engine", "search": search.model_dump()}
    return _request_job(request, who, IMPORT, parameters)


def _export_values(form: FormData) -> JsonObject:
    content, _, export_format = str(form.get("what", "")).partition("/")
    boxes = {name: name in form for name in ("ties", "only_done", "underscores")}
    model = form.get("model") or None
    return {"content": content, "format": export_format, "model": model, **boxes}


@routes.action(
    "POST",
    "/exports",
    form="/export",
    page=export_page,
    to="/projects/{project}/export",
    values=_export_values,
    status_code=202,
)
def export(request: Request, who: RequiresManager, options: ExportOptions) -> JobOut:
    """Export the project's results to a file, to be downloaded when the job is done."""
    options.check(Mode(who.project.mode))
    return _request_job(request, who, EXPORT, options.model_dump())


@routes.action("GET", "/jobs")
def list_jobs(request: Request, who: RequiresManager) -> list[JobOut]:
    """The latest imports and exports, newest first."""
    return _shown(request, _job_rows(request, who, [IMPORT, EXPORT]))


@routes.action("GET", "/jobs/{job}")
def get_job(request: Request, who: RequiresManager, job: Number) -> JobOut:
    """How far an import or export is, or a job that discards or restores judgments."""
    return _shown(request, [_job(request, who, job, (IMPORT, EXPORT, DISCARD, RESTORE))])[0]


@routes.action(
    "GET",
    "/jobs/{job}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
def get_job_file(request: Request, who: RequiresManager, job: Number) -> FileResponse:
    """The file that an export wrote."""
    row = _job(request, who, job)
    path = files_folder(request.app.state.settings) / (row.file or "-")
    if row.file is None or not path.is_file():
        raise RefusedError(
            404, "There is no file: the export is not done, or its file has expired."
        )
    write(
        request,
        lambda c: record(c, who.person.id, who.project.id, "downloaded an export", job=row.id),
    )
    return FileResponse(
        path, media_type="application/octet-stream", filename=download_name(who.project, row)
    )


@routes.action(
    "POST", "/jobs/{job}/cancel", form="/jobs/{job}/cancel", to="/projects/{project}/{result.kind}"
)
def cancel_job(request: Request, who: RequiresManager, job: Number) -> JobOut:
    """End an import or export that waits or runs."""
    row = _job(request, who, job)

    def work(connection: Connection) -> None:
        cancel(connection, row)
        record(connection, who.person.id, who.project.id, f"cancelled an {row.kind}", job=row.id)

    write(request, work)
    if row.kind == IMPORT and row.state == State.WAITING:
        delete_uploads(request.app.state.settings, row.parameters.get("files", {}))
    return _shown(request, [_job(request, who, job)])[0]


def queued(request: Request, queue: Callable[[Connection], int]) -> JobOut:
    """Queue a job, and let a worker start it."""

    def work(connection: Connection) -> JobRow:
        number = queue(connection)
        return JobRow(*connection.execute(select(Job.__table__).where(Job.id == number)).one())

    row = write(request, work)
    wake_workers(request)
    return _shown(request, [row])[0]


def _request_job(request: Request, who: Member, kind: str, parameters: JsonObject) -> JobOut:
    """Queue an import or export."""
    if kind == IMPORT:
        check_not_archived(who.project)

    def queue(connection: Connection) -> int:
        number = enqueue(connection, who.project.id, who.person.id, kind, parameters)
        record(connection, who.person.id, who.project.id, f"requested an {kind}", job=number)
        return number

    return queued(request, queue)


def _jobs(request: Request, who: Member, kind: str) -> JsonObject:
    """The list of jobs, with the lines that train a ranker from the newest file of labels."""
    rows = _job_rows(request, who, [kind])
    labels = newest_labels(rows) if kind == EXPORT else None
    return {
        "kind": kind,
        "jobs": _shown(request, rows),
        "sources": _SOURCES,
        "lines": None if labels is None else training_lines(who.project, labels),
    }


def _shown(request: Request, rows: Sequence[JobRow]) -> list[JobOut]:
    statement = select(User.id, User.name).where(User.id.in_({row.user_id for row in rows}))
    rows_of_people = read(request, lambda c: c.execute(statement).all())
    names = {user: name for user, name in rows_of_people}  # noqa: C416 - rows are no pairs to mypy
    return [JobOut.of(row, names[row.user_id]) for row in rows]


def _job_rows(request: Request, who: Member, kinds: list[str]) -> list[JobRow]:
    statement = (
        select(Job.__table__)
        .where(Job.project_id == who.project.id, Job.kind.in_(kinds))
        .order_by(Job.id.desc())
        .limit(_SHOWN)
    )
    return read(request, lambda c: fetch_all(c, statement, JobRow))


def _job(
    request: Request, who: Member, job: int, kinds: Sequence[str] = (IMPORT, EXPORT)
) -> JobRow:
    statement = select(Job.__table__).where(
        Job.id == job, Job.project_id == who.project.id, Job.kind.in_(kinds)
    )
    row = read(request, lambda c: fetch_one(c, statement, JobRow))
    if row is None:
        raise RefusedError(404, "The job does not exist.")
    return row


def _is_starting(request: Request, who: Member) -> bool:
    """Whether nothing is judged yet, so that the pages of the import are a step of the start."""
    return not who.project.archived and not read(request, lambda c: has_answers(c, who.project.id))


def _check_takes_tables(who: Member) -> None:
    if who.project.mode == Mode.RANKINGS:
        raise RefusedError(409, "This project compares rankings: import two runs or more.")


def _sent(upload: UploadFile | None) -> list[UploadFile]:
    """A browser sends a file field that was left empty as a file without a name."""
    return [upload] if upload is not None and (upload.filename or upload.size) else []
