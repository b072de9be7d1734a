"""Who is asking, and what they may do: every route names the role that it needs.

A browser comes with a cookie, a program with an API token. With a cookie, whatever changes
something must repeat a word that only our own pages know, so that no other site can ask for it.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from fastapi.routing import APIRoute
from sqlalchemy import Connection, and_, bindparam, literal, or_, select

from podium.studio.accounts.identity import Member, Person
from podium.studio.errors import RefusedError
from podium.studio.store.database import reading
from podium.studio.store.enums import Role
from podium.studio.store.prepared import Prepared
from podium.studio.store.tables import ApiToken, AuthSession, Membership, Project, User
from podium.studio.store.tokens import digest
from podium.studio.web.cookies import cookie

COOKIE = "podium_session"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def _identify(columns: Sequence[Any]) -> dict[str, Prepared]:
    """Statements that find who holds a cookie or a token, and the project that is asked for.

    One statement for both, because every answer waits for it.
    """

    def found_by(key: Any, expires_at: Any, user_id: Any, csrf: Any) -> Prepared:
        return Prepared(
            select(
                User.id.label("person_id"),
                User.name.label("person_name"),
                User.email,
                User.is_admin,
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
        "cookie": found_by(
            AuthSession.key, AuthSession.expires_at, AuthSession.user_id, AuthSession.csrf
        ),
        "token": found_by(
            ApiToken.key, ApiToken.expires_at, ApiToken.user_id, literal("").label("csrf")
        ),
    }


_COLUMNS = Project.__table__.columns
_WHOLE = _identify(list(_COLUMNS))
_SHORT = _identify([column for column in _COLUMNS if column.name != "guidelines"])
"""Guidelines can be long, and nobody needs them to take an answer."""


def person_of(request: Request) -> Person | None:
    """Who sent a request, or None; refuses a change that no page of ours asked for."""
    row = reading(request.app.state.engine, lambda c: _found(c, request, 0, _SHORT))
    return None if row is None else _person(row)


def signed_in(request: Request) -> Person:
    """Who sent a request; nobody is refused but strangers."""
    person = person_of(request)
    if person is None:
        raise RefusedError(401, "Sign in first.")
    return person


def member(request: Request, project: int) -> Member:
    """Who sent a request about a project of theirs; others are not told that there is one."""
    return reading(request.app.state.engine, lambda c: _member(c, request, project, _WHOLE))


def member_in(connection: Connection, request: Request, project: int) -> Member:
    """As `member`, in the transaction that takes an answer; the project has no guidelines then."""
    return _member(connection, request, project, _SHORT)


class UploadRoute(APIRoute):
    """A route that takes large bodies: who may not send one is refused before it is read.

    Without it, parameters that come in the body are read before dependencies look up who asks.
    Whether the request comes from a page of ours is checked afterwards: forms tell it in the body.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that answers a request."""
        answer = super().get_route_handler()

        async def checked(request: Request) -> Response:
            await run_in_threadpool(_check_manager, request)
            return await answer(request)

        return checked


def _check_manager(request: Request) -> None:
    named = request.path_params["project"]
    project = int(named) if named.isascii() and named.isdigit() and len(named) < 19 else 0

    def work(connection: Connection) -> Member:
        return _member(connection, request, project, _SHORT, forged=True)

    _at_least(reading(request.app.state.engine, work), Role.MANAGER)


def _member(
    connection: Connection,
    request: Request,
    project: int,
    statements: dict[str, Prepared],
    *,
    forged: bool = False,
) -> Member:
    # Numbers that no row can have are no project, instead of an error of the database.
    number = project if 0 < project < 2**62 else 0
    row = _found(connection, request, number, statements, forged=forged)
    if row is None:
        raise RefusedError(401, "Sign in first.")
    if row.id is None:
        raise RefusedError(404, "There is no such project.")
    return Member(_person(row), Role(row.role or Role.OWNER), row)


def _found(
    connection: Connection,
    request: Request,
    project: int,
    statements: dict[str, Prepared],
    *,
    forged: bool = False,
) -> Any:
    """The row of who asks, or None.

    Args:
        connection: Where to look.
        request: What they sent.
        project: The project they ask about, or 0.
        statements: How to look.
        forged: Whether it is found even if another site's page may have sent the request.
    """
    header = request.headers.get("authorization", "")
    if header.lower().startswith("bearer "):
        key = digest(header[7:].strip())
        row = statements["token"].one(connection, key=key, now=time.time(), project=project)
        if row is None:
            raise RefusedError(401, "This API token is unknown or too old.")
        request.state.user = row.person_id
        return row
    secret = cookie(request, COOKIE)
    if not secret:
        return None
    row = statements["cookie"].one(connection, key=digest(secret), now=time.time(), project=project)
    if row is not None:
        request.state.user = row.person_id
    if row is not None and request.method not in _SAFE and not forged:
        told = request.headers.get("x-csrf-token") or str(getattr(request.state, "csrf", ""))
        if not hmac.compare_digest(told.encode(), row.csrf.encode()):
            raise RefusedError(403, "This page is out of date: load it again.")
    return row


def _person(row: Any) -> Person:
    return Person(row.person_id, row.person_name, row.email, row.is_admin, row.csrf)


def manager(found: Annotated[Member, Depends(member)]) -> Member:
    """Who sent a request that only managers and owners may send."""
    return _at_least(found, Role.MANAGER)


def owner(found: Annotated[Member, Depends(member)]) -> Member:
    """Who sent a request that only owners may send."""
    return _at_least(found, Role.OWNER)


def admin(person: Annotated[Person, Depends(signed_in)]) -> Person:
    """Who sent a request that only administrators of the server may send."""
    if not person.is_admin:
        raise RefusedError(403, "Only administrators of this server may do this.")
    return person


def _at_least(found: Member, role: Role) -> Member:
    if not found.may(role):
        raise RefusedError(403, f"Only a project's {role.value}s may do this.")
    return found


AnyPerson = Annotated[Person, Depends(signed_in)]
AnyMember = Annotated[Member, Depends(member)]
AManager = Annotated[Member, Depends(manager)]
AnOwner = Annotated[Member, Depends(owner)]
AnAdmin = Annotated[Person, Depends(admin)]
