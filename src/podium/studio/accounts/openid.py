"""Sign-in with an OpenID provider: authorization URL and verified identity."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import httpx
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.settings import Settings

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Signatures by a key pair only: with a shared secret anyone who knows it could sign."""
_KEPT_SECONDS = 3600.0
_AGAIN_SECONDS = 30.0
_LEEWAY = 60
_MAX_BYTES = 1 << 20
_SECONDS = 10.0
"""How long an answer of the provider may take."""


@dataclass(frozen=True)
class OpenIDIdentity:
    """Someone's identity as verified by the provider.

    Attributes:
        subject: The issuer and the subject identifier.
        email: Their address, empty unless the provider has verified it.
        name: Their display name.
    """

    subject: str
    email: str
    name: str


class OpenIDProvider:
    """The provider of the settings. What it publishes about itself is asked for now and then."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._about: JsonObject = {}
        self._keys: KeySet | None = None
        self._asked_at = -_KEPT_SECONDS

    def sign_in_address(self, callback: str, state: str, nonce: str, verifier: str) -> str:
        """Where to send a browser."""
        about, _ = self._known()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._settings.oidc_client_id,
                "redirect_uri": callback,
                "scope": "openid email profile",
                "state": state,
                "nonce": nonce,
                "code_challenge": create_s256_code_challenge(verifier),
                "code_challenge_method": "S256",
            }
        )
        address = str(about["authorization_endpoint"])
        return f"{address}{'&' if '?' in address else '?'}{query}"

    def who(self, callback: str, code: str, nonce: str, verifier: str) -> OpenIDIdentity:
        """Who came back with a code."""
        about, _ = self._known()
        answer = self._post(
            str(about["token_endpoint"]),
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": callback,
                "code_verifier": verifier,
            },
            about,
        )
        claims: JsonObject = self._verified(str(answer.get("id_token", "")), nonce, answer)
        if "email" not in claims and "userinfo_endpoint" in about:
            # Where there is an access token, the standard lets providers tell the rest there.
            login = {"authorization": f"Bearer {answer.get('access_token', '')}"}
            more = self._ask("GET", str(about["userinfo_endpoint"]), headers=login)
            if more.get("sub") != claims["sub"]:
                raise _unusable()
            claims = {**more, **claims}
        verified = claims.get("email_verified") in (True, "true")
        email = str(claims.get("email", "")) if verified else ""
        subject = f"{self._settings.oidc_issuer}#{claims['sub']}"
        name = str(claims.get("name") or claims.get("preferred_username") or email or "Somebody")
        if len(subject) > 600:
            raise _unusable()
        return OpenIDIdentity(subject, email, name[:200])

    def _verified(self, token: str, nonce: str, answer: JsonObject) -> JsonObject:
        try:
            decoded = self._decoded(token)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self._settings.oidc_issuer},
                    "aud": {"essential": True, "value": self._settings.oidc_client_id},
                },
                {
                    "nonce": nonce,
                    "client_id": self._settings.oidc_client_id,
                    "access_token": answer.get("access_token"),
                },
            )
            claims.validate(leeway=_LEEWAY)
        except (JoseError, ValueError) as error:
            raise _unusable() from error
        return dict(claims)

    def _decoded(self, token: str) -> jwt.Token:
        _, keys = self._known()
        try:
            return jwt.decode(token, keys, algorithms=_ALGORITHMS)
        except (JoseError, ValueError):
            # The provider may have changed its keys since.
            if time.monotonic() - self._asked_at < _AGAIN_SECONDS:
                raise
            _, keys = self._known(anew=True)
            return jwt.decode(token, keys, algorithms=_ALGORITHMS)

    def _known(self, *, anew: bool = False) -> tuple[JsonObject, KeySet]:
        # The lock is never held while the provider is asked: it may take its time.
        with self._lock:
            fresh = time.monotonic() - self._asked_at < _KEPT_SECONDS
            if self._keys is not None and fresh and not anew:
                return self._about, self._keys
        issuer = self._settings.oidc_issuer
        about = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if about.get("issuer") != issuer:
            raise _unusable()
        keys = KeySet.import_key_set(self._get(str(about["jwks_uri"])))  # type: ignore[arg-type]
        with self._lock:
            self._about, self._keys, self._asked_at = about, keys, time.monotonic()
        return about, keys

    def _get(self, address: str) -> JsonObject:
        return self._ask("GET", address)

    def _post(self, address: str, form: dict[str, str], about: JsonObject) -> JsonObject:
        login = (self._settings.oidc_client_id, self._settings.oidc_client_secret)
        methods = about.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not login[1]:
            return self._ask("POST", address, data={**form, "client_id": login[0]})
        if "client_secret_basic" in methods:
            return self._ask("POST", address, data=form, auth=login)
        secret = {"client_id": login[0], "client_secret": login[1]}
        return self._ask("POST", address, data={**form, **secret})

    def _ask(self, method: str, address: str, **more: Any) -> JsonObject:
        end = time.monotonic() + _SECONDS
        body = bytearray()
        try:
            with (
                httpx.Client(follow_redirects=False, timeout=_SECONDS / 2) as client,
                client.stream(method, address, **more) as answer,
            ):
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES or time.monotonic() > end:
                        raise _unusable()
            content = json.loads(body) if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            raise _unusable() from error
        if not isinstance(content, dict):
            raise _unusable()
        return content


def _unusable() -> RefusedError:
    return RefusedError(502, "Signing in with your organisation failed. Try again.")
