"""What Prometheus reads of the service.

Several processes write their figures to files in ``PROMETHEUS_MULTIPROC_DIR``, which
``podium serve`` sets, and whichever of them is asked adds them up.
"""

from __future__ import annotations

import os
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ServingMetrics:
    """The figures of this process, and of the others of its service when they are read.

    Example:
        >>> metrics = ServingMetrics()
        >>> metrics.answered("/rank", 200, 0.002)
        >>> b'podium_serving_requests_total{route="/rank",status="200"} 1.0' in metrics.text()
        True
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "podium_serving_requests", "Requests by route and status.", ["route", "status"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "podium_serving_request_seconds", "Time until a request was answered.", ["route"],
            buckets=_BUCKETS, registry=registry,
        )  # fmt: skip
        self._rankings = Counter(
            "podium_serving_rankings", "Rankings by model and version.", ["model", "version"],
            registry=registry,
        )  # fmt: skip
        self._documents = Counter(
            "podium_serving_documents", "Documents that were scored, by model.", ["model"],
            registry=registry,
        )  # fmt: skip
        self._loads = Counter(
            "podium_serving_loads", "Attempts to load models, by outcome.", ["outcome"],
            registry=registry,
        )  # fmt: skip
        self._dropped = Counter(
            "podium_serving_log_dropped", "Rankings that the ranking log lost, by reason.",
            ["reason"], registry=registry,
        )  # fmt: skip
        self._logged = Counter(
            "podium_serving_logged", "Rankings written to the ranking log.", registry=registry
        )
        self._searches = Counter(
            "podium_serving_searches",
            "Searches by outcome: reranked, in the engine's order and why, or not answered.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        self._interleaved = Counter(
            "podium_serving_interleaved",
            "Searches of an experiment: interleaved, or failed and answered by one model.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        # A counter that is there at 0: `increase` does not see the step of one that begins at 1.
        for outcome in ("done", "failed"):
            self._loads.labels(outcome)
        for outcome in ("interleaved", "failed"):
            self._interleaved.labels(outcome)
        for reason in ("queue", "write"):
            self._dropped.labels(reason)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        requests, times = self._of_route(route, status)
        requests.inc()
        times.observe(seconds)

    def ranked(self, model: str, version: int, documents: int) -> None:
        """Count a ranking."""
        rankings, ranked = self._of_model(model, version)
        rankings.inc()
        ranked.inc(documents)

    # To find a labeled counter takes the client longer than to count.

    @lru_cache(maxsize=1024)  # noqa: B019 - as many as the service has routes, and lives as long
    def _of_route(self, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(route, str(status)), self._seconds.labels(route)

    @lru_cache(maxsize=1024)  # noqa: B019 - as many as the service has models
    def _of_model(self, model: str, version: int) -> tuple[Counter, Counter]:
        return self._rankings.labels(model, str(version)), self._documents.labels(model)

    def searched(self, outcome: str) -> None:
        """Count a search by its outcome."""
        self._searches.labels(outcome).inc()

    def interleaved(self, outcome: str) -> None:
        """Count a search of an experiment: ``interleaved`` or ``failed``."""
        self._interleaved.labels(outcome).inc()

    def loaded(self, outcome: str) -> None:
        """Count an attempt to load models: ``done`` or ``failed``."""
        self._loads.labels(outcome).inc()

    def log_written(self) -> None:
        """Count a ranking in the ranking log."""
        self._logged.inc()

    def log_dropped(self, reason: str) -> None:
        """Count a ranking that is not in the log: ``queue`` is full, or ``write`` failed."""
        self._dropped.labels(reason).inc()

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
