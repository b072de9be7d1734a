"""Accounts: nothing outlives a token, nothing stays of a person, nothing follows a header."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from podium.studio.accounts.service import add_user, new_api_token, sign_in
from podium.studio.settings import Settings
from podium.studio.store.backup import back_up
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import LogEntry, Membership, SignInFailure, User
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser

DATABASES = ["sqlite"]


def test_a_token_of_an_administrator_makes_no_access_that_outlives_it(engine, api):
    ann, bob = make_people(engine, 2, admin=True)
    cem = in_transaction(engine, lambda c: add_user(c, "cem@example.org", "Cem", None))
    client = api(ann)
    for user in (ann, bob, cem):
        assert client.post(f"/api/v1/accounts/{user}/password").status_code == 403
        change = client.patch(f"/api/v1/accounts/{user}", json={"is_admin": True})
        assert change.status_code == 403


def test_an_account_has_a_limited_number_of_tokens(engine, address):
    (ann,) = make_people(engine, 1)
    for _ in range(50):
        in_transaction(engine, lambda c: new_api_token(c, ann, "x", 1))
    signed = in_transaction(engine, lambda c: sign_in(c, ann, 1))
    with Browser(address) as browser:
        browser.cookies.set("podium_session", signed.secret)
        form = {"csrf": signed.csrf, "name": "one more", "days": "30"}
        refused = browser.post("/tokens", data=form)
    assert (refused.status_code, "at most 50 API tokens" in refused.text) == (429, True)


@pytest.mark.parametrize("path", ["invitations", "crowd-links"])
def test_links_do_not_follow_the_host_header(engine, api, address, path):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    body = {"code": "C", "parameter": "W", "workers": 1} if path == "crowd-links" else {}
    made = api(ann).post(
        f"/api/v1/projects/{project}/{path}", json=body, headers={"host": "evil.example"}
    )
    assert made.json()["link"].startswith(f"{address}/")


def test_nothing_that_someone_wrote_is_left_when_they_are_anonymised(engine, api, judge):
    ann, bob = make_people(engine, 2, admin=True)
    questions = [
        {"name": "why", "text": "Why?", "options": [], "required": False},
        {"name": "sure", "text": "Sure?", "options": ["yes", "no"], "required": False},
    ]
    project = make_project(engine, [ann], mode="grades", questions=questions)
    joined = insert(Membership).values(project_id=project, user_id=bob, role="assessor")
    in_transaction(engine, lambda c: c.execute(joined))
    client = judge(bob, project)
    task = client.next()["task"]
    replies = {"why": "Bob's mother said so", "sure": "yes"}
    client.answer(task, "skip", reason="I am Bob", replies=replies)
    counted = insert(SignInFailure).values(
        key="reset-of:p1@example.org", count=1, locked_until=0.0, last_at=0.0
    )
    in_transaction(engine, lambda c: c.execute(counted))
    gone = api(ann).post(f"/api/v1/accounts/{bob}/anonymise", json={"email": "p1@example.org"})
    assert gone.status_code == 204
    keys = reading(engine, lambda c: c.scalars(select(SignInFailure.key)).all())
    assert not any("p1@example.org" in key for key in keys)
    (entry,) = reading(engine, lambda c: c.execute(select(LogEntry.reason, LogEntry.replies)).all())
    assert tuple(entry) == (None, {"sure": "yes"})


def test_no_byte_of_an_address_is_left_when_an_account_is_anonymised(
    engine, address, api, tmp_path, database
):
    ann, bob = make_people(engine, 2, admin=True)
    marked = update(User).where(User.id == bob).values(name="Bob Zyx", email="zyx@example.org")
    in_transaction(engine, lambda c: c.execute(marked))
    with Browser(address) as browser:
        for typed in ("zyx@example.org", " ZYX@example.org\t", "zyx@example.org\u00a0\r\n"):
            assert browser.sign_in(typed, "a guess").status_code == 401
        signed = in_transaction(engine, lambda c: sign_in(c, bob, 1))
        browser.cookies.set("podium_session", signed.secret)
        made = {"csrf": signed.csrf, "name": "Zyx's laptop", "days": "30"}
        assert browser.post("/tokens", data=made).status_code == 200
    file = Path(database.removeprefix("sqlite:///"))
    assert b"zyx" in content_of(file).lower()
    gone = api(ann).post(f"/api/v1/accounts/{bob}/anonymise", json={"email": "zyx@example.org"})
    assert gone.status_code == 204
    assert b"zyx" not in content_of(file).lower()
    back_up(engine, Settings(database=database), tmp_path / "backup.zip")
    assert b"zyx" not in (tmp_path / "backup.zip").read_bytes().lower()


def content_of(file):
    """The bytes of the database once its log is in it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.read_bytes()


@pytest.mark.parametrize(
    "wrong",
    ["=?utf-8?q?eve=40evil.example=2c?=ann@example.org", "a>b@example.org", "a,b@example.org",
     "<a@example.org>", "a@example.org,b", "a;b@example.org", 'a"b@example.org', "a(b)@example.org",
     "a:b@example.org", "a\\b@example.org", "a@exa[mple].org"],
)  # fmt: skip
def test_addresses_that_mail_programs_read_as_more_are_refused(join, wrong):
    assert join(wrong).status_code == 422


def test_usual_addresses_are_accepted(join):
    for each in ("o'brien+judge@mail.example.org", "a=b@example.org", "jürgen@exämple.org"):
        assert join(each).status_code == 303


@pytest.fixture
def join(engine, api, address):
    """Makes an account by an invitation."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])

    def send(email):
        made = api(ann).post(f"/api/v1/projects/{project}/invitations", json={}).json()
        path = made["link"].removeprefix(address)
        with Browser(address) as browser:
            form = re.search(r'name="form" value="([^"]+)"', browser.get(path).text)[1]
            values = {"email": email, "name": "Eve", "password": PASSWORD, "form": form}
            return browser.post(path, data=values)

    return send
