"""What administrators do with accounts, and what everyone does with their own."""

from __future__ import annotations

import re
import time

import pytest
from sqlalchemy import func, select, update

from podium.studio.accounts.administration import (
    change_password,
    end_access_of,
    reset_password,
    set_admin,
)
from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.mail import mail_invitation, request_reset
from podium.studio.accounts.service import add_user, hash_password, new_api_token
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import (
    AuditRecord,
    LogEntry,
    Membership,
    PasswordReset,
    SignInFailure,
    User,
)
from podium.studio.translations import language as language_named
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges
from tests.studio.server import serving

DATABASES = BOTH

ANN, BOB = "ann@example.org", "bob@example.org"


@pytest.fixture
def people(engine):
    def work(connection):
        return [
            add_user(connection, ANN, "Ann", PASSWORD, admin=True, verified=True),
            add_user(connection, BOB, "Bob", PASSWORD),
        ]

    return in_transaction(engine, work)


@pytest.fixture
def address(database):
    with serving(Settings(database=database)) as found:
        yield found


def test_accounts_are_listed_and_changed_by_administrators_only(engine, address, people):
    ann, bob = people
    with program(engine, address, ann) as admin, program(engine, address, bob) as other:
        path = "/api/v1/accounts"
        for method, where in (
            ("GET", path), ("PATCH", f"{path}/1"), ("POST", f"{path}/1/password"),
            ("DELETE", f"{path}/1/access"), ("POST", f"{path}/1/anonymise"),
            ("GET", "/api/v1/audit"),
        ):  # fmt: skip
            body = {} if method in ("PATCH", "POST") else None
            if where.endswith("anonymise"):
                body = {"email": ANN}
            assert other.request(method, where, json=body).status_code == 403
        listed = admin.get(path).json()
        assert [(each["email"], each["is_admin"], each["email_verified"]) for each in listed] == [
            (ANN, True, True), (BOB, False, False),
        ]  # fmt: skip
        assert [each["user"] for each in admin.get(path, params={"search": "BO"}).json()] == [bob]
        assert [each["user"] for each in admin.get(path, params={"after": ann}).json()] == [bob]
        assert other.get("/api/v1/projects").status_code == 200
        assert admin.patch(f"{path}/{bob}", json={"disabled": True}).status_code == 204
        assert other.get("/api/v1/projects").status_code == 401  # the token ended
        with Browser(address) as browser:
            assert browser.sign_in(BOB).status_code == 401
            assert admin.patch(f"{path}/{bob}", json={"disabled": False}).status_code == 204
            assert browser.sign_in(BOB).status_code == 303
            assert admin.delete(f"{path}/{bob}/access").status_code == 204
            assert browser.get("/").headers["location"].startswith("/sign-in")
            with Browser(address) as root:
                root.sign_in(ANN)
                headers = {"x-csrf-token": root.csrf()}
                word = root.post(f"{path}/{bob}/password", headers=headers).json()["password"]
                assert browser.sign_in(BOB).status_code == 401
                assert browser.sign_in(BOB, word).status_code == 303
                for change in ({"disabled": True}, {"is_admin": False}):
                    refused = root.patch(f"{path}/{ann}", json=change, headers=headers)
                    assert refused.status_code == 409  # the last administrator
                for is_admin in (True, False):
                    change = {"is_admin": is_admin}
                    changed = root.patch(f"{path}/{bob}", json=change, headers=headers)
                    assert changed.status_code == 204
        # A token that could would outlive its expiry.
        for user in (ann, bob):
            for own in (f"{path}/{user}/password", f"/accounts/{user}/password"):
                assert admin.post(own).status_code == 403
            assert admin.patch(f"{path}/{user}", json={"is_admin": True}).status_code == 403
        in_transaction(engine, lambda c: set_admin(c, ann, bob, admin=True))
        for user in (ann, bob):
            for change in ({"disabled": True}, {"disabled": False}, {"is_admin": False}):
                assert admin.patch(f"{path}/{user}", json=change).status_code == 403
        in_transaction(engine, lambda c: set_admin(c, bob, ann, admin=False))
        assert admin.get(path).status_code == 403
    actions = reading(engine, lambda c: c.scalars(select(AuditRecord.action)).all())
    for action in ("disabled an account", "enabled an account", "reset a password",
                   "ended sessions and API tokens", "appointed an administrator"):  # fmt: skip
        assert action in actions


def test_administrators_see_all_projects(engine, address, people):
    ann, bob = people
    project = make_project(engine, [bob])
    with program(engine, address, ann) as admin:
        assert [each["id"] for each in admin.get("/api/v1/projects").json()] == [project]
        assert admin.get(f"/api/v1/projects/{project}").json()["role"] == "owner"
        assert admin.get(f"/api/v1/projects/{project}/members").status_code == 200
        assert admin.get(f"/api/v1/projects/{project + 1}").status_code == 404
    with Browser(address) as browser:
        browser.sign_in(ANN)
        assert f"/projects/{project}" in browser.get("/").text
    in_transaction(engine, lambda c: add_user(c, "cat@example.org", "Cat", PASSWORD))
    with Browser(address) as browser:
        browser.sign_in("cat@example.org")
        assert browser.get(f"/projects/{project}").status_code == 404
        assert f"/projects/{project}" not in browser.get("/").text


def test_who_is_anonymised_is_a_number_in_the_log(engine, address, people):
    ann, bob = people
    project = make_project(engine, [ann, bob])
    service = Judges(engine)
    given = service.next(row_of(engine, project), bob, "t")
    service.answer(row_of(engine, project), bob, given.token, "left", seconds=1, tab="t")
    owner = Member(Person(ann, "Ann", ANN, True), Role.OWNER, row_of(engine, project))
    language = language_named("en")
    in_transaction(engine, lambda c: mail_invitation(c, owner, BOB, "https://join", language))
    with Browser(address) as browser, program(engine, address, ann) as admin:
        browser.sign_in(BOB, "a wrong password")
        browser.sign_in(BOB.title(), "a wrong password")
        browser.sign_in(BOB)
        path = f"/api/v1/accounts/{bob}/anonymise"
        assert admin.post(path, json={"email": ANN}).status_code == 409
        assert admin.post(path, json={"email": BOB}).status_code == 204
        assert browser.get("/").headers["location"].startswith("/sign-in")
        assert browser.sign_in(BOB).status_code == 401
        pages = admin.get("/api/v1/audit").text + admin.get("/api/v1/accounts").text
        log = admin.get(f"/api/v1/projects/{project}/audit").text
    # The sign-in after that failed by a name that nobody has any more.
    assert pages.count(BOB) == 1
    assert "Bob" not in pages + log
    assert BOB not in log
    assert "sent an invitation" in log

    def left(connection):
        entry = connection.scalar(select(LogEntry.user_id))
        row = connection.execute(select(User.__table__).where(User.id == bob)).one()
        members = connection.scalars(select(Membership.user_id)).all()
        return entry, (row.email, row.name, row.password, row.disabled), members

    assert reading(engine, left) == (
        bob, (f"removed-{bob}@invalid", f"Person {bob}", None, True), [ann],
    )  # fmt: skip


def test_one_changes_ones_own_password(engine, address, people):
    token = in_transaction(engine, lambda c: new_api_token(c, people[1], "t", 1))
    with Browser(address) as browser, Browser(address) as elsewhere:
        browser.sign_in(BOB)
        elsewhere.sign_in(BOB)
        new = "another good password"
        wrong = browser.submit("/account/password", {"old": "nonsense", "new": new})
        assert (wrong.status_code, "old password is wrong" in wrong.text) == (403, True)
        short = browser.submit("/account/password", {"old": PASSWORD, "new": "short"})
        assert (short.status_code, "10 characters" in short.text) == (422, True)
        done = browser.submit("/account/password", {"old": PASSWORD, "new": new})
        assert done.headers["location"] == "/sign-in"
        assert elsewhere.get("/").headers["location"].startswith("/sign-in")
        headers = {"authorization": f"Bearer {token}"}
        assert browser.get("/api/v1/projects", headers=headers).status_code == 401
        assert browser.sign_in(BOB).status_code == 401
        assert browser.sign_in(BOB, new).status_code == 303
        for guess in ("first guess", "second guess", "third", "fourth", "fifth"):
            tried = browser.submit("/account/password", {"old": guess, "new": new})
            assert tried.status_code == 403
        # The wait has begun; it is made longer, for machines that are slower than it is.
        waiting = update(SignInFailure).where(SignInFailure.locked_until > 0)
        in_transaction(engine, lambda c: c.execute(waiting.values(locked_until=time.time() + 60)))
        tried = browser.submit("/account/password", {"old": new, "new": PASSWORD})
        assert tried.status_code == 429


def test_a_search_is_for_the_letters_as_they_are(engine, address, people):
    ann, _ = people
    wanted = in_transaction(engine, lambda c: add_user(c, "o_z@example.org", "Özil", None))
    with program(engine, address, ann) as admin:
        for search, found in (("Özil", [wanted]), ("o_z", [wanted]), ("O_Z", [wanted]), ("n_", [])):
            rows = admin.get("/api/v1/accounts", params={"search": search}).json()
            assert [row["user"] for row in rows] == found


def test_a_link_for_a_new_password_ends_with_all_other_access(engine, people):
    ann, bob = people

    def work(connection):
        for end in (
            lambda: end_access_of(connection, ann, bob),
            lambda: reset_password(connection, ann, bob),
            lambda: change_password(connection, bob, PASSWORD, "another password"),
        ):
            connection.execute(
                update(User).where(User.id == bob).values(password=hash_password(PASSWORD))
            )
            request_reset(connection, BOB, "http://x", language_named("en"))
            count = select(func.count()).select_from(PasswordReset)
            assert connection.scalar(count) == 1
            end()
            assert connection.scalar(count) == 0

    in_transaction(engine, work)


def test_the_page_of_accounts(address, people):
    ann, bob = people
    with Browser(address) as browser:
        browser.sign_in(ANN)
        page = browser.get("/accounts").text
        assert "not verified" in page
        assert (
            browser.submit(f"/accounts/{bob}", {"disabled": "true"}).headers["location"]
            == "/accounts"
        )
        assert "disabled" in browser.get("/accounts").text
        assert browser.submit(f"/accounts/{bob}", {"disabled": "false"}).status_code == 303
        shown = browser.submit(f"/accounts/{bob}/password").text
        assert 'class="secret"' in shown
        assert browser.submit(f"/accounts/{ann}", {"is_admin": "false"}).status_code == 409
        assert browser.submit(f"/accounts/{bob}/nonsense").status_code == 404
        assert browser.submit(f"/accounts/{bob}/anonymise", {"email": "x"}).status_code == 409
        assert browser.submit(f"/accounts/{bob}/anonymise", {"email": BOB}).status_code == 303
        assert f"Person {bob}" in browser.get("/accounts?search=person").text
        assert "anonymised an account" in browser.get("/audit").text
    with Browser(address) as browser:
        assert browser.get("/accounts").headers["location"].startswith("/sign-in")


def test_settings_are_audited_with_what_they_were(engine, address, people):
    project = make_project(engine, [people[0]], queries=0)
    with program(engine, address, people[0]) as client:
        client.patch(f"/api/v1/projects/{project}", json={"k": 7, "guidelines": "x" * 500})
        entry = client.get(f"/api/v1/projects/{project}/audit").json()[0]
    assert entry["details"] == {"guidelines": ["", "x" * 100 + "…"], "k": [3, 7]}


def test_the_server_page_hides_keys_and_accounts_are_created_in_a_browser(database, tmp_path):
    settings = Settings(
        database=database,
        exports=tmp_path,
        models=["https://:sk-secret@api.example.org/v1"],
        smtp="smtp://user:pass@127.0.0.1:9",
        mail_from="studio@example.org",
        public_url="http://127.0.0.1",
    )
    engine = connect(settings)
    in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD, admin=True))
    with serving(settings) as address, Browser(address) as browser:
        browser.sign_in("ann@example.org")
        page = browser.get("/server").text
        assert "https://api.example.org/v1" in page
        assert "smtp://127.0.0.1:9" in page
        assert "secret" not in page
        assert "user:pass" not in page
        refused = browser.submit("/server/mail")  # nobody listens there
        assert refused.status_code == 502
        assert "ConnectionRefusedError" in refused.text
        made = browser.submit("/accounts", {"name": "Bob", "email": "Bob@example.org"})
        password = re.search(r'id="password"[^>]*>([^<]+)<', made.text)[1]
        again = browser.submit("/accounts", {"name": "Bob", "email": "bob@example.org"})
        assert again.status_code == 409
        assert browser.submit("/account/name", {"name": "  Ann  Archer "}).status_code == 303
        assert browser.submit("/account/name", {"name": " "}).status_code == 422
        assert "Ann Archer" in browser.get("/").text
        assert browser.submit("/account/theme", {"theme": "dark"}).status_code == 303
        assert 'data-theme="dark"' in browser.get("/").text
        with Browser(address) as other:
            assert other.sign_in("bob@example.org", password).status_code == 303
            assert other.get("/server").status_code == 403
    engine.dispose()
