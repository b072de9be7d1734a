"""Signing in by a real OpenID provider."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select, update

from podium.studio.accounts.service import add_user, invite, new_api_token
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import User
from tests.ports import free_port
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser
from tests.studio.server import serving

ROOT = Path(__file__).parents[2]


def node() -> str:
    found = shutil.which("node")
    if found is None or not (ROOT / "node_modules" / "oidc-provider").is_dir():
        if os.environ.get("CI"):
            pytest.fail("node or oidc-provider is missing: npm ci installs it")
        pytest.skip("needs Node.js and oidc-provider: npm ci")
    return found


@contextmanager
def provider(port: int, callback: str):
    """A provider in a process of its own."""
    script = Path(__file__).with_name("provider.mjs")
    with subprocess.Popen(
        [node(), script, str(port), "studio", "a secret of the tests", callback],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        for line in process.stdout:
            if line.strip() == "ready":
                break
        yield
        process.kill()


@pytest.fixture
def make_server(database):
    @contextmanager
    def make(**settings):
        node()
        port, own = free_port(), free_port()
        trusting = Settings(
            database=database,
            public_url=f"http://127.0.0.1:{own}",
            oidc_issuer=f"http://127.0.0.1:{port}",
            oidc_client_id="studio",
            oidc_client_secret="a secret of the tests",
            **settings,
        )
        with (
            serving(trusting, own) as address,
            provider(port, f"{address}/sign-in/oidc/callback"),
        ):
            yield address

    return make


def at_provider(browser: httpx2.Client, answer: httpx2.Response, name: str) -> httpx2.Response:
    """Go through the provider's pages, up to where it sends the browser back to us."""
    for _ in range(20):
        if answer.is_redirect:
            target = answer.next_request.url
            if target.path == "/sign-in/oidc/callback":
                return answer
            answer = browser.get(target)
        else:
            action = re.search(r'action="([^"]+)"', answer.text).group(1)
            prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text).group(1)
            answer = browser.post(
                answer.url.join(action), data={"prompt": prompt, "login": name, "password": "x"}
            )
    raise AssertionError("the provider goes round in circles")


def sign_in(address: str, name: str, to: str = "/") -> tuple[Browser, httpx2.Response]:
    browser = Browser(address)
    left = browser.get("/sign-in/oidc", params={"to": to})
    assert left.status_code == 303, left.text
    back = at_provider(browser, left, name)
    return browser, browser.get(back.next_request.url)


def subject_of(engine, email):
    return reading(engine, lambda c: c.scalar(select(User.subject).where(User.email == email)))


def test_an_account_is_found_by_its_verified_address_and_then_by_its_subject(engine, make_server):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", None))
    project = make_project(engine, [ann])
    with make_server() as address:
        assert "Sign in with your organisation" in httpx2.get(f"{address}/sign-in", timeout=60).text
        browser, answer = sign_in(address, "ann", f"/projects/{project}")
        assert answer.headers["location"] == f"/projects/{project}"
        assert "Ann" in browser.get("/").text
        browser.close()
        assert subject_of(engine, "ann@example.org").endswith("#ann")
        in_transaction(engine, lambda c: c.execute(update(User).values(email="new@example.org")))
        browser, answer = sign_in(address, "ann", "//elsewhere/")
        assert answer.headers["location"] == "/"
        browser.close()
        # Another person at the provider who has got the address does not get the account.
        in_transaction(engine, lambda c: c.execute(update(User).values(email="ann@example.org")))
        browser, answer = sign_in(address, "second-ann")
        assert answer.status_code == 403
        browser.close()
        in_transaction(engine, lambda c: c.execute(update(User).values(disabled=True)))
        browser, answer = sign_in(address, "ann")
        assert answer.status_code == 403
        browser.close()


def test_who_took_the_address_first_does_not_keep_a_way_in(engine, make_server):
    """Anyone can register anyone's address by an invitation; the provider knows whose it is."""
    thief = in_transaction(
        engine, lambda c: add_user(c, "ann@example.org", "Not Ann", "password of the thief")
    )
    token = in_transaction(engine, lambda c: new_api_token(c, thief, "kept", 30))
    with make_server() as address, Browser(address) as stolen:
        stolen.sign_in("ann@example.org", "password of the thief")
        assert "Not Ann" in stolen.get("/").text
        headers = {"authorization": f"Bearer {token}"}
        assert (
            httpx2.get(f"{address}/api/v1/projects", headers=headers, timeout=60).status_code == 200
        )
        browser, _ = sign_in(address, "ann")
        assert "Not Ann" in browser.get("/").text  # the account is hers now
        assert stolen.get("/").headers["location"].startswith("/sign-in")
        assert (
            httpx2.get(f"{address}/api/v1/projects", headers=headers, timeout=60).status_code == 401
        )
        assert stolen.sign_in("ann@example.org", "password of the thief").status_code == 401
        browser.close()
    row = reading(
        engine,
        lambda c: c.execute(select(User.password, User.email_verified)).one(),
    )
    assert tuple(row) == (None, True)


def test_strangers_get_no_account_unless_they_were_invited(engine, make_server):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    secret = in_transaction(engine, lambda c: invite(c, project, Role.ASSESSOR))
    with make_server() as address:
        for name, to in (
            ("bob", "/"),
            ("bob", "/join/nonsense"),
            ("unverified-bob", "/join/" + secret),
        ):
            browser, answer = sign_in(address, name, to)
            assert answer.status_code == 403
            browser.close()
        browser, answer = sign_in(address, "bob", f"/join/{secret}")
        assert answer.headers["location"] == f"/join/{secret}"
        joined = browser.post(f"/join/{secret}", data={"csrf": browser.csrf(f"/join/{secret}")})
        assert joined.headers["location"] == f"/projects/{project}"
        browser.close()


def test_everyone_gets_an_account_where_that_is_set(make_server):
    with make_server(oidc_creates_accounts=True) as address:
        browser, answer = sign_in(address, "cat")
        assert answer.status_code == 303
        assert "Name of cat" in browser.get("/").text
        browser.close()


def test_what_another_browser_began_is_refused(engine, make_server):
    in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", None))
    with make_server() as address, Browser(address) as browser, Browser(address) as other:
        back = at_provider(browser, browser.get("/sign-in/oidc"), "ann")
        assert other.get(back.next_request.url).status_code == 403
        other.get("/sign-in/oidc")  # a state of its own does not help
        assert other.get(back.next_request.url).status_code == 403
        assert browser.get("/sign-in/oidc/callback?code=x").status_code == 403
        browser.get("/sign-in/oidc")
        forged = {**dict(back.next_request.url.params), "code": "forged"}
        assert browser.get("/sign-in/oidc/callback", params=forged).status_code == 403
        browser.cookies.set("podium_oidc", "nonsense")
        assert browser.get(back.next_request.url).status_code == 403


def test_a_code_that_the_provider_does_not_know(make_server):
    with make_server() as address, Browser(address) as browser:
        left = browser.get("/sign-in/oidc")
        state = left.next_request.url.params["state"]
        answer = browser.get("/sign-in/oidc/callback", params={"code": "forged", "state": state})
        assert answer.status_code == 502


@pytest.mark.usefixtures("engine")
def test_a_server_without_a_provider(database):
    with serving(Settings(database=database)) as address, Browser(address) as browser:
        assert browser.get("/sign-in/oidc").status_code == 404
    away = Settings(
        database=database, oidc_issuer="http://127.0.0.1:1", oidc_client_id="x",
        public_url="http://judge.example.org",
    )  # fmt: skip
    with serving(away) as address, Browser(address) as browser:
        assert browser.get("/sign-in/oidc").status_code == 502
