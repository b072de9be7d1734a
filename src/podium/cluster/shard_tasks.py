"""Run a stream of tasks: some in flight, results as they arrive, a second copy of stragglers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from podium.errors import PodiumError

LAGS = 4.0
"""A task lags when it has run for this many times the median, and nothing else waits to run."""

_LEAST_SECONDS = 10.0


@dataclass
class _Flight:
    task: int
    since: float


def run_tasks(
    ray: Any,
    launch: Callable[[int], Any],
    order: Sequence[int],
    *,
    at_once: int,
    again: bool = True,
    wake: float | None = None,
    dead: Callable[[int], Any] | None = None,
) -> Iterator[tuple[int, Any] | None]:
    """Launch tasks by number and yield each one's result once, as results arrive.

    A task whose machine is lost is run again by Ray. When no task waits any more, one that lags
    far behind is launched a second time; whichever copy is done first counts, the other is
    cancelled.

    Args:
        ray: The module.
        launch: Starts the task of a number and returns Ray's reference to its result.
        order: The numbers, in the order to launch them.
        at_once: How many may be in flight.
        again: Whether stragglers may run twice, which must be harmless then.
        wake: Yield None when nothing has arrived for this many seconds.
        dead: Gives the result of a task that ended its process each time; by default an error.
    """
    waiting = list(reversed(order))
    flights: dict[Any, _Flight] = {}
    twice: set[int] = set()
    seconds: list[float] = []
    try:
        while waiting or flights:
            while waiting and len(flights) < at_once:
                task = waiting.pop()
                flights[launch(task)] = _Flight(task, time.monotonic())
            limit = min(wake or _LEAST_SECONDS, _LEAST_SECONDS)
            ready, _ = ray.wait(list(flights), num_returns=1, timeout=limit, fetch_local=False)
            if ready:
                ready, _ = ray.wait(
                    list(flights), num_returns=len(flights), timeout=0, fetch_local=False
                )
            elif wake is not None:
                yield None
            for reference in ready:
                flight = flights.pop(reference, None)
                if flight is None:  # the other copy came first, a moment ago
                    continue
                result = _result(ray, reference, flight.task, dead)
                seconds.append(time.monotonic() - flight.since)
                if flight.task in twice:
                    for other in [ref for ref, one in flights.items() if one.task == flight.task]:
                        ray.cancel(other, force=False)
                        del flights[other]
                yield flight.task, result
            if again and not waiting and not ready and seconds:
                late = max(_LEAST_SECONDS, LAGS * median(seconds))
                for flight in list(flights.values()):
                    if flight.task not in twice and time.monotonic() - flight.since > late:
                        twice.add(flight.task)
                        flights[launch(flight.task)] = _Flight(flight.task, time.monotonic())
    finally:
        for reference in flights:
            ray.cancel(reference, force=False)


def _result(ray: Any, reference: Any, task: int, dead: Callable[[int], Any] | None) -> Any:
    """Return a task's result, or raise the error that it raised on the worker."""
    try:
        return ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        if dead is not None:
            return dead(task)
        raise PodiumError(
            f"the process of task {task} died repeatedly",
            hint="Does a worker have enough memory for a shard? See Ray's logs.",
        ) from error
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, PodiumError):
            raise cause from None
        raise
