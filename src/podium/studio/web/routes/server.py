"""The server as its administrators set it up: version, storage, what it may call, and e-mail."""

from __future__ import annotations

import shutil

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel

import podium
from podium.studio.errors import RefusedError
from podium.studio.jobs.outbox import send_mail
from podium.studio.messages import Message
from podium.studio.models.assessors import endpoint_choices
from podium.studio.settings import Settings
from podium.studio.web.access import RequiresAdmin
from podium.studio.web.actions import Routes
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render

routes = Routes("server")


class ServerOut(BaseModel):
    """How a server is set up; keys and passwords are left out."""

    version: str
    database: str
    public_url: str
    mail: str
    """The mail server's address; empty if there is none."""
    engines: list[str]
    image_hosts: list[str]
    models: list[str]
    webhooks: list[str]
    files: int
    """How many files of exports and imports are stored."""
    bytes: int
    free_bytes: int


@routes.page("/server")
def server_page(request: Request, who: RequiresAdmin) -> Response:
    """How the server is set up."""
    return render(request, "server.html", {"server": get_server(request, who)}, person=who)


@routes.action("GET", "/server")
def get_server(request: Request, _who: RequiresAdmin) -> ServerOut:
    """How the server is set up, and how much its files take."""
    settings: Settings = request.app.state.settings
    folder = settings.exports
    files = [each for each in folder.rglob("*") if each.is_file()] if folder.is_dir() else []
    return ServerOut(
        version=podium.__version__,
        database=request.app.state.engine.dialect.name,
        public_url=settings.public_url,
        mail=endpoint_choices([settings.smtp])[0] if settings.smtp else "",
        engines=endpoint_choices(settings.engines),
        image_hosts=endpoint_choices(settings.image_hosts),
        models=endpoint_choices(settings.models),
        webhooks=endpoint_choices(settings.webhooks),
        files=len(files),
        bytes=sum(each.stat().st_size for each in files),
        free_bytes=shutil.disk_usage(folder if folder.is_dir() else ".").free,
    )


@routes.action("POST", None, form="/server/mail", page=server_page)
def test_mail(request: Request, who: RequiresAdmin) -> bool:
    """Send an e-mail to oneself, and report what the mail server says."""
    translate = language_of(request).translate
    content = {
        "to": who.email,
        "subject": translate(Message("A test of Podium Studio")),
        "text": translate(Message("This server can send e-mail.")),
    }
    problem = send_mail(request.app.state.settings, content)
    if problem is not None:
        raise RefusedError(502, "No e-mail was sent: %(problem)s", problem=problem)
    return True
