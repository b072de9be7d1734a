"""Authentication and authorization: every route names the role that it needs.

Browsers send a session cookie, programs an API token. With a cookie, a request that changes
something must also carry the CSRF token, which only our own pages know.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi import Query as Parameter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from fastapi.routing import APIRoute
from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    and_,
    bindparam,
    literal,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute

from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import check_not_removed
from podium.studio.errors import RefusedError
from podium.studio.messages import Message
from podium.studio.store.database import reading
from podium.studio.store.enums import Role
from podium.studio.store.rows import ProjectRow, fetch_one
from podium.studio.store.tables import ApiToken, AuthSession, Membership, Project, User
from podium.studio.store.tokens import digest
from podium.studio.web.cookies import cookie

COOKIE = "podium_session"
_ONLY = {
    Role.MANAGER: Message("Only managers of the project may do this."),
    Role.OWNER: Message("Only owners of the project may do this."),
}
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Requester:
    """Who sent a request, and the project it is about, from a row with the columns of both."""

    def __init__(
        self,
        user_id: int,
        name: str,
        email: str,
        is_admin: bool,
        language: str,
        csrf: str,
        role: str | None,
        *project: object,
    ) -> None:
        self.person = Person(user_id, name, email, is_admin, csrf, language)
        self.role = Role(role or Role.OWNER)
        self.project = None if project[0] is None else ProjectRow._make(project)


_Statements = dict[str, Executable]


def _identify(columns: Sequence[ColumnElement[object]]) -> _Statements:
    """Statements that find the person of a session or token, together with the project.

    One statement for both, because every answer waits for it.
    """

    def by_key(
        key: InstrumentedAttribute[str],
        expires_at: InstrumentedAttribute[float],
        user_id: InstrumentedAttribute[int],
        csrf: ColumnElement[str] | InstrumentedAttribute[str],
    ) -> Executable:
        return (
            select(
                User.id.label("person_id"),
                User.name.label("person_name"),
                User.email,
                User.is_admin,
                User.language,
                csrf,
                Membership.role,
                *columns,
            )
            .select_from(User)
            .join(key.class_, user_id == User.id)
            .outerjoin(
                Membership,
                and_(Membership.user_id == User.id, Membership.project_id == bindparam("project")),
            )
            # Administrators see all projects, whether they are members or not.
            .outerjoin(
                Project,
                and_(
                    Project.id == bindparam("project"),
                    or_(Membership.role.is_not(None), User.is_admin.is_(True)),
                ),
            )
            .where(key == bindparam("key"), expires_at > bindparam("now"), User.disabled.is_(False))
        )

    return {
        "cookie": by_key(
            AuthSession.key, AuthSession.expires_at, AuthSession.user_id, AuthSession.csrf
        ),
        "token": by_key(
            ApiToken.key, ApiToken.expires_at, ApiToken.user_id, literal("").label("csrf")
        ),
    }


_COLUMNS = Project.__table__.columns
_WITH_GUIDELINES = _identify(list(_COLUMNS))
_WITHOUT_GUIDELINES = _identify(
    [literal("") if column.name == "guidelines" else column for column in _COLUMNS]
)
"""Guidelines can be long, and nobody needs them to take an answer."""


def person_of(request: Request) -> Person | None:
    """The person who sent a request, or None; refuses changes without a valid CSRF token."""
    row = reading(request.app.state.engine, lambda c: _find_row(c, request, 0, _WITHOUT_GUIDELINES))
    return None if row is None else row.person


def signed_in(request: Request) -> Person:
    """The signed-in person who sent a request; others are refused."""
    person = person_of(request)
    if person is None:
        raise RefusedError(401, "Sign in first.")
    return person


def member(request: Request, project: int) -> Member:
    """The member who sent a request about a project; to others the project does not exist."""
    return reading(
        request.app.state.engine, lambda c: _member(c, request, project, _WITH_GUIDELINES)
    )


def member_in(connection: Connection, request: Request, project: int) -> Member:
    """As `member`, within a transaction; the project's guidelines are not loaded."""
    return _member(connection, request, project, _WITHOUT_GUIDELINES)


class UploadRoute(APIRoute):
    """A route that takes large bodies: who may not send one is refused before it is read.

    Without it, parameters that come in the body are read before dependencies look up who asks.
    Whether the request comes from a page of ours is checked afterwards: a form has it in its body.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        """The function that answers a request."""
        answer = super().get_route_handler()

        async def checked(request: Request) -> Response:
            await run_in_threadpool(_check_manager, request)
            return await answer(request)

        return checked


def _check_manager(request: Request) -> None:
    path_value = request.path_params["project"]
    project = (
        int(path_value)
        if path_value.isascii() and path_value.isdigit() and len(path_value) < 19
        else 0
    )

    def work(connection: Connection) -> Member:
        return _member(connection, request, project, _WITHOUT_GUIDELINES, skip_csrf=True)

    _at_least(reading(request.app.state.engine, work), Role.MANAGER)


def _member(
    connection: Connection,
    request: Request,
    project: int,
    statements: _Statements,
    *,
    skip_csrf: bool = False,
) -> Member:
    # Numbers that no row can have would be an error of the database.
    number = project if 0 < project < 2**62 else 0
    row = _find_row(connection, request, number, statements, skip_csrf=skip_csrf)
    if row is None:
        raise RefusedError(401, "Sign in first.")
    if row.project is None:
        check_not_removed(connection, number, row.person.id)
        raise RefusedError(404, "The project does not exist.")
    return Member(row.person, row.role, row.project)


def _find_row(
    connection: Connection,
    request: Request,
    project: int,
    statements: _Statements,
    *,
    skip_csrf: bool = False,
) -> Requester | None:
    """Who asks, or None.

    Args:
        connection: Where to look.
        request: What they sent.
        project: The project they ask about, or 0.
        statements: How to look.
        skip_csrf: Whether it is found even if another site's page may have sent the request.
    """
    header = request.headers.get("authorization", "")
    if header.lower().startswith("bearer "):
        key = digest(header[7:].strip())
        row = fetch_one(
            connection, statements["token"], Requester, key=key, now=time.time(), project=project
        )
        if row is None:
            raise RefusedError(401, "This API token is not valid or has expired.")
        _note_person(request, row.person)
        return row
    secret = cookie(request, COOKIE)
    if not secret:
        return None
    row = fetch_one(
        connection, statements["cookie"], Requester, key=digest(secret), now=time.time(),
        project=project,
    )  # fmt: skip
    if row is not None:
        _note_person(request, row.person)
    if row is not None and request.method not in _SAFE and not skip_csrf:
        sent_csrf = request.headers.get("x-csrf-token") or str(getattr(request.state, "csrf", ""))
        if not hmac.compare_digest(sent_csrf.encode(), row.person.csrf.encode()):
            raise RefusedError(403, "This page is out of date: reload the page.")
    return row


def _note_person(request: Request, person: Person) -> None:
    """Store who asks for the log, and their language for `podium.studio.web.languages`."""
    request.state.user = person.id
    request.state.language = person.language


def manager(who: Annotated[Member, Depends(member)]) -> Member:
    """Who sent a request that only managers and owners may send."""
    return _at_least(who, Role.MANAGER)


def owner(who: Annotated[Member, Depends(member)]) -> Member:
    """Who sent a request that only owners may send."""
    return _at_least(who, Role.OWNER)


def admin(person: Annotated[Person, Depends(signed_in)]) -> Person:
    """Who sent a request that only administrators of the server may send."""
    if not person.is_admin:
        raise RefusedError(403, "Only administrators of this server may do this.")
    return person


def wake_workers(request: Request) -> None:
    """Let the server's workers look for a new job at once."""
    for worker in request.app.state.workers:
        worker.wake()


def public_url(request: Request) -> str:
    """Where browsers reach the server, for links: its setting, or the address it listens at.

    A Host header would send people who open a link wherever its sender likes.
    """
    configured = str(request.app.state.settings.public_url).rstrip("/")
    host, port = request.scope.get("server") or ("localhost", None)
    named = f"[{host}]" if ":" in host else host
    return configured or f"{request.url.scheme}://{named}:{port or 80}"


def check_browser(person: Person) -> None:
    """Refuse programs: an API token must not give its account access that outlives it."""
    if not person.csrf:
        raise RefusedError(403, "Programs cannot do this: sign in with a browser.")


def _at_least(who: Member, role: Role) -> Member:
    if not who.may(role):
        raise RefusedError(403, _ONLY[role])
    return who


RequiresPerson = Annotated[Person, Depends(signed_in)]
RequiresMember = Annotated[Member, Depends(member)]
RequiresManager = Annotated[Member, Depends(manager)]
RequiresOwner = Annotated[Member, Depends(owner)]
RequiresAdmin = Annotated[Person, Depends(admin)]
Number = Annotated[int, Path(ge=1, lt=2**62)]
"""The number of a row."""
NEWEST = 2**62
"""Above the number of every row."""
Before = Annotated[
    int | None, Parameter(ge=1, lt=NEWEST, description="Only entries with a lower `id`.")
]
