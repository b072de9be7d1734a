"""Guessing passwords: many at once, behind a success of one's own, and to lock others out."""

from __future__ import annotations

import math
import re
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from sqlalchemy import func, select, update

from podium.studio.accounts.service import add_user
from podium.studio.accounts.throttling import FREE
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import AuditRecord, SignInFailure
from tests.studio.factories import PASSWORD

ANN, EVE = "ann@example.org", "eve@example.org"


@pytest.fixture
def people(engine):
    for email in (ANN, EVE):
        in_transaction(engine, lambda c, email=email: add_user(c, email, "Someone", PASSWORD))


def guess(server: str, email: str, password: str, address: str = "192.0.2.1") -> int:
    with httpx2.Client(
        base_url=server, headers={"accept": "text/html", "x-forwarded-for": address}, timeout=60
    ) as client:
        form = re.search(r'name="form" value="([^"]+)"', client.get("/sign-in").text).group(1)
        data = {"email": email, "password": password, "form": form}
        return client.post("/sign-in", data=data).status_code


def hold(engine) -> None:
    """Make waits that have begun a minute longer, for machines that are slower than they are."""
    in_transaction(
        engine,
        lambda c: c.execute(
            update(SignInFailure)
            .where(SignInFailure.locked_until > 0)
            .values(locked_until=time.time() + 60)
        ),
    )


@pytest.mark.usefixtures("people")
def test_guesses_at_the_same_time_count_too(server):
    started = time.monotonic()
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda n: guess(server, ANN, f"wrong {n}"), range(24)))
    # The wait after the fifth is a second, then two, then four: a slow machine gets that far.
    after_waiting = math.log2(time.monotonic() - started + 1) + 1
    assert FREE["pair"] <= found.count(401) <= FREE["pair"] + after_waiting
    assert found.count(429) == 24 - found.count(401)


@pytest.mark.usefixtures("people")
def test_a_success_of_ones_own_does_not_help_to_guess_others(engine, server):
    names = [f"nobody{n}@example.org" for n in range(FREE["address"])]
    for number, name in enumerate(names):
        assert guess(server, name, "wrong password") == 401
        if number % 5 == 0:
            assert guess(server, EVE, PASSWORD) == 303
    hold(engine)
    assert guess(server, ANN, "wrong password") == 429
    assert guess(server, ANN, PASSWORD, "192.0.2.77") == 303


@pytest.mark.usefixtures("people")
def test_strangers_cannot_lock_an_account(engine, server):
    assert guess(server, ANN, PASSWORD, "198.51.100.1") == 303
    for number in range(FREE["account"]):
        assert guess(server, ANN, "wrong password", f"192.0.2.{number // 4}") == 401
    hold(engine)
    # Elsewhere there is a wait now, where its owner was before there is none.
    assert guess(server, ANN, PASSWORD, "203.0.113.9") == 429
    assert guess(server, ANN, PASSWORD, "198.51.100.1") == 303


@pytest.mark.usefixtures("people")
def test_where_failures_came_from_is_recorded(engine, server):
    guess(server, ANN, "wrong password", "192.0.2.33")
    rows = reading(
        engine,
        lambda c: c.execute(
            select(AuditRecord.user_id, AuditRecord.details).where(
                AuditRecord.action == "failed to sign in"
            )
        ).all(),
    )
    assert [tuple(row) for row in rows] == [(None, {"address": "192.0.2.33", "email": ANN})]


@pytest.mark.usefixtures("people")
def test_text_that_no_database_takes(engine, server):
    for email in ("a\0b@example.org", "\0"):
        assert guess(server, email, "wrong\0password") == 401
    assert reading(engine, lambda c: c.scalar(select(func.count()).select_from(AuditRecord))) == 2
