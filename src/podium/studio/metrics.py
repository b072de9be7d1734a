"""What Prometheus reads: requests, their time, and judgments."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from podium.studio.desk import Taken

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The counters of one process. Prometheus adds up those of several by itself.

    Example:
        >>> metrics = Metrics()
        >>> metrics.requested("GET", "/healthz", 200, 0.01)
        >>> b"podium_requests_total" in metrics.text()
        True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "podium_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "podium_request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._judgments = Counter(
            "podium_judgments",
            "Answers that were taken, by screen and what became of them.",
            ["mode", "outcome"],
            registry=self._registry,
        )

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def judged(self, mode: str, taken: Taken) -> None:
        """Count an answer."""
        outcome = "repeated" if taken.repeated else "late" if taken.late else "recorded"
        self._judgments.labels(mode, outcome).inc()

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)
