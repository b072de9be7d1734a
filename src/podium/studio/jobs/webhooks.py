"""Webhooks: what other servers are told, signed.

A server that calls what its users name could be made to call anything it can reach. So only URLs
that begin as the server's settings list are called, redirects are not followed, and what is
answered is not read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time

import httpx2

from podium.studio.json_types import JsonObject
from podium.studio.settings import Settings
from podium.studio.store.listed_urls import listed_entry

_SECONDS = 10.0


def signature(secret: str, at: int, body: bytes) -> str:
    """The signature of a body: HMAC-SHA256 over the time, a dot and the body.

    Example:
        >>> signature("secret", 0, b"{}")[:16]
        '4bbe8d39de1ffea4'
    """
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def send_webhook(
    settings: Settings, url: str, secret: str, number: int, content: JsonObject
) -> str | None:
    """Send an event to a URL; returns the problem, or None if it was taken."""
    if listed_entry(url, settings.webhooks) is None:
        return "the server's settings do not list this URL any more"
    body = json.dumps(content).encode()
    at = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "X-Podium-Event": str(content.get("event", "")),
        "X-Podium-Delivery": str(number),
        "X-Podium-Signature": f"t={at},v1={signature(secret, at, body)}",
    }
    try:
        # Without the environment's proxies and .netrc: the address is called, and nothing else.
        with (
            httpx2.Client(timeout=_SECONDS, trust_env=False, follow_redirects=False) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            status = response.status_code
    except httpx2.HTTPError as error:
        return f"no answer: {type(error).__name__}"
    return None if 200 <= status < 300 else f"answered {status}"
