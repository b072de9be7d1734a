"""Limits on sign-in attempts.

An attempt is counted before the password is checked, so that concurrent attempts count too, and
uncounted if the password was right. There are three counters: per account and address, against
guessing; per address, against trying many accounts; and per account, against guessing from many
addresses. The last does not apply to addresses from which the owner has signed in before, so that
nobody can lock them out.
"""

from __future__ import annotations

import ipaddress
import time

from sqlalchemy import Connection, case, delete, select, update

from podium.studio.errors import RefusedError
from podium.studio.store.dialects import INSERTS
from podium.studio.store.tables import KnownAddress, SignInFailure, User

FREE = {"pair": 5, "address": 20, "account": 50}
"""Failed attempts before there is a delay, which then doubles up to a limit."""
MAX_WAIT = 900.0
WINDOW = 3600.0
"""Seconds without a failure after which counting starts over."""


def count_attempt(connection: Connection, email: str, address: str) -> None:
    """Count a sign-in attempt, or refuse it if there were too many; commit before continuing."""
    now = time.time()
    for kind, key in _keys(connection, email, address):
        count = _add_one(connection, key, now)
        if count is None:
            locked = connection.scalar(
                select(SignInFailure.locked_until).where(SignInFailure.key == key)
            )
            left = int((locked or now) - now) + 1
            raise RefusedError(429, "Too many attempts: wait %(seconds)s seconds.", seconds=left)
        if count >= FREE[kind]:
            wait = min(2.0 ** (count - FREE[kind]), MAX_WAIT)
            connection.execute(
                update(SignInFailure)
                .where(SignInFailure.key == key)
                .values(locked_until=now + wait)
            )


def take_back(connection: Connection, user_id: int, email: str, address: str) -> None:
    """Uncount a successful attempt; earlier failures still count."""
    keys = dict(_keys(connection, email, address))
    connection.execute(delete(SignInFailure).where(SignInFailure.key == keys.pop("pair")))
    for kind, key in keys.items():
        fewer = case((SignInFailure.count > 0, SignInFailure.count - 1), else_=0)
        connection.execute(
            update(SignInFailure)
            .where(SignInFailure.key == key)
            .values(
                count=fewer,
                locked_until=case(
                    (SignInFailure.count <= FREE[kind], 0.0), else_=SignInFailure.locked_until
                ),
            )
        )
    statement = INSERTS[connection.dialect.name](KnownAddress).values(
        user_id=user_id, address=network(address), last_at=time.time()
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[KnownAddress.user_id, KnownAddress.address],
            set_={"last_at": statement.excluded.last_at},
        )
    )


def count_use(connection: Connection, key: str, free: int) -> None:
    """Count something that may be done `free` times in a row, then with growing delays."""
    now = time.time()
    count = _add_one(connection, key[:400], now)
    if count is None:
        raise RefusedError(429, "Too many requests: wait some minutes.")
    if count >= free:
        wait = min(2.0 ** (count - free), MAX_WAIT)
        connection.execute(
            update(SignInFailure)
            .where(SignInFailure.key == key[:400])
            .values(locked_until=now + wait)
        )


def network(address: str) -> str:
    """The network of an address, as it is counted: IPv6 addresses by their /64 prefix.

    Example:
        >>> network("192.0.2.7"), network("2001:db8:1:2:aaaa::1")
        ('192.0.2.7', '2001:db8:1:2::/64')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))


def _keys(connection: Connection, email: str, address: str) -> list[tuple[str, str]]:
    """The counters, always in the same order."""
    account, source = email.strip().lower()[:320], network(address)
    known = connection.scalar(
        select(KnownAddress.user_id)
        .join(User, User.id == KnownAddress.user_id)
        .where(User.email == account, KnownAddress.address == source)
    )
    keys = [("pair", f"pair:{account}|{source}"), ("address", f"address:{source}")]
    return keys if known is not None else [*keys, ("account", f"account:{account}")]


def _add_one(connection: Connection, key: str, now: float) -> int | None:
    """Increment a counter and return it; None during a delay."""
    statement = INSERTS[connection.dialect.name](SignInFailure).values(
        key=key, count=1, locked_until=0.0, last_at=now
    )
    over = SignInFailure.last_at < now - WINDOW
    count_now = connection.execute(
        statement.on_conflict_do_update(
            index_elements=[SignInFailure.key],
            set_={
                "count": case((over, 1), else_=SignInFailure.count + 1),
                "last_at": statement.excluded.last_at,
            },
            where=SignInFailure.locked_until <= now,
        ).returning(SignInFailure.count)
    ).scalar_one_or_none()
    return None if count_now is None else int(count_now)
