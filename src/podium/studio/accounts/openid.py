"""Sign-in with an OpenID provider: authorization URL and verified identity."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from podium.http_answers import LimitedTransport
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
"""How long a response of the provider may take."""
_UNUSABLE = (
    httpx2.HTTPError, httpx2.InvalidURL, OAuthError, JoseError, ValueError, TypeError, KeyError,
    ArithmeticError, AttributeError, RecursionError,
)  # fmt: skip
"""What the libraries raise at answers whose fields are missing or of another type."""


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
    """The provider of the settings; its discovery document and keys are cached for an hour."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._metadata: JsonObject = {}
        self._keys: KeySet | None = None
        self._asked_at = -_KEPT_SECONDS

    def sign_in_address(self, callback: str, state: str, nonce: str, verifier: str) -> str:
        """Where to send a browser."""
        metadata, _ = self._known()
        try:
            with self._client(metadata, callback) as client:
                address, _ = client.create_authorization_url(
                    str(metadata["authorization_endpoint"]),
                    state=state,
                    nonce=nonce,
                    code_verifier=verifier,
                )
        except _UNUSABLE as error:
            raise _unusable() from error
        return str(address)

    def who(self, callback: str, code: str, nonce: str, verifier: str) -> OpenIDIdentity:
        """The identity of someone who came back with a code."""
        metadata, _ = self._known()
        try:
            with self._client(metadata, callback) as client:
                token = client.fetch_token(
                    str(metadata["token_endpoint"]),
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                )
                claims = self._verified(str(token.get("id_token", "")), nonce, token)
                if "email" not in claims and "userinfo_endpoint" in metadata:
                    # The standard lets providers send these claims there instead.
                    userinfo = _json(client.get(str(metadata["userinfo_endpoint"])))
                    if userinfo.get("sub") != claims["sub"]:
                        raise _unusable()
                    claims = {**userinfo, **claims}
        except _UNUSABLE as error:
            raise _unusable() from error
        verified = claims.get("email_verified") in (True, "true")
        email = str(claims.get("email", "")) if verified else ""
        subject = f"{self._settings.oidc_issuer}#{claims['sub']}"
        name = str(claims.get("name") or claims.get("preferred_username") or email or "Somebody")
        # An empty identifier would be that of everyone who has none.
        if not str(claims["sub"]).strip() or len(subject) > 600:
            raise _unusable()
        return OpenIDIdentity(subject, email, name[:200])

    def _client(self, metadata: JsonObject, callback: str) -> OAuth2Client:
        secret = self._settings.oidc_client_secret
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
        return OAuth2Client(
            self._settings.oidc_client_id,
            secret or None,
            token_endpoint_auth_method=method if secret else "none",
            scope="openid email profile",
            redirect_uri=callback,
            code_challenge_method="S256",
            transport=LimitedTransport(_SECONDS, _MAX_BYTES),
        )

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
                return self._metadata, self._keys
        issuer = self._settings.oidc_issuer
        try:
            with httpx2.Client(transport=LimitedTransport(_SECONDS, _MAX_BYTES)) as client:
                metadata = _json(
                    client.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                )
                if metadata.get("issuer") != issuer:
                    raise _unusable()
                keys = KeySet.import_key_set(_json(client.get(str(metadata["jwks_uri"]))))  # type: ignore[arg-type]
        except _UNUSABLE as error:
            raise _unusable() from error
        with self._lock:
            self._metadata, self._keys, self._asked_at = metadata, keys, time.monotonic()
        return metadata, keys


def _json(response: httpx2.Response) -> JsonObject:
    content = response.json() if response.status_code == 200 else None
    if not isinstance(content, dict):
        raise _unusable()
    return content


def _unusable() -> RefusedError:
    return RefusedError(502, "Signing in with your organisation failed. Try again.")
