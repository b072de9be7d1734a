"""The running engine of an export's target."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.errors import ArgumentError
from podium.export.live import LiveEngine
from podium.export.live.elasticsearch import ElasticsearchEngine
from podium.export.live.opensearch import OpenSearchEngine
from podium.export.live.solr import SolrEngine

_ENGINES: Mapping[str, Callable[[str], LiveEngine]] = {
    "opensearch": OpenSearchEngine,
    "o19s": lambda url: OpenSearchEngine(url, "Elasticsearch with the o19s plugin"),
    "solr": SolrEngine,
    "elasticsearch": ElasticsearchEngine,
}


def connect_engine(target: str, url: str) -> LiveEngine:
    """Return the running engine of a target at an address.

    Raises:
        ArgumentError: If a target has no engine that takes a model by HTTP.

    Example:
        >>> connect_engine("onnx", "http://localhost")
        Traceback (most recent call last):
        podium.errors.ArgumentError: an export to 'onnx' is not put into a running engine. ...
    """
    if target not in _ENGINES:
        raise ArgumentError(
            f"an export to {target!r} is not put into a running engine",
            hint=f"Targets with one: {', '.join(_ENGINES)}.",
        )
    return _ENGINES[target](url)
