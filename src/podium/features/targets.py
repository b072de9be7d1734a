"""Which engine answers at the address of an index or collection."""

from __future__ import annotations

from podium.export.live import connect
from podium.export.live.http_client import Retry


def detect_target(url: str, retry: Retry | None = None) -> str:
    """Return ``solr``, ``opensearch``, ``o19s`` or ``elasticsearch`` for an index or collection.

    Example:
        >>> detect_target("http://localhost:8983/solr/shop")
        'solr'
    """
    server = url if connect.is_solr(url) else url.rstrip("/").rpartition("/")[0]
    return connect.detect_target(server, retry)
