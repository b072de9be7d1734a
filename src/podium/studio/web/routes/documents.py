"""Documents of a task: what the project shows of them, their own pages and their pictures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

import anyio.to_thread
from fastapi import Query as Parameter
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel
from sqlalchemy import select

from podium.data import Candidate
from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.projects.display import (
    CONTENT_COLUMNS,
    DocumentContent,
    FieldRole,
    shown_document,
)
from podium.studio.store.enums import Role
from podium.studio.store.sanitizing import sanitized
from podium.studio.store.tables import ProjectQuery, QueryCandidate
from podium.studio.transfer.images import ImageStore
from podium.studio.web.access import Number, RequiresMember, member
from podium.studio.web.actions import Routes, read
from podium.studio.web.documents import document_page, picture_addresses, terms_in
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render_project

routes = Routes("judging", api="/projects/{project}", pages="/projects/{project}")

_MOST_DOCUMENTS = 100
"""How many documents are asked for at once."""
_MOST_PICTURES = 12
"""How many pictures of a document's HTML are fetched."""
_MOST_BYTES = 8 << 20
"""How large they are together."""
_DOCUMENTS = "/queries/{query}/documents"


class FieldOut(BaseModel):
    """A field of a document, and how to show it."""

    role: FieldRole
    label: str
    text: str
    image: str | None = None
    """Where this server has the picture, if the field is one."""


class DocumentOut(BaseModel):
    """A document as the project shows it, with the words to highlight; what it hides is empty."""

    reference: int
    title: str
    url: str
    text: str
    format: Literal["text", "html"]
    """Whether the text is shown, or the document's page of HTML."""
    fields: list[FieldOut]
    """What is shown besides, in order."""
    terms: list[str]
    """The words in it that are forms of the query's words."""


@routes.action("GET", _DOCUMENTS)
def list_documents(
    request: Request,
    who: RequiresMember,
    query: Number,
    reference: Annotated[list[int], Parameter(max_length=_MOST_DOCUMENTS)],
    text: Annotated[bool, Parameter(description="Whether their texts are needed.")] = True,
) -> list[DocumentOut]:
    """Some documents of a query, by their `reference`, as the project shows them."""
    rows = document_rows(request, who, query, reference)
    if not rows:
        raise RefusedError(404, "The documents do not exist.")
    shown = [document_out(request, who, query, rows[each]) for each in reference if each in rows]
    return shown if text else [each.model_copy(update={"text": ""}) for each in shown]


@routes.action("GET", _DOCUMENTS + "/{reference}")
def document(request: Request, who: RequiresMember, query: Number, reference: int) -> DocumentOut:
    """A document as the project shows it."""
    return document_out(request, who, query, document_row(request, who, query, reference))


@routes.action("GET", _DOCUMENTS + "/{reference}/page", response_class=HTMLResponse)
async def document_html(
    request: Request, who: RequiresMember, query: Number, reference: int
) -> HTMLResponse:
    """A document's HTML, sanitised, with the query's words marked; scripts run nowhere in it."""
    row = await run_in_threadpool(document_row, request, who, query, reference)
    shown = shown_document(who.project.display, row.content)
    # Managers see on other pages what assessors do not.
    markup = row.content.html if who.may(Role.MANAGER) else shown.html
    title = row.content.title if who.may(Role.MANAGER) else shown.title
    pictures = await _pictures(request, picture_addresses(markup))
    terms = terms_in(row.query_text, markup)
    return document_page(title, markup, terms, pictures, language_of(request))


async def _pictures(request: Request, addresses: list[str]) -> dict[str, str]:
    """Pictures as ``data:`` URLs by their addresses: a sandboxed frame sends no cookie for more."""
    images: ImageStore = request.app.state.images
    pictures: dict[str, str] = {}
    size = 0

    async def fetch(address: str) -> None:
        nonlocal size
        try:
            picture = await anyio.to_thread.run_sync(
                images.picture, address, limiter=request.app.state.fetching_images
            )
        except RefusedError:
            return
        size += len(picture.content)
        if size <= _MOST_BYTES:
            content = b64encode(picture.content).decode()
            pictures[address] = f"data:{picture.media_type};base64,{content}"

    async with anyio.create_task_group() as group:
        for address in [each for each in addresses if images.allows(each)][:_MOST_PICTURES]:
            group.start_soon(fetch, address)
    return pictures


@routes.action("GET", _DOCUMENTS + "/{reference}/image", response_class=Response)
async def document_image(
    request: Request,
    query: Number,
    reference: int,
    project: Number,
    field: Annotated[str, Parameter(max_length=200)] = "",
) -> Response:
    """The picture of a document, from this server: browsers call no other.

    Managers may name another field than the project shows.
    """
    url = await run_in_threadpool(_image_url, request, project, query, reference, field)
    images: ImageStore = request.app.state.images
    # In threads of their own: a slow host keeps nobody from judging.
    picture = await anyio.to_thread.run_sync(
        images.picture, url, limiter=request.app.state.fetching_images
    )
    headers = {
        "Cache-Control": "private, max-age=86400",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(picture.content, media_type=picture.media_type, headers=headers)


def _image_url(request: Request, project: int, query: int, reference: int, field: str) -> str:
    who = member(request, project)
    row = document_row(request, who, query, reference)
    display = who.project.display
    if field and who.may(Role.MANAGER):
        display = [{"field": field, "role": FieldRole.IMAGE}]
    for each in shown_document(display, row.content).fields:
        if each.role is FieldRole.IMAGE:
            return each.text
    raise RefusedError(404, "The document has no picture.")


class DocumentRow(NamedTuple):
    """A document with the text of its query."""

    reference: int
    content: DocumentContent
    query_text: str


def document_row(request: Request, who: Member, query: int, reference: int) -> DocumentRow:
    """A document of the project, by the number that names it to browsers."""
    row = document_rows(request, who, query, [reference]).get(reference)
    if row is None:
        raise RefusedError(404, "The document does not exist.")
    return row


def document_rows(
    request: Request, who: Member, query: int, references: list[int]
) -> dict[int, DocumentRow]:
    """Documents of the project, by the numbers that name them to browsers."""
    statement = (
        select(QueryCandidate.reference, ProjectQuery.text, *CONTENT_COLUMNS)
        .join(ProjectQuery, ProjectQuery.id == QueryCandidate.query_id)
        .where(
            ProjectQuery.project_id == who.project.id,
            QueryCandidate.query_id == query,
            QueryCandidate.reference.in_([each for each in references if 0 <= each < 2**31]),
        )
    )
    rows = read(request, lambda c: c.execute(statement).all())
    return {
        reference: DocumentRow(reference, DocumentContent(*content), query_text)
        for reference, query_text, *content in rows
    }


def document_out(
    request: Request,
    who: Member,
    query: int,
    row: DocumentRow,
    display: Sequence[JsonObject] | None = None,
) -> DocumentOut:
    """A document as the project shows it, or as it would with other fields."""
    shown = shown_document(who.project.display if display is None else display, row.content)
    images: ImageStore = request.app.state.images
    path = f"/api/v1/projects/{who.project.id}/queries/{query}/documents/{row.reference}/image"
    texts = [field.text for field in shown.fields if field.role is not FieldRole.IMAGE]
    return DocumentOut(
        reference=row.reference,
        title=shown.title,
        url=shown.url,
        text=shown.text,
        format="html" if shown.html else "text",
        fields=[
            FieldOut(
                role=field.role,
                label=field.label,
                text=field.text if field.role is not FieldRole.IMAGE else "",
                image=_image_path(path, field.field, named=display is not None)
                if field.role is FieldRole.IMAGE
                else None,
            )
            for field in shown.fields
            if field.role is not FieldRole.IMAGE or images.allows(field.text)
        ],
        terms=terms_in(row.query_text, shown.title, shown.text, *texts),
    )


def previewed_document(
    who: Member, query_text: str, reference: int, candidate: Candidate
) -> DocumentOut:
    """A document that is not imported yet as the project would show it, without pictures."""
    content = DocumentContent(
        candidate.document_id, candidate.title, candidate.url, candidate.text,
        sanitized(candidate.html), candidate.metadata,
    )  # fmt: skip
    shown = shown_document(who.project.display, content)
    fields = [field for field in shown.fields if field.role is not FieldRole.IMAGE]
    return DocumentOut(
        reference=reference,
        title=shown.title,
        url=shown.url,
        text=shown.text,
        format="html" if shown.html else "text",
        fields=[FieldOut(role=each.role, label=each.label, text=each.text) for each in fields],
        terms=terms_in(query_text, shown.title, shown.text, *(each.text for each in fields)),
    )


def _image_path(path: str, field: str, *, named: bool) -> str:
    return f"{path}?{urlencode({'field': field})}" if named else path


@routes.page(_DOCUMENTS + "/{reference}")
def single_document_page(
    request: Request, who: RequiresMember, query: Number, reference: int
) -> Response:
    """A document by itself."""
    row = document_row(request, who, query, reference)
    shown = shown_document(who.project.display, row.content)
    if who.may(Role.MANAGER):
        shown = replace(
            shown, title=row.content.title or row.content.item, url=row.content.url,
            text=row.content.text, html=row.content.html,
        )  # fmt: skip
    frame = f"/api/v1/projects/{who.project.id}/queries/{query}/documents/{reference}"
    values = {
        "document": shown,
        "query_text": row.query_text,
        "extra": row.content.extra if who.may(Role.MANAGER) else {},
        "frame": f"{frame}/page" if shown.html else "",
        "image": f"{frame}/image",
    }
    return render_project(request, who, "document.html", values)
