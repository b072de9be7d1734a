"""Links for crowd workers: one account for each id of a platform, and a completion code.

A platform such as Prolific sends each worker to a URL with their id in it, and pays those who come
back with a code. A person who opens the link with an id works under that id's account, which can do
nothing but judge in one project.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select, update

from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.accounts.service import add_user
from podium.studio.errors import RefusedError
from podium.studio.messages import Message
from podium.studio.store.enums import Role
from podium.studio.store.rows import fetch_all, fetch_one
from podium.studio.store.tables import (
    BY_NO_LINK,
    CrowdLink,
    CrowdWorker,
    Membership,
    Project,
)
from podium.studio.store.tokens import digest, new_secret

MOST_LINKS = 50
"""How many links a project has at most."""
REMOVED = 0.0
"""When a link that was removed has expired. Its row stays: it has the account of each id."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_GONE = Message("This link has expired, or enough people have taken part.")


@dataclass(frozen=True)
class CrowdLinkRow:
    """A link, without its secret, and how far its workers are."""

    id: int
    parameter: str
    code: str
    judgments: int
    workers_left: int
    expires_at: float
    workers: int
    completed: int


class _Link(NamedTuple):
    id: int
    project_id: int
    key: str
    parameter: str
    code: str
    judgments: int
    workers_left: int
    expires_at: float


def make_link(
    connection: Connection,
    who: Member,
    *,
    parameter: str,
    code: str,
    judgments: int,
    workers: int,
    days: float,
) -> str:
    """Create a link and return its secret, which is shown once."""
    check_not_archived(who.project)
    count = connection.scalar(
        select(func.count()).where(
            CrowdLink.project_id == who.project.id, CrowdLink.expires_at > REMOVED
        )
    )
    if (count or 0) >= MOST_LINKS:
        raise RefusedError(
            429, "A project has at most %(most)s links: remove one.", most=MOST_LINKS
        )
    secret = new_secret()
    connection.execute(
        insert(CrowdLink).values(
            project_id=who.project.id, key=digest(secret), parameter=parameter, code=code,
            judgments=judgments, workers_left=workers, expires_at=time.time() + 86400 * days,
        )
    )  # fmt: skip
    record(
        connection, who.person.id, who.project.id, "created a link for crowd workers",
        workers=workers, judgments=judgments,
    )  # fmt: skip
    return secret


def links_of(connection: Connection, project_id: int) -> list[CrowdLinkRow]:
    """The links of a project."""
    workers = (
        select(func.count())
        .where(CrowdWorker.link_id == CrowdLink.id)
        .correlate(CrowdLink)
        .scalar_subquery()
    )
    completed = (
        select(func.count())
        .where(CrowdWorker.link_id == CrowdLink.id, CrowdWorker.completed_at.is_not(None))
        .correlate(CrowdLink)
        .scalar_subquery()
    )
    statement = select(
        CrowdLink.id, CrowdLink.parameter, CrowdLink.code, CrowdLink.judgments,
        CrowdLink.workers_left, CrowdLink.expires_at, workers, completed,
    ).where(CrowdLink.project_id == project_id, CrowdLink.expires_at > REMOVED)  # fmt: skip
    return fetch_all(connection, statement.order_by(CrowdLink.id), CrowdLinkRow)


def remove_link(connection: Connection, who: Member, link_id: int) -> None:
    """Remove a link; its workers stay members, without a code."""
    gone = connection.execute(
        update(CrowdLink)
        .where(
            CrowdLink.id == link_id,
            CrowdLink.project_id == who.project.id,
            CrowdLink.expires_at > REMOVED,
        )
        .values(expires_at=REMOVED)
    )
    if gone.rowcount == 0:
        raise RefusedError(404, "The link does not exist.")
    record(connection, who.person.id, who.project.id, "removed a link for crowd workers")


def parameter_of(connection: Connection, secret: str) -> str:
    """The parameter that has a worker's id; refused if there is no such link."""
    return _link(connection, secret).parameter


def worker_account(connection: Connection, secret: str, external_id: str) -> tuple[int, int]:
    """The account of a worker, made when they come first, and the project."""
    if not _ID.fullmatch(external_id):
        raise RefusedError(422, "The link lacks your participant ID: open it from the platform.")
    link = _link(connection, secret, lock=True)
    joined = connection.scalar(
        select(CrowdWorker.user_id).where(
            CrowdWorker.link_id == link.id, CrowdWorker.external_id == external_id
        )
    )
    known = joined or _known_worker(connection, link, external_id)
    if known is not None:
        member = Membership.project_id == link.project_id, Membership.user_id == known
        if connection.scalar(select(Membership.role).where(*member)) is None:
            raise RefusedError(403, "You cannot take part in this project any more.")
    if joined is not None:
        return joined, link.project_id
    archived = connection.scalar(select(Project.archived).where(Project.id == link.project_id))
    if link.workers_left <= 0 or archived:
        raise RefusedError(404, _GONE)
    user_id = known or _new_worker(connection, link, external_id)
    connection.execute(
        insert(CrowdWorker).values(link_id=link.id, external_id=external_id, user_id=user_id)
    )
    connection.execute(
        update(CrowdLink)
        .where(CrowdLink.id == link.id)
        .values(workers_left=CrowdLink.workers_left - 1)
    )
    record(connection, user_id, link.project_id, "joined as a crowd worker", link=link.id)
    return user_id, link.project_id


def note_completion(connection: Connection, user_id: int) -> None:
    """Note that a worker was shown the code."""
    connection.execute(
        update(CrowdWorker)
        .where(CrowdWorker.user_id == user_id, CrowdWorker.completed_at.is_(None))
        .values(completed_at=time.time())
    )


def _known_worker(connection: Connection, link: _Link, external_id: str) -> int | None:
    """The account of a worker who came by another link, whatever the name of its parameter."""
    return connection.scalar(
        select(CrowdWorker.user_id)
        .join(CrowdLink, CrowdLink.id == CrowdWorker.link_id)
        .where(
            CrowdLink.project_id == link.project_id,
            CrowdWorker.external_id == external_id,
        )
        .order_by(CrowdWorker.user_id)
        .limit(1)
    )


def _new_worker(connection: Connection, link: _Link, external_id: str) -> int:
    # Nobody else can sign in with it: it has neither a password nor an address that gets mail.
    address = f"{new_secret()[:20].lower()}@crowd.invalid"
    # By this name managers approve or refuse the work on the platform.
    user_id = add_user(connection, address, external_id, None)
    connection.execute(
        insert(Membership).values(
            project_id=link.project_id,
            user_id=user_id,
            role=Role.ASSESSOR.value,
            invitation_id=BY_NO_LINK,
        )
    )
    return user_id


def _link(connection: Connection, secret: str, *, lock: bool = False) -> _Link:
    statement = select(CrowdLink.__table__).where(
        CrowdLink.key == digest(secret), CrowdLink.expires_at > time.time()
    )
    link = fetch_one(connection, statement.with_for_update() if lock else statement, _Link)
    if link is None:
        raise RefusedError(404, _GONE)
    return link
