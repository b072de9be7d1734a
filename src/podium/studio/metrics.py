"""What Prometheus reads: requests and their time, judgments, jobs, the worker and the database.

Several server processes write their figures to files in ``PROMETHEUS_MULTIPROC_DIR``, which
``podium studio serve`` sets, and whichever of them is asked adds all of them up. What is in the
database, such as the queue of jobs, is read when Prometheus asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from podium.studio.store.database import reading
from podium.studio.store.tables import Job

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The figures of this process, and of the others of its server when they are read.

    Args:
        engine: Whose connections are counted.

    Example:
        >>> metrics = Metrics()
        >>> metrics.requested("GET", "/healthz", 200, 0.01)
        >>> b"podium_requests_total" in metrics.text()
        True
    """

    def __init__(self, engine: Engine | None = None) -> None:
        _forget_dead()
        self._engine = engine
        self._registry = CollectorRegistry()
        registry = self._registry
        self._requests = Counter(
            "podium_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "podium_request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._judgments = Counter(
            "podium_judgments",
            "Answers that were taken, by screen and what became of them.",
            ["mode", "outcome"],
            registry=registry,
        )
        self._database = Counter(
            "podium_database_errors",
            "Requests that failed because of the database, by error.",
            ["error"],
            registry=registry,
        )
        self._jobs = Counter(
            "podium_jobs", "Jobs that ended, by kind and outcome.", ["kind", "outcome"],
            registry=registry,
        )  # fmt: skip
        self._worker_errors = Counter(
            "podium_worker_errors", "Errors of workers that are none of a job.", registry=registry
        )
        self._workers = Gauge(
            "podium_workers", "Workers whose thread runs.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self._connections = Gauge(
            "podium_connections", "Connections to the database in use.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if self._engine is not None and isinstance(self._engine.pool, QueuePool):
            self._connections.set(self._engine.pool.checkedout())

    def judged(self, mode: str, *, repeated: bool, late: bool) -> None:
        """Count an answer."""
        outcome = "repeated" if repeated else "late" if late else "recorded"
        self._judgments.labels(mode, outcome).inc()

    def database_failed(self, error: str) -> None:
        """Count a request that the database failed."""
        self._database.labels(error).inc()

    def job_ended(self, kind: str, outcome: str) -> None:
        """Count a job that ended."""
        self._jobs.labels(kind, outcome).inc()

    def worker_failed(self) -> None:
        """Count an error of the worker."""
        self._worker_errors.inc()

    def set_worker(self, *, running: bool) -> None:
        """Tell whether this process has a worker."""
        self._workers.set(1 if running else 0)

    def text(self, database: Engine | None = None) -> bytes:
        """Everything, as Prometheus reads it; with what the database holds, if it is given."""
        found = b""
        if database is not None:
            registry = CollectorRegistry()
            registry.register(_Queue(database))
            found = generate_latest(registry)
        if FOLDER not in os.environ:
            return generate_latest(self._registry) + found
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + found


class _Queue(Collector):
    """What waits in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """The figures as they are now."""
        up = GaugeMetricFamily("podium_database_up", "Whether the database answers.")
        waiting = GaugeMetricFamily(
            "podium_jobs_present", "Jobs of the last days by kind and state.",
            labels=["kind", "state"],
        )  # fmt: skip
        try:
            for kind, state, count in reading(self._engine, _jobs):
                waiting.add_metric([kind, state], count)
            up.add_metric([], 1)
        except DBAPIError:
            up.add_metric([], 0)
        yield up
        yield waiting


def _jobs(connection: Connection) -> list[tuple[str, str, int]]:
    rows = connection.execute(
        select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    )
    return [(row[0], row[1], int(row[2])) for row in rows]


def _forget_dead() -> None:
    """Take processes that died out of figures that are of living ones only."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    for path in Path(folder).glob("gauge_live*_*.db"):
        number = int(path.stem.rpartition("_")[2])
        if not Path(f"/proc/{number}").exists():
            multiprocess.mark_process_dead(number)  # type: ignore[no-untyped-call]


def forget_process() -> None:
    """Take this process out of figures that are of living ones only: it ends."""
    if FOLDER in os.environ:
        multiprocess.mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]
