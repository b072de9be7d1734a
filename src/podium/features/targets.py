"""Which engine answers at an address."""

from __future__ import annotations

from urllib.parse import urlsplit

from podium.errors import DataError
from podium.export.live.http_client import EngineClient, Retry


def detect_target(url: str, retry: Retry | None = None) -> str:
    """Return ``solr``, ``opensearch`` or ``o19s`` for the address of an index or collection.

    Example:
        >>> detect_target("http://localhost:8983/solr/shop")
        'solr'
    """
    if "/solr/" in urlsplit(url).path:
        return "solr"
    address = url.rstrip("/").rpartition("/")[0]
    with EngineClient(address, "the engine", retry) as client:
        _, answer = client.request("GET", "")
    version = answer.get("version") if isinstance(answer, dict) else None
    if not isinstance(version, dict) or "number" not in version:
        raise DataError(
            "no search engine that logs features answers there",
            hint="Give an address such as http://localhost:9200/shop, or --target.",
        )
    return "opensearch" if version.get("distribution") == "opensearch" else "o19s"
