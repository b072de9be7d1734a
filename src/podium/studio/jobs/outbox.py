"""What leaves the server: a queue in the database, and a thread of each process that empties it.

What is to be sent is put into the queue in the transaction that gives reason to: it is sent if and
only if that is committed. A delivery that fails is tried again after a time that grows fourfold,
and given up after some hours. One whose sender dies is tried again, so it may arrive twice:
deliveries are numbered. A request can take long to fail: e-mail is sent before requests, and for
some seconds after a failure a process sends no other delivery of the same webhook.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import smtplib
import ssl
import threading
import time
from collections.abc import Callable, Collection
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import httpx2
import structlog
from sqlalchemy import ColumnElement, Connection, delete, exists, insert, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from podium.http_answers import LimitedTransport
from podium.studio.errors import describe_error
from podium.studio.json_types import JsonObject
from podium.studio.settings import Settings, listed_entry
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.rows import fetch_one
from podium.studio.store.tables import Delivery, Webhook

_MAIL_SECONDS = 20.0
_PORTS = {"smtp": 587, "smtps": 465}


def send_mail(settings: Settings, content: JsonObject) -> str | None:
    """Send an e-mail; returns the problem, or None if the mail server took it.

    Args:
        settings: The server's settings.
        content: The recipient (``to``), ``subject`` and ``text``.
    """
    parts = urlsplit(settings.smtp)
    if parts.scheme not in _PORTS or not parts.hostname:
        return "PODIUM_STUDIO_SMTP names no mail server"
    port = parts.port or _PORTS[parts.scheme]
    try:
        message = _message(settings.mail_from, content)
        with _connected(parts.scheme, parts.hostname, port) as server:
            if parts.username is not None:
                assert server.sock is not None
                encrypted = isinstance(server.sock, ssl.SSLSocket)
                if not may_send_password(encrypted, server.sock.getpeername()[0]):
                    return "the mail server offers no encryption, so no password was sent"
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(message)
    except smtplib.SMTPResponseException as error:
        return f"{type(error).__name__}: {error.smtp_code}"
    except (OSError, smtplib.SMTPException, ValueError) as error:
        return type(error).__name__
    return None


def may_send_password(encrypted: bool, address: str) -> bool:
    """Whether a password may go over a connection: encrypted, or within this machine.

    Example:
        >>> may_send_password(False, "127.0.0.1"), may_send_password(False, "192.0.2.1")
        (True, False)
    """
    return encrypted or ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _message(sender: str, content: JsonObject) -> EmailMessage:
    message = EmailMessage()  # it refuses line breaks in headers
    message["From"] = sender
    message["To"] = content["to"]
    message["Subject"] = content["subject"]
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain="podium.invalid")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(content["text"])
    return message


def _connected(scheme: str, host: str, port: int) -> smtplib.SMTP:
    """A connection, encrypted wherever the mail server can."""
    context = ssl.create_default_context()
    if scheme == "smtps":
        return smtplib.SMTP_SSL(host, port, timeout=_MAIL_SECONDS, context=context)
    server = smtplib.SMTP(host, port, timeout=_MAIL_SECONDS)
    try:
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=context)
            server.ehlo()
    except BaseException:
        server.close()
        raise
    return server


_SECONDS = 10.0
_MAX_BYTES = 1 << 20


def signature(secret: str, at: int, body: bytes) -> str:
    """The signature of a body: HMAC-SHA256 over the time, a dot and the body.

    Example:
        >>> signature("secret", 0, b"{}")[:16]
        '4bbe8d39de1ffea4'
    """
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def send_webhook(
    settings: Settings, url: str, secret: str, number: int, content: JsonObject
) -> str | None:
    """Send an event to a URL; returns the problem, or None if it was taken."""
    if listed_entry(url, settings.webhooks) is None:
        return "the server's settings do not list this URL any more"
    body = json.dumps(content).encode()
    at = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "X-Podium-Event": str(content.get("event", "")),
        "X-Podium-Delivery": str(number),
        "X-Podium-Signature": f"t={at},v1={signature(secret, at, body)}",
    }
    try:
        # Without the environment's proxies and .netrc: the address is called, and nothing else.
        with httpx2.Client(
            transport=LimitedTransport(_SECONDS, _MAX_BYTES), trust_env=False,
            follow_redirects=False,
        ) as client:  # fmt: skip
            status = client.post(url, content=body, headers=headers).status_code
    except httpx2.HTTPError as error:
        return f"no answer: {type(error).__name__}"
    return None if 200 <= status < 300 else f"answered {status}"


MOST_ATTEMPTS = 8
_LOOK_EVERY = 1.0
_FIRST_WAIT = 10.0
_LONGEST_TRY = 60.0
"""After how many seconds another process may try what one has begun to send."""
_KEPT_DAYS = 30.0
_LONGEST_WAIT = 86400.0
"""After how many seconds what failed is given up, however seldom it was its turn."""
WAITING, SENT, FAILED = "waiting", "sent", "failed"


class DueDelivery(NamedTuple):
    """Something to send now; the webhook is None for e-mail."""

    id: int
    webhook_id: int | None
    content: JsonObject
    attempts: int
    created_at: float
    url: str | None
    secret: str | None


def enqueue_delivery(
    connection: Connection, content: JsonObject, webhook_id: int | None = None
) -> None:
    """Put something into the queue."""
    now = time.time()
    connection.execute(
        insert(Delivery).values(
            webhook_id=webhook_id, content=content, state=WAITING, attempts=0, next_at=now,
            created_at=now,
        )
    )  # fmt: skip


def claim_delivery(
    connection: Connection, now: float, paused: Collection[int] = ()
) -> DueDelivery | None:
    """The delivery that is due first, now this process's for a while, or None.

    E-mail goes first: someone waits for it.

    Args:
        connection: The database.
        now: The time.
        paused: Webhooks to leave alone.
    """
    statement = (
        select(
            Delivery.id,
            Delivery.webhook_id,
            Delivery.content,
            Delivery.attempts,
            Delivery.created_at,
            Webhook.url,
            Webhook.secret,
        )
        .outerjoin(Webhook, Webhook.id == Delivery.webhook_id)
        .where(*_due(now, paused))
        .order_by(Delivery.webhook_id.is_not(None), Delivery.next_at, Delivery.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=Delivery)
    )
    due = fetch_one(connection, statement, DueDelivery)
    if due is not None:
        connection.execute(
            update(Delivery)
            .where(Delivery.id == due.id)
            .values(attempts=due.attempts + 1, next_at=now + _LONGEST_TRY)
        )
    return due


def _due(now: float, paused: Collection[int]) -> list[ColumnElement[bool]]:
    due = [Delivery.state == WAITING, Delivery.next_at <= now]
    if paused:
        due.append(or_(Delivery.webhook_id.is_(None), Delivery.webhook_id.not_in(paused)))
    return due


def _is_any_due(connection: Connection, now: float, paused: Collection[int]) -> bool:
    return bool(connection.scalar(select(exists().where(*_due(now, paused)))))


def conclude_delivery(
    connection: Connection, due: DueDelivery, problem: str | None, now: float
) -> None:
    """Note that a delivery was sent, or why not, and when to try again."""
    values: JsonObject = {"state": SENT, "error": None}
    if problem is not None:
        last = due.attempts + 1 >= MOST_ATTEMPTS or now - due.created_at > _LONGEST_WAIT
        values = {
            "state": FAILED if last else WAITING,
            "error": problem[:500],
            "next_at": now + _FIRST_WAIT * 4.0**due.attempts,
        }
    if due.url is None and values["state"] != WAITING:
        # An e-mail has a link that lets someone in: it is not kept.
        values["content"] = {}
    connection.execute(update(Delivery).where(Delivery.id == due.id).values(**values))


def forget_deliveries(connection: Connection, now: float) -> None:
    """Delete deliveries that ended long ago."""
    connection.execute(
        delete(Delivery).where(
            Delivery.state != WAITING, Delivery.created_at < now - 86400 * _KEPT_DAYS
        )
    )


class Outbox:
    """Sends what is due, in a thread, until it is stopped.

    Args:
        settings: The server's settings; it has a connection of its own.
        clock: Returns the time in seconds since 1970.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        # The other deliveries of a webhook that failed would fail too, each after seconds in which
        # nothing else is sent: until when each is left alone.
        self._paused: dict[int, float] = {}
        self._engine = connect(settings.model_copy(update={"pool_size": 1}))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="podium-outbox", daemon=True)
        self._log = structlog.get_logger("podium.studio")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; what is under way may take a moment."""
        self._stop.set()
        self._thread.join(5)
        self._engine.dispose()

    def send_due(self) -> bool:
        """Send one delivery that is due; returns whether there was one."""
        now = self._clock()
        self._paused = {webhook: until for webhook, until in self._paused.items() if until > now}
        # Looked for without a lock first: SQLite has one for all who write.
        if not reading(self._engine, lambda c: _is_any_due(c, now, self._paused)):
            return False
        due = in_transaction(self._engine, lambda c: claim_delivery(c, now, self._paused))
        if due is None:
            return False
        problem = self._send(due)
        in_transaction(self._engine, lambda c: conclude_delivery(c, due, problem, self._clock()))
        if problem is not None:
            if due.webhook_id is not None:
                self._paused[due.webhook_id] = self._clock() + _FIRST_WAIT
            self._log.warning("delivery", delivery=due.id, problem=problem)
        return True

    def _send(self, due: DueDelivery) -> str | None:
        if due.url is None or due.secret is None:
            return send_mail(self._settings, due.content)
        return send_webhook(self._settings, due.url, due.secret, due.id, due.content)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                while not self._stop.is_set() and self.send_due():
                    pass
            except SQLAlchemyError as error:
                # The database is away, or its tables are of another version: it may come back.
                self._log.warning("outbox", **describe_error(error))
            except Exception as error:
                self._log.error("outbox", **describe_error(error))
            self._stop.wait(_LOOK_EVERY)
