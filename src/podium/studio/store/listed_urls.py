"""URLs that the server may call: those that begin as an entry of its settings does."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

_PORTS = {"http": 80, "https": 443}


def listed_entry(url: str, listed: Sequence[str]) -> str | None:
    """The entry that a URL belongs to, by exact scheme, host and port and the start of its path.

    Example:
        >>> listed_entry("http://search:9200/shop/_search", ["http://search:9200/"])
        'http://search:9200/'
        >>> listed_entry("http://search:9200@elsewhere/shop", ["http://search:9200/"])
    """
    requested = _parts(url)
    for entry in listed:
        known = _parts(entry)
        if requested and known and requested[:3] == known[:3]:
            begin = known[3].rstrip("/") + "/"
            is_below = (requested[3].rstrip("/") + "/").startswith(begin)
            if is_below and "@" not in urlsplit(url).netloc:
                return entry
    return None


def _parts(url: str) -> tuple[str, str, int, str] | None:
    """Scheme, host, port and path, or None if a URL is odd in any way."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    path = unquote(parts.path)
    odd = "\\" in url or ".." in path or "%" in path or not url.isprintable() or " " in url
    if odd or parts.scheme not in _PORTS or not parts.hostname or parts.fragment:
        return None
    return parts.scheme, parts.hostname.lower(), port or _PORTS[parts.scheme], parts.path
