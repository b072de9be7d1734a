"""Pages for imports and exports."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, File, Form, Request, UploadFile
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.errors import PodiumError
from podium.studio.accounts.identity import Member
from podium.studio.errors import first_problem
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.models.assessors import models_of
from podium.studio.store.database import reading
from podium.studio.store.enums import Mode
from podium.studio.transfer.exports import KIND as EXPORT
from podium.studio.transfer.exports import ExportOptions
from podium.studio.transfer.imports import KIND as IMPORT
from podium.studio.transfer.imports import Source
from podium.studio.transfer.notebooks import newest_labels, training_lines
from podium.studio.transfer.readers import MAX_DEPTH
from podium.studio.transfer.search_engines import DEFAULTS, EngineSearch
from podium.studio.transfer.tables import TableColumns
from podium.studio.transfer.writers import DESCRIPTIONS, EXPORT_CONTENTS, EXPORT_FORMATS
from podium.studio.web.access import AManager, UploadRoute
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes import jobs
from podium.studio.web.routes.judging import Number
from podium.studio.web.routes.project_pages import render_project

_PLACE: JsonObject = {
    "prefix": "/projects/{project}",
    "dependencies": [Depends(read_csrf)],
    "include_in_schema": False,
}
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
router = APIRouter(**_PLACE)
uploads = APIRouter(**_PLACE, route_class=UploadRoute)


@router.get("/import")
def import_page(request: Request, who: AManager) -> Response:
    """Forms for every kind of import, and those that are under way."""
    return _import_page(request, who)


@uploads.post("/import")
def import_files(
    request: Request,
    who: AManager,
    source: Annotated[Source, Form()],
    candidates: Annotated[UploadFile | None, File()] = None,
    runs: Annotated[list[UploadFile] | None, File()] = None,
    documents: Annotated[UploadFile | None, File()] = None,
    queries: Annotated[UploadFile | None, File()] = None,
    gold: Annotated[UploadFile | None, File()] = None,
    depth: Annotated[int, Form(ge=1, le=MAX_DEPTH)] = 50,
    skip_empty: Annotated[bool, Form()] = False,
) -> Response:
    """Import what was sent."""
    try:
        jobs.import_files(
            request, who, source, candidates, runs, documents, queries, gold, depth,
            skip_empty=skip_empty,
        )  # fmt: skip
    except PodiumError as error:
        return _import_page(request, who, error.problem)
    return RedirectResponse(f"/projects/{who.project.id}/import", 303)


@uploads.post("/import/preview")
def preview(request: Request, who: AManager, table: Annotated[UploadFile, File()]) -> Response:
    """Show the beginning of a table, and ask what its columns are."""
    try:
        shown = jobs.preview(request, who, table)
    except PodiumError as error:
        return _import_page(request, who, error.problem)
    return _preview_page(request, who, shown.model_dump())


@router.post("/import/table")
def import_table(request: Request, who: AManager, form: FormValues) -> Response:
    """Import a table with the chosen columns."""
    columns = {name: form.get(name, "") for name in TableColumns.model_fields}
    values = {
        "upload": form.get("upload", ""),
        "name": form.get("name", "table"),
        "columns": columns,
        "skip_empty": "skip_empty" in form,
    }
    try:
        jobs.import_table(request, who, jobs.TableImport.model_validate(values))
    except ValidationError as error:
        return _import_page(request, who, first_problem(error))
    except PodiumError as error:
        return _import_page(request, who, error.problem)
    return RedirectResponse(f"/projects/{who.project.id}/import", 303)


@uploads.post("/import/engine")
def import_from_engine(request: Request, who: AManager, form: FormValues) -> Response:
    """Import from a search engine."""
    try:
        jobs.import_from_engine(request, who, EngineSearch.model_validate(form))
    except ValidationError as error:
        return _import_page(request, who, first_problem(error))
    except PodiumError as error:
        return _import_page(request, who, error.problem)
    return RedirectResponse(f"/projects/{who.project.id}/import", 303)


@router.get("/export")
def export_page(request: Request, who: AManager) -> Response:
    """Choices for an export, and those there are."""
    return _export_page(request, who)


@router.post("/export")
def export(request: Request, who: AManager, form: FormValues) -> Response:
    """Ask for an export."""
    content, _, export_format = form.get("what", "").partition("/")
    try:
        options = ExportOptions.model_validate(
            {"content": content, "format": export_format, "ties": "ties" in form,
             "only_done": "only_done" in form, "underscores": "underscores" in form,
             "model": form.get("model") or None}
        )  # fmt: skip
        jobs.export(request, who, options)
    except ValidationError as error:
        return _export_page(request, who, first_problem(error))
    except PodiumError as error:
        return _export_page(request, who, error.problem)
    return RedirectResponse(f"/projects/{who.project.id}/export", 303)


@router.post("/jobs/{job}/cancel")
def cancel(request: Request, who: AManager, job: Number) -> Response:
    """End an import or export that waits or runs."""
    cancelled = jobs.cancel_job(request, who, job)
    return RedirectResponse(f"/projects/{who.project.id}/{cancelled.kind}", 303)


@router.get("/jobs/{kind}")
def jobs_fragment(request: Request, who: AManager, kind: str) -> Response:
    """The list of jobs, which the pages fetch again and again while something is under way."""
    known = kind if kind in (IMPORT, EXPORT) else IMPORT
    return render_project(request, who, "jobs.html", _jobs(request, who, known))


def _jobs(request: Request, who: Member, kind: str) -> JsonObject:
    """The list of jobs, with the lines that train a ranker from the newest file of labels."""
    rows = jobs.job_rows(request, who, [kind])
    labels = newest_labels(rows) if kind == EXPORT else None
    return {
        "kind": kind,
        "jobs": [jobs.job_out(row) for row in rows],
        "lines": None if labels is None else training_lines(who.project, labels),
    }


def _preview_page(request: Request, who: Member, values: JsonObject) -> Response:
    return render_project(request, who, "import_preview.html", values | {"fields": _FIELDS})


def _import_page(request: Request, who: Member, problem: str = "") -> Response:
    values = {
        "problem": problem,
        **_jobs(request, who, IMPORT),
        "engines": bool(request.app.state.settings.engines),
        "rankings": who.project.mode == Mode.RANKINGS,
        "pairs": who.project.mode == Mode.PAIRS,
        "defaults": DEFAULTS,
        "deepest": MAX_DEPTH,
    }
    return render_project(request, who, "import.html", values, status=422 if problem else 200)


def _export_page(request: Request, who: Member, problem: str = "") -> Response:
    models = reading(request.app.state.engine, lambda c: models_of(c, who.project.id))
    values = {
        "models": models,
        "problem": problem,
        **_jobs(request, who, EXPORT),
        "choices": [
            (content, form, DESCRIPTIONS[content, form])
            for content in EXPORT_CONTENTS[Mode(who.project.mode)]
            if models or content != "answers"
            for form in EXPORT_FORMATS[content]
        ],
    }
    return render_project(request, who, "export.html", values, status=422 if problem else 200)
