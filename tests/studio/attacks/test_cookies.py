"""Cookies that neighbours plant, and a Host header that an attacker chooses."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from joserfc.jwk import RSAKey
from pydantic import ValidationError

from podium.studio.accounts import openid
from podium.studio.accounts.service import add_user
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from tests.studio.factories import PASSWORD
from tests.studio.server import serving

ANN = "ann@example.org"
KEYS = json.dumps({"keys": [RSAKey.generate_key(2048).as_dict(private=False)]})


def test_cookies_are_safe_where_there_is_https(engine, database):
    in_transaction(engine, lambda c: add_user(c, ANN, "Ann", PASSWORD))
    settings = Settings(database=database, public_url="https://judge.example.org")
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        page = client.get("/sign-in", headers={"accept": "text/html"})
        assert page.headers["strict-transport-security"] == "max-age=31536000"
        form = re.search(r'name="form" value="([^"]+)"', page.text).group(1)
        name, _, rest = page.headers["set-cookie"].partition("=")
        assert name == "__Host-podium_form"
        cookies = {name: rest.partition(";")[0]}
        data = {"email": ANN, "password": PASSWORD, "form": form}
        answer = client.post("/sign-in", data=data, headers=_sent(cookies))
        made = [each for each in answer.headers.get_list("set-cookie") if "session" in each]
        assert re.fullmatch(
            r"__Host-podium_session=[\w-]{43}; HttpOnly; Max-Age=43200; Path=/; SameSite=lax;"
            r" Secure",
            made[0],
        )
        # A name without the prefix, which a neighbouring host could set, opens nothing.
        secret = made[0].partition("=")[2].partition(";")[0]
        plain = client.get("/", headers=_sent({"podium_session": secret}))
        right = client.get("/", headers=_sent({"__Host-podium_session": secret}))
        assert (plain.status_code, right.status_code) == (401, 200)


def _sent(cookies: dict[str, str]) -> dict[str, str]:
    return {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def test_without_https_cookies_work_too(server):
    page = httpx2.get(f"{server}/sign-in", headers={"accept": "text/html"}, timeout=60)
    assert page.headers["set-cookie"].startswith("podium_form=")
    assert "strict-transport-security" not in page.headers
    assert Settings(public_url="https://x", secure_cookies=False).is_secure is False
    assert Settings(public_url="http://x", secure_cookies=True).is_secure is True


@contextmanager
def provider(hanging: threading.Event):
    """An OpenID provider that describes itself, and hangs when the test asks."""

    class OpenIDProvider(BaseHTTPRequestHandler):
        def do_GET(self):
            hanging.wait(60)
            issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
            content = (
                KEYS if "keys" in self.path else
                f'{{"issuer": "{issuer}", "jwks_uri": "{issuer}/keys", '
                f'"authorization_endpoint": "{issuer}/go", "token_endpoint": "{issuer}/token"}}'
            ).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), OpenIDProvider)
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    hanging.set()
    found.shutdown()
    found.server_close()


def _with_provider(database: str, issuer: str) -> Settings:
    return Settings(
        database=database, oidc_issuer=issuer, oidc_client_id="studio",
        public_url="https://judge.example.org", pool_size=4,
    )  # fmt: skip


@pytest.mark.usefixtures("engine")
def test_the_host_header_does_not_choose_where_people_come_back_to(database):
    answers = threading.Event()
    answers.set()
    with provider(answers) as issuer, serving(_with_provider(database, issuer)) as address:
        left = httpx2.get(f"{address}/sign-in/oidc", headers={"host": "evil.example"}, timeout=60)
        assert left.status_code == 303
        query = httpx2.URL(left.headers["location"]).params
        assert query["redirect_uri"] == "https://judge.example.org/sign-in/oidc/callback"
    with pytest.raises(ValidationError, match="PODIUM_STUDIO_PUBLIC_URL"):
        Settings(oidc_issuer="https://sign-in.example.org")


@pytest.mark.usefixtures("engine")
def test_a_provider_that_hangs_holds_nobody_else_up(database, monkeypatch):
    """More people than there are threads wait for the provider; others are answered."""
    monkeypatch.setattr(openid, "_SECONDS", 240.0)  # nobody gives up before the others' answers
    answers = threading.Event()
    with provider(answers) as issuer, serving(_with_provider(database, issuer)) as address:
        threads = [
            threading.Thread(
                target=lambda: httpx2.get(f"{address}/sign-in/oidc", timeout=60), daemon=True
            )
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for _ in range(5):
            answer = httpx2.get(f"{address}/sign-in", headers={"accept": "text/html"}, timeout=30)
            assert answer.status_code == 200
        answers.set()
        for thread in threads:
            thread.join(60)
