"""The endpoints of language models that the server may call, and their keys.

A server that calls what its users name could be made to call anything it can reach. So a manager
chooses among the endpoints that the server's settings list; the key stands there too, where the
password of a URL does, and nobody is shown it.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit, urlunsplit

from podium.studio.errors import RefusedError


def endpoint_choices(listed: Sequence[str]) -> list[str]:
    """What managers may choose among: the endpoints without their keys.

    Example:
        >>> endpoint_choices(["https://:secret@api.example.org/v1", "http://localhost:11434/v1"])
        ['https://api.example.org/v1', 'http://localhost:11434/v1']
    """
    return [_without_key(url) for url in listed]


def endpoint_key(chosen: str, listed: Sequence[str]) -> str:
    """The key of an endpoint, empty if it needs none; refused if it is not listed.

    Example:
        >>> endpoint_key("https://api.example.org/v1", ["https://:secret@api.example.org/v1"])
        'secret'
    """
    for url in listed:
        if _without_key(url) == chosen:
            parts = urlsplit(url)
            return unquote(parts.password or parts.username or "")
    raise RefusedError(
        422,
        "This server may not call that endpoint. Its administrator lists the allowed ones in "
        "PODIUM_STUDIO_MODELS.",
    )


def _without_key(url: str) -> str:
    parts = urlsplit(url.strip())
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
