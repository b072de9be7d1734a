"""A Ray cluster to work on: one that runs already, or one started on this machine.

Podium is written against few of Ray's parts: tasks and actors, and Ray Train for the engines that
have their own distributed learners. Rows never pass through Ray: every worker reads whole
shards from their storage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Self

from podium.errors import ArgumentError, MissingPackageError, PodiumError
from podium.threads import thread_count

LOCAL = "local"
"""The address that stands for a cluster of this machine alone."""

LOOPBACK = "127.0.0.1"

ENGINE_THREADS = ("PODIUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""The settings that say how many threads a process uses."""

RETRIES = 8
"""A task is run again so often: machines are lost, but a task may also end its process itself."""

_OF_LOSSES = r"Raylet is terminated|retries remaining|The node with node id"
"""What Ray writes to standard output, where results go, of machines that Podium does without."""


class Cluster:
    """Where work is done: a Ray cluster, and how it is divided there.

    Args:
        address: ``"local"`` starts a cluster of this machine's cores and keeps all its traffic on
            the loopback interface; ``"auto"`` or ``"host:port"`` joins one that runs.
        workers: How many workers share a fit, or how many tasks run at once; by default as many
            as the cluster's processors allow.
        cpus_per_worker: The processors, and threads, of each.
        modules: Python modules that every worker imports first: losses, measures and tasks of
            your own must be known there too.

    A cluster is a context: one that was started here ends with it.

    Example:
        >>> Cluster("local", workers=2)
        Cluster('local', workers=2)
    """

    def __init__(
        self,
        address: str = LOCAL,
        *,
        workers: int | None = None,
        cpus_per_worker: int = 1,
        modules: Sequence[str] = (),
    ) -> None:
        if workers is not None and workers < 1:
            raise ArgumentError(f"{workers} workers cannot work", hint="Give at least 1.")
        if cpus_per_worker < 1:
            raise ArgumentError(
                f"{cpus_per_worker} processors a worker are too few", hint="Give at least 1."
            )
        self.address = address
        self.cpus_per_worker = cpus_per_worker
        self.modules = tuple(modules)
        self._workers = workers
        self._started = False

    def __repr__(self) -> str:
        asked = "" if self._workers is None else f", workers={self._workers}"
        return f"Cluster({self.address!r}{asked})"

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> Any:
        """Join or start the cluster, once; gives the ``ray`` module."""
        ray = import_ray(loopback=self.address == LOCAL)
        if ray.is_initialized():
            return ray
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.address == LOCAL:
                processors = max(thread_count(), (self._workers or 1) * self.cpus_per_worker)
                ray.init(
                    address=LOCAL,
                    num_cpus=processors,
                    include_dashboard=False,
                    _node_ip_address=LOOPBACK,
                    **quiet,
                )
            else:
                at_home = self.address.startswith((LOOPBACK, "localhost"))
                home = {"_node_ip_address": LOOPBACK} if at_home else {}
                ray.init(address=self.address, **home, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise PodiumError(
                f"there is no Ray cluster at {self.address!r} ({reason})",
                hint="Start one with 'ray start --head', or give 'local'.",
            ) from error
        self._started = True
        return ray

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._started:
            import_ray().shutdown()
            self._started = False

    @property
    def workers(self) -> int:
        """How many workers there are to be."""
        return self.capacity if self._workers is None else self._workers

    @property
    def capacity(self) -> int:
        """How many workers the machines that live have processors for."""
        processors = [int(node["Resources"].get("CPU", 0)) for node in self._alive()]
        fit = sum(each // self.cpus_per_worker for each in processors)
        if fit == 0:
            raise PodiumError(
                f"no machine of the cluster has {self.cpus_per_worker} processors",
                hint="Give a smaller cpus_per_worker.",
            )
        return fit

    @property
    def machines(self) -> int:
        """How many machines live."""
        return len({node["NodeManagerAddress"] for node in self._alive()})

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in self.connect().nodes() if node["Alive"]]

    def task_options(self) -> dict[str, Any]:
        """How Ray is to run a task: anywhere, and again elsewhere when its machine is lost."""
        return {
            "num_cpus": self.cpus_per_worker,
            "max_retries": RETRIES,
            "retry_exceptions": False,
        }


def import_ray(*, loopback: bool = False) -> Any:
    """Import ``ray`` with usage reports and messages about lost nodes turned off.

    Args:
        loopback: Leave 127.0.0.1 as it is: Ray would put the host's own address in its place.
            It is read when Ray is first imported.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", _OF_LOSSES)
    if loopback:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError("Ray", extra="cluster") from error
    return ray


@cache
def remote_task(function: Callable[..., Any]) -> Any:
    """A function as Ray runs it elsewhere; made once, because each one made is sent to workers."""
    return import_ray().remote(function)


def prepare_worker(threads: int, modules: Sequence[str]) -> None:
    """Settle how many threads a worker process uses, and import what its user brought."""
    for name in ENGINE_THREADS:
        os.environ[name] = str(threads)
    for module in modules:
        import_module(module)
