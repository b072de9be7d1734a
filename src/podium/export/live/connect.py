"""The running engine of an export's target, or at an address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from podium.errors import ArgumentError, DataError
from podium.export.live import DeploymentEngine
from podium.export.live.elasticsearch import ElasticsearchEngine
from podium.export.live.http_client import EngineClient, Retry
from podium.export.live.opensearch import OpenSearchEngine
from podium.export.live.solr import SolrEngine
from podium.export.targets import TARGETS

ENGINES: Mapping[str, Callable[[str], DeploymentEngine]] = {
    "opensearch": OpenSearchEngine,
    "o19s": lambda url: OpenSearchEngine(url, TARGETS["o19s"].title),
    "solr": SolrEngine,
    "elasticsearch": ElasticsearchEngine,
}
"""The engines that take a model by HTTP, by the names of targets."""


def connect_engine(target: str, url: str, *, fuses: bool = False) -> DeploymentEngine:
    """Return the running engine of a target at an address.

    Args:
        target: The target.
        url: The address.
        fuses: Whether a fusion of lists is to be put there.

    Raises:
        ArgumentError: If a target has no engine that takes a model, or a fusion, by HTTP.

    Example:
        >>> connect_engine("onnx", "http://localhost")
        Traceback (most recent call last):
        podium.errors.ArgumentError: an export to 'onnx' is not put into a running engine. ...
    """
    if target not in ENGINES:
        raise ArgumentError(
            f"an export to {target!r} is not put into a running engine",
            hint=f"Targets with one: {', '.join(ENGINES)}.",
        )
    if fuses and target != "opensearch":
        raise ArgumentError(
            f"a fusion for {target!r} is not put into a running engine",
            hint="Send what its file has with each search.",
        )
    return ENGINES[target](url)


def is_solr(url: str) -> bool:
    """Whether an address is that of a core or collection of Solr.

    Example:
        >>> is_solr("http://localhost:8983/solr/shop"), is_solr("http://localhost:9200/shop")
        (True, False)
    """
    return "/solr/" in urlsplit(url).path


def detect_target(url: str, retry: Retry | None = None) -> str:
    """Return the target of exports for the engine at an address, as ``connect_engine`` takes it.

    Raises:
        DataError: If no search engine answers there.

    Example:
        >>> detect_target("http://localhost:8983/solr/shop")
        'solr'
    """
    if is_solr(url):
        return "solr"
    with EngineClient(url, "the engine", retry) as client:
        _, answer = client.request("GET", "")
        version = answer.get("version") if isinstance(answer, dict) else None
        if not isinstance(version, dict) or "number" not in version:
            raise DataError(
                "no search engine that takes models answers there",
                hint="Give an address such as http://localhost:9200 or "
                "http://localhost:8983/solr/COLLECTION.",
            )
        if version.get("distribution") == "opensearch":
            return "opensearch"
        _, stores = client.request("GET", "_ltr", allowed=(400, 404, 405))
    return "o19s" if isinstance(stores, dict) and "stores" in stores else "elasticsearch"
