"""Cookies, forms of other sites, sessions that were planted, and guessing passwords."""

from __future__ import annotations

import re
import time

import httpx2
import pytest
from argon2 import PasswordHasher, extract_parameters
from sqlalchemy import select, update

from podium.studio.accounts.service import add_user, check_password
from podium.studio.accounts.throttling import count_attempt, take_back
from podium.studio.errors import RefusedError
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import AuthSession, SignInFailure, User
from podium.studio.web.access import COOKIE
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser
from tests.studio.server import serving

DATABASES = BOTH

EMAIL = "ann@example.org"


@pytest.fixture
def ann(engine):
    return in_transaction(engine, lambda c: add_user(c, EMAIL, "Ann", PASSWORD))


@pytest.fixture
def browser(engine, ann, database):  # noqa: ARG001 (they make the tables and the account)
    with (
        serving(Settings(database=database)) as address,
        Browser(address) as client,
    ):
        yield client


def csrf_of(browser):
    page = browser.get("/").text
    return re.search(r'name="csrf" value="([^"]+)"', page).group(1)


def test_a_session_that_was_planted_is_not_taken_over(engine, browser):
    browser.cookies.set(COOKIE, "planted")
    browser.sign_in(EMAIL)
    keys = [cookie.value for cookie in browser.cookies.jar if cookie.name == COOKIE]
    assert all(len(key) > 40 for key in keys if key != "planted")
    assert len(reading(engine, lambda c: c.scalars(select(AuthSession.key)).all())) == 1


def test_every_sign_in_has_a_session_of_its_own_and_signing_out_ends_it(browser):
    browser.sign_in(EMAIL)
    first = browser.cookies[COOKIE]
    csrf = csrf_of(browser)
    browser.post("/sign-out", data={"csrf": csrf})
    browser.cookies.clear()
    browser.sign_in(EMAIL)
    assert browser.cookies[COOKIE] != first
    old = httpx2.get(browser.base_url.join("/"), cookies={COOKIE: first}, timeout=60)
    assert old.status_code in (303, 401)


def test_forms_of_other_sites_change_nothing(engine, browser, ann):
    project = make_project(engine, [ann])
    browser.sign_in(EMAIL)
    csrf = csrf_of(browser)
    path = f"/projects/{project}/settings"
    assert browser.post(path).status_code == 403
    assert browser.post(path, data={"csrf": "wrong"}).status_code == 403
    assert browser.post(path, data={"csrf": csrf[:-1]}).status_code == 403
    assert browser.post(path, data={"csrf": csrf}).status_code == 303
    api = f"/api/v1/projects/{project}/next"
    assert browser.post(api, json={"tab": "t"}).status_code == 403
    assert browser.post(api, json={"tab": "t"}, headers={"x-csrf-token": csrf}).is_success


def test_forms_of_other_sites_do_not_change_an_account(engine, browser):
    browser.sign_in(EMAIL)
    csrf = csrf_of(browser)
    assert browser.post("/account/language", data={"language": "de"}).status_code == 403
    change = {"language": "de"}
    assert browser.put("/api/v1/me/language", json=change).status_code == 403
    assert reading(engine, lambda c: c.scalar(select(User.language))) == ""
    sent = browser.put("/api/v1/me/language", json=change, headers={"x-csrf-token": csrf})
    assert sent.status_code == 204
    assert reading(engine, lambda c: c.scalar(select(User.language))) == "de"


def test_forms_with_files_tell_in_the_body_that_they_are_ours(engine, browser, ann):
    project = make_project(engine, [ann], queries=0)
    browser.sign_in(EMAIL)
    form = {"source": "candidates"}
    files = {"candidates": ("c.jsonl", b"{}")}
    assert browser.post(f"/projects/{project}/import", data=form, files=files).status_code == 403
    form["csrf"] = csrf_of(browser)
    assert browser.post(f"/projects/{project}/import", data=form, files=files).status_code == 303
    for number in ("²", "-1", "1e1", "9" * 40, "0"):  # the only project is number 1
        answer = browser.post(f"/projects/{number}/import", data=form, files=files)
        assert answer.status_code == 404


def test_assessors_are_told_who_may_import(engine, browser, ann):
    (owner,) = make_people(engine, 1)
    project = make_project(engine, [owner, ann])
    browser.sign_in(EMAIL)
    answer = browser.post(
        f"/api/v1/projects/{project}/imports", headers={"x-csrf-token": csrf_of(browser)}
    )
    assert answer.status_code == 403
    assert answer.json()["detail"] == "Only managers of the project may do this."


def test_signing_in_needs_our_own_form(browser):
    answer = browser.post("/sign-in", data={"email": EMAIL, "password": PASSWORD})
    assert answer.status_code == 403
    assert COOKIE not in browser.cookies


@pytest.mark.usefixtures("engine", "ann")
def test_cookies_are_closed_to_scripts_and_other_sites(database):
    settings = Settings(database=database, secure_cookies=True)
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        page = client.get("/sign-in", headers={"accept": "text/html"})
        form = re.search(r'name="form" value="([^"]+)"', page.text).group(1)
        cookie = page.headers["set-cookie"].split(";")[0]
        answer = client.post(
            "/sign-in",
            data={"email": EMAIL, "password": PASSWORD, "form": form},
            headers={"cookie": cookie},
        )
    found = [value for value in answer.headers.get_list("set-cookie") if COOKIE in value]
    assert len(found) == 1
    for word in ("HttpOnly", "SameSite=lax", "Secure"):
        assert word in found[0]


def test_sessions_end(engine, browser):
    browser.sign_in(EMAIL)
    assert browser.get("/").status_code == 200
    in_transaction(engine, lambda c: c.execute(update(AuthSession).values(expires_at=1.0)))
    assert browser.get("/").status_code == 303


def test_nobody_is_sent_elsewhere_after_signing_in(browser):
    for to in ("https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example", "x"):
        page = browser.get("/sign-in", params={"to": to})
        form = re.search(r'name="form" value="([^"]+)"', page.text).group(1)
        data = {"email": EMAIL, "password": PASSWORD, "form": form, "to": to}
        answer = browser.post("/sign-in", data=data)
        assert answer.headers["location"] == "/"
        browser.cookies.clear()


def test_guessing_gets_slower_and_ends_when_the_password_is_right(engine, ann):
    def attempt(password, address="10.0.0.1"):
        in_transaction(engine, lambda c: count_attempt(c, EMAIL, address))
        user = in_transaction(engine, lambda c: check_password(c, EMAIL, password))
        if user is not None:
            in_transaction(engine, lambda c: take_back(c, user, EMAIL, address))
        return user

    def failures():
        rows = reading(
            engine,
            lambda c: c.execute(select(SignInFailure.__table__)).all(),
        )
        return {row.key: row for row in rows}

    for _ in range(5):
        assert attempt("wrong password") is None
    assert failures()[f"pair:{EMAIL}|10.0.0.1"].locked_until > 0
    later = time.time() + 60
    waiting = update(SignInFailure).where(SignInFailure.locked_until > 0)
    first_wait = failures()[f"pair:{EMAIL}|10.0.0.1"]
    in_transaction(engine, lambda c: c.execute(waiting.values(locked_until=later)))
    with pytest.raises(RefusedError) as refused:
        attempt(PASSWORD)
    assert refused.value.status == 429
    in_transaction(
        engine, lambda c: c.execute(waiting.values(locked_until=first_wait.locked_until))
    )
    pair = f"pair:{EMAIL}|10.0.0.1"
    for wait in (1, 2, 4, 8):
        row = failures()[pair]
        assert row.locked_until - row.last_at == pytest.approx(wait, abs=1e-3)
        in_transaction(engine, lambda c: c.execute(update(SignInFailure).values(locked_until=0.0)))
        assert attempt("wrong password") is None
    in_transaction(engine, lambda c: c.execute(update(SignInFailure).values(locked_until=0.0)))
    assert attempt(PASSWORD) == ann
    left = {key: row.count for key, row in failures().items()}
    assert left == {"address:10.0.0.1": 9, f"account:{EMAIL}": 9}
    # An hour without a failure, and counting starts over.
    hours_ago = time.time() - 3601
    in_transaction(engine, lambda c: c.execute(update(SignInFailure).values(last_at=hours_ago)))
    assert attempt("wrong password") is None
    assert failures()["address:10.0.0.1"].count == 1


@pytest.mark.usefixtures("ann")
def test_guessing_costs_as_much_for_accounts_that_are_not_there(engine, monkeypatch):
    """The same work, by which alone the time could tell: one hash with the same parameters."""
    checked = []
    verify = PasswordHasher.verify

    def counted(self, known, password):
        checked.append((extract_parameters(known), password))
        return verify(self, known, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    for email in (EMAIL, "nobody@example.org"):
        in_transaction(engine, lambda c, email=email: check_password(c, email, "wrong one"))
    assert len(checked) == 2
    assert checked[0] == checked[1]
