"""ID tokens of an identity provider that lies, and responses that never end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from podium.studio.accounts import openid
from podium.studio.accounts.openid import OpenIDProvider
from podium.studio.errors import RefusedError
from podium.studio.settings import Settings

KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
SECRET = OctKey.import_key("the client's secret, which is not a signature's key")


class Provider:
    """A provider whose token endpoint answers with the token that a test gives it."""

    def __init__(self) -> None:
        self.token: Any = ""
        self.fields: dict[str, Any] = {}
        self.endless = False
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("openid-configuration"):
                    self._send(provider.metadata())
                else:
                    self._send({"keys": [KEY.as_dict(private=False)]})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                if provider.endless:
                    self.send_response(200)
                    self.end_headers()
                    while True:
                        self.wfile.write(b" " * (1 << 16))
                answer = {"access_token": "a", "token_type": "Bearer", "id_token": provider.token}
                self._send(answer | provider.fields)

            def _send(self, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:  # the client has hung up
                    self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"

    def metadata(self) -> dict[str, str]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": "studio", "sub": "ann", "iat": now, "exp": now + 60,
            "nonce": "n", "email": "ann@example.org", "email_verified": True,
        }  # fmt: skip
        return {name: value for name, value in (claims | changes).items() if value is not None}


@contextmanager
def lying_provider() -> Iterator[Provider]:
    provider = Provider()
    threading.Thread(target=provider.server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()


def client_of(provider: Provider) -> OpenIDProvider:
    return OpenIDProvider(
        Settings(
            database="sqlite://",
            public_url="http://127.0.0.1:1",
            oidc_issuer=provider.issuer,
            oidc_client_id="studio",
        )
    )


def signed(claims: dict[str, Any], key: Any = KEY, alg: str = "RS256") -> str:
    return jwt.encode({"alg": alg, "kid": "one"}, claims, key, algorithms=[alg])


def test_a_token_that_is_right_names_its_person():
    with lying_provider() as provider:
        provider.token = signed(provider.claims())
        who = client_of(provider).who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)
        assert (who.subject, who.email) == (f"{provider.issuer}#ann", "ann@example.org")


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"iss": "http://evil.example"},
        {"aud": "another client"},
        {"aud": ["studio", "other"], "azp": "other"},
        {"exp": 1},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": " "},
    ],
)
def test_a_token_with_a_wrong_claim_is_refused(changes):
    with lying_provider() as provider:
        provider.token = signed(provider.claims(**changes))
        with pytest.raises(RefusedError) as refused:
            client_of(provider).who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)
        assert refused.value.status == 502


def test_a_token_that_the_provider_did_not_sign_is_refused():
    with lying_provider() as provider:
        client = client_of(provider)
        none = signed(provider.claims()).split(".")
        for token in (
            signed(provider.claims(), OTHER_KEY),
            signed(provider.claims(), SECRET, "HS256"),
            f"eyJhbGciOiJub25lIn0.{none[1]}.",
            "not a token",
        ):
            provider.token = token
            with pytest.raises(RefusedError):
                client.who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"expires_in": [1]}, True),
        ({"expires_in": 1e308}, False),
        ({"expires_in": "soon"}, True),
        ({"expires_at": {}}, True),
        ({"access_token": [1]}, False),
        ({"id_token": {"alg": "none"}}, True),
        ({"error": [1]}, True),
    ],
)
def test_fields_of_another_type_are_no_server_error(fields, refused):
    with lying_provider() as provider:
        provider.token = signed(provider.claims())
        provider.fields = fields
        expected = pytest.raises(RefusedError, match="failed") if refused else nullcontext()
        with expected:
            client_of(provider).who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("authorization_endpoint", "http://["),
        ("token_endpoint", "\0"),
        ("token_endpoint", "a" * 100_000),
        ("jwks_uri", "\0"),
        ("jwks_uri", {}),
        ("token_endpoint_auth_methods_supported", 1),
    ],
)
def test_a_description_with_odd_fields_is_no_server_error(monkeypatch, field, value):
    """What is said is "failed": leaving for the provider or, at the latest, coming back."""
    with lying_provider() as provider:
        provider.token = signed(provider.claims())
        described = {**provider.metadata(), field: value}
        monkeypatch.setattr(provider, "metadata", lambda: described)
        client = client_of(provider)

        def go_and_come_back():
            client.sign_in_address("http://127.0.0.1:1/cb", "s", "n", "v" * 43)
            client.who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)

        with pytest.raises(RefusedError, match="failed"):
            go_and_come_back()


def test_an_address_that_nobody_verified_is_not_used():
    with lying_provider() as provider:
        provider.token = signed(provider.claims(email_verified=False))
        who = client_of(provider).who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)
        assert who.email == ""


def test_a_response_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(openid, "_MAX_BYTES", 1 << 18)
    with lying_provider() as provider:
        client = client_of(provider)
        client.sign_in_address("http://127.0.0.1:1/cb", "s", "n", "v" * 43)
        provider.endless = True
        with pytest.raises(RefusedError):
            client.who("http://127.0.0.1:1/cb", "code", "n", "v" * 43)
