"""What Prometheus reads: requests and their time, judgments, jobs, the worker and the database.

Several server processes write their figures to files in ``PROMETHEUS_MULTIPROC_DIR``, which
``podium studio serve`` sets, and whichever of them is asked adds all of them up. What is in the
database, such as the queue of jobs, is read when Prometheus asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
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
            "podium_workers", "Workers that take jobs.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        # A counter that is there at 0: `increase` does not see the step of one that begins at 1.
        for kind in ("import", "export", "report"):
            for outcome in ("done", "failed"):
                self._jobs.labels(kind, outcome)
        self._database.labels("OperationalError")
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
        """Report whether this process has a worker."""
        self._workers.set(1 if running else 0)

    def text(self) -> bytes:
        """What needs no database, as Prometheus reads it."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


Jobs = Sequence[tuple[str, str, int]]
"""The number of jobs of each kind and state."""


def count_jobs(engine: Engine) -> Jobs | None:
    """The jobs in the database; None if it does not answer."""
    try:
        return reading(engine, _jobs)
    except (DBAPIError, PoolTimeoutError):
        return None


def database_text(jobs: Jobs | None) -> bytes:
    """What the database holds, as Prometheus reads it.

    Args:
        jobs: As `count_jobs` returns them.

    Example:
        >>> print(database_text(None).decode().splitlines()[2])
        podium_database_up 0.0
    """
    registry = CollectorRegistry()
    registry.register(_InDatabase(jobs))
    return generate_latest(registry)


class _InDatabase(Collector):
    def __init__(self, jobs: Jobs | None) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        """The figures."""
        yield GaugeMetricFamily(
            "podium_database_up",
            "Whether the database answers.",
            value=0 if self._jobs is None else 1,
        )
        present = GaugeMetricFamily(
            "podium_jobs_present",
            "Jobs of the last days by kind and state.",
            labels=["kind", "state"],
        )
        for kind, state, count in self._jobs or ():
            present.add_metric([kind, state], count)
        yield present


def _jobs(connection: Connection) -> Jobs:
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
